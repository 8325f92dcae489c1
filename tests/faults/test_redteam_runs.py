"""Runs that leak or were tampered with: each is caught, and by the check that is there for it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from seedbench.audit.guard import check_episode
from seedbench.audit.rebuild import rebuilder_for, tokenizer_folders
from seedbench.audit.runs import audit_run, proof
from seedbench.errors import LeakFound
from seedbench.panel import sha256_lines
from seedbench.policies.scripted import OraclePolicy, RandomPolicy
from seedbench.records import to_record
from seedbench.store import Run
from seedbench.train.checkpoint import Checkpoints
from seedbench.types import Generation, Observation, Skill, View
from tests.red_team import TRAIN, backbone, edit, edit_json, environment, evaluation, twin, write_run

TOLD = "search hollow storm then answer its birthplace"


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("honest") / "run")


@pytest.fixture
def run(honest: Path, tmp_path: Path) -> Path:
    shutil.copytree(honest, tmp_path / "run")
    return tmp_path / "run"


def failed(path: Path) -> tuple[str, ...]:
    return audit_run(path, environment()).failed


def test_an_honest_run_passes_every_check(honest: Path) -> None:
    report = audit_run(honest, environment())
    assert report.ok, report.lines()
    assert {c.status for c in report.checks} == {"pass"}, report.lines()
    assert proof(Run(honest)) == []


class Told:
    """The model, with a skill slipped into its prompt that the record does not mention."""

    privileged, constrained, name = False, True, "tiny"

    def __init__(self, actor: object, skill: Callable[[View], str | None]) -> None:
        self.actor, self.skill = actor, skill

    def act(self, views: Sequence[View]) -> Sequence[Generation]:
        return self.actor.act([replace(v, skill=self.skill(v)) for v in views])  # type: ignore[attr-defined]

    def forget(self, slots: Sequence[int]) -> None:
        self.actor.forget(slots)  # type: ignore[attr-defined]


def test_skill_in_the_system_prompt(tmp_path: Path) -> None:
    path = write_run(tmp_path / "r", policy=lambda b: Told(b.actor(0.4), lambda v: TOLD))
    assert failed(path) == ("prompts",)


def test_cached_skill_file_read_at_evaluation(tmp_path: Path) -> None:
    cache = tmp_path / "skills.txt"
    cache.write_text(TOLD)
    path = write_run(tmp_path / "r", policy=lambda b: Told(b.actor(0.4), lambda v: cache.read_text()))
    assert failed(path) == ("prompts",)


def test_memory_of_earlier_episodes_in_the_prompt(tmp_path: Path) -> None:
    seen: list[str] = []

    def remember(view: View) -> str | None:
        seen.append(view.history.instruction)
        return seen[0] if view.slot else None

    path = write_run(tmp_path / "r", policy=lambda b: Told(b.actor(0.4), remember))
    assert failed(path) == ("prompts",)


class Silent:
    """Acts as the model does, but leaves no trace of what the model was fed."""

    privileged, constrained, name = False, True, "tiny"

    def __init__(self, actor: object) -> None:
        self.actor = actor

    def act(self, views: Sequence[View]) -> list[Generation]:
        return [replace(g, prompt_sha256="") for g in self.actor.act(views)]  # type: ignore[attr-defined]

    def forget(self, slots: Sequence[int]) -> None:
        self.actor.forget(slots)  # type: ignore[attr-defined]


def test_prompt_hashes_withheld(tmp_path: Path) -> None:
    assert failed(write_run(tmp_path / "r", policy=lambda b: Silent(b.actor(0.4)))) == ("prompts",)


class Hinting:
    """A session that lets its oracle whisper into the observation."""

    def __init__(self, inner: object, hint: Callable[[object], str]) -> None:
        self.inner, self.hint = inner, hint

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def reset(self, task: object, seed: int) -> object:
        start = self.inner.reset(task, seed)  # type: ignore[attr-defined]
        return replace(start, observation=self._with_hint(start.observation))

    def step(self, action: object) -> object:
        result = self.inner.step(action)  # type: ignore[attr-defined]
        over = result.terminated or result.truncated
        return result if over else replace(result, observation=self._with_hint(result.observation))

    def _with_hint(self, observation: Observation) -> Observation:
        return Observation(f"{observation.text}\n{self.hint(self.inner)}", observation.legal)


def test_oracle_plan_in_the_observation(tmp_path: Path) -> None:
    env = environment()
    leaking = twin(env, session=lambda: Hinting(env.session(), lambda s: s.oracle()))  # type: ignore[attr-defined]
    assert failed(write_run(tmp_path / "r", env=leaking)) == ("replay",)


def test_gold_answer_echoed_by_the_retriever(tmp_path: Path) -> None:
    env = environment()
    gold = lambda s: s._asked.golds[0]  # noqa: E731
    leaking = twin(env, session=lambda: Hinting(env.session(), gold))
    assert failed(write_run(tmp_path / "r", env=leaking)) == ("replay",)


def test_edited_observation(run: Path) -> None:
    def change(records: list[dict]) -> None:
        turn = next(t for r in records for t in r["turns"][1:])
        turn["obs"] += " the answer is oslo"

    edit(run, change)
    assert set(failed(run)) == {"prompts", "replay"}


def test_edited_success(run: Path) -> None:
    def change(records: list[dict]) -> None:
        records[0].update(success=not records[0]["success"], score=1.0 - records[0]["score"])

    edit(run, change)
    assert failed(run) == ("replay",)


def test_edited_action(run: Path) -> None:
    edit(run, lambda records: records[0]["turns"][0].update(action="<answer>oslo</answer>"))
    assert "actions" in failed(run)


def test_truncated_episode(run: Path) -> None:
    """An episode that ends before the environment ended it: failures could be cut out of a record."""

    def change(records: list[dict]) -> None:
        long = next(r for r in records if len(r["turns"]) > 1)
        long["last"] = {"obs": long["turns"][-1]["obs"]}
        long["turns"].pop()

    edit(run, change)
    assert "replay" in failed(run)


def test_declared_skill_in_an_ordinary_evaluation(run: Path) -> None:
    skill = {"summary": "s", "text": TOLD, "source": "bank"}
    edit(run, lambda records: records[0].update(acting_skill=skill))
    assert "no skill" in failed(run)


def test_skill_written_from_an_evaluation_episode(run: Path) -> None:
    """BR-102: leakage by memory instead of gradients."""
    skill = {"summary": "s", "text": TOLD, "source": "self"}
    edit(run, lambda records: records[0].update(hindsight=skill))
    assert failed(run) == ("skill sources",)


def test_skill_of_an_evaluation_task_in_the_training_log(run: Path) -> None:
    """BR-102."""
    panel_task = environment().tasks("mini-test")[0].public
    place = {"id": panel_task.id, "split": panel_task.split, "group": panel_task.group}
    edit(run, lambda records: records[0].update(task=place), "train")
    assert set(failed(run)) == {"overlap", "skill sources"}


def test_swapped_checkpoint(run: Path) -> None:
    Path(run / "checkpoints" / "u00001" / "model.safetensors").unlink()
    backbone(seed=9).save(run / "checkpoints" / "u00001")
    assert failed(run) == ("weights",)


def test_swapped_checkpoint_with_a_new_file_list(run: Path) -> None:
    """Hashes of files can be rewritten; the hash logged at evaluation cannot be met by other weights."""
    shutil.rmtree(run / "checkpoints" / "u00001")
    Checkpoints(run / "checkpoints").save("u00001", backbone(seed=9))
    assert failed(run) == ("weights",)


def test_file_added_to_the_checkpoint(run: Path) -> None:
    (run / "checkpoints" / "u00001" / "skills.json").write_text("{}")
    assert failed(run) == ("weights",)


def test_evaluation_on_training_tasks(tmp_path: Path) -> None:
    path = write_run(tmp_path / "r", tasks=list(environment().tasks(TRAIN))[10:14])
    assert failed(path) == ("overlap",)


def test_training_tasks_under_new_names(tmp_path: Path) -> None:
    """Near-duplicate text: the evaluated questions are training questions with other ids."""
    env = environment()
    renamed = [
        replace(new, hidden=replace(new.hidden, payload=replace(old.hidden.payload, id=new.id)))
        for new, old in zip(env.tasks("mini-test"), env.tasks(TRAIN), strict=False)
    ]
    known = {t.id: t for t in renamed}
    leaking = twin(env, tasks=lambda s: [known.get(t.id, t) for t in env.tasks(s)])
    path = write_run(tmp_path / "r", tasks=renamed[:8])
    assert audit_run(path, leaking).failed == ("overlap",)


def test_episode_outside_the_panel(tmp_path: Path) -> None:
    path = write_run(tmp_path / "r", ids=[t.id for t in list(environment().tasks("mini-test"))[:7]])
    assert failed(path) == ("panel",)


def test_edited_panel(run: Path) -> None:
    edit_json(run, "manifest.json", lambda m: m["panels"]["eval"]["ids"].pop())
    assert failed(run) == ("panel",)


def test_other_templates_than_declared(run: Path) -> None:
    edit_json(run, "manifest.json", lambda m: m["env"].update(fingerprint=sha256_lines(["other"])))
    assert failed(run) == ("setting",)


def test_more_steps_than_declared(run: Path) -> None:
    edit_json(run, "manifest.json", lambda m: m["env"].update(max_steps=9))
    assert failed(run) == ("setting",)


def test_edited_configuration(run: Path) -> None:
    edit_json(run, "config.json", lambda c: c["eval"].update(temperature=0.0))
    assert failed(run) == ("setting",)


def test_what_cannot_be_checked_is_said(run: Path) -> None:
    """An imported run: unknown environment, no checkpoints, no training log. Nothing passes by default."""
    shutil.rmtree(run / "checkpoints")
    (run / "episodes" / "train.jsonl").unlink()
    edit_json(
        run, "config.json", lambda c: (c["env"].update(name="elsewhere"), c["backbone"].update(name="gpt"))
    )
    edit_json(run, "manifest.json", lambda m: m.pop("config_sha256"))
    report = audit_run(run)
    assert report.ok
    words = {c.key: c.status for c in report.checks}
    assert {words[k] for k in ("prompts", "actions", "history", "replay", "setting", "weights")} == {
        "unchecked"
    }
    assert words["no skill"] == words["panel"] == "pass"
    assert any("elsewhere" in line for line in report["replay"].evidence)


# -- the guard in the trainer --------------------------------------------------------------------------------
def _rebuilder(path: Path):  # type: ignore[no-untyped-def]
    run = Run(path)
    return rebuilder_for(run.config["backbone"], tokenizer_folders(path, run.config))


def test_the_guard_lets_honest_episodes_pass(honest: Path) -> None:
    for episode in Run(honest).episodes("eval-final"):
        check_episode(environment(), _rebuilder(honest), episode)


def test_the_guard_stops_a_leak_when_it_happens(honest: Path) -> None:
    leaking = Told(backbone().actor(0.4), lambda v: TOLD)
    (episode,) = evaluation(environment(), leaking, environment().tasks("mini-test")[:1])
    with pytest.raises(LeakFound, match="another prompt"):
        check_episode(environment(), _rebuilder(honest), episode)
    episode.acting_skill = Skill("s", TOLD, "bank")
    with pytest.raises(LeakFound, match="holds a skill"):
        check_episode(environment(), None, episode)


def test_scripted_policies_have_no_prompts_but_everything_else_is_checked(tmp_path: Path) -> None:
    for policy in (RandomPolicy, OraclePolicy):
        path = write_run(tmp_path / policy.name, policy=lambda b, p=policy: p())
        edit_json(
            path, "manifest.json", lambda m: (m["policy"].update(trained=False), m["model"].pop("sha256"))
        )
        report = audit_run(path, environment())
        assert report.ok and report["prompts"].status == "unchecked", report.lines()
        assert report["replay"].status == report["actions"].status == "pass"
        assert to_record(Run(path).episodes("eval-final")[0], "eval", 1)["acting_skill"] is None


# -- the checkpoint acts again -------------------------------------------------------------------------------
class Whispered:
    """Hashes as if it read ordinary history and asked the model, but the actions come from elsewhere."""

    privileged, constrained, name = False, True, "tiny"

    def __init__(self, actor: object) -> None:
        self.actor = actor

    def act(self, views: Sequence[View]) -> list[Generation]:
        honest = self.actor.act(views)  # type: ignore[attr-defined]
        return [replace(g, text=v.choices[-1]) for g, v in zip(honest, views, strict=True)]

    def forget(self, slots: Sequence[int]) -> None:
        self.actor.forget(slots)  # type: ignore[attr-defined]


def test_the_final_checkpoint_acts_again_as_recorded(honest: Path) -> None:
    report = audit_run(honest, environment(), reenact=True)
    assert report["reenact"].status == "pass", report["reenact"].evidence


def test_actions_that_did_not_come_from_the_weights(tmp_path: Path) -> None:
    """The first prompts are honest and the record is consistent; only acting again shows it."""
    path = write_run(tmp_path / "r", policy=lambda b: Whispered(b.actor(0.4)))
    assert "reenact" in audit_run(path, environment(), reenact=True).failed
