"""Whole runs on a toy world in this process: what is recorded, what is learnt, what a setting changes."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path

import pytest
import toys

from seedbench.config import RunConfig
from seedbench.errors import ConfigError, LeakFound, RunConflict
from seedbench.panel import Panel
from seedbench.registry import ENVIRONMENTS
from seedbench.runner import prepare, resolve, run_name, train
from seedbench.store import Run
from seedbench.train.trainer import task_at, training_subset
from seedbench.types import Task


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toys.save_backbone(tmp_path_factory.mktemp("model"), std=0.1)


def configured(model: Path, method: str = "grpo", over: dict | None = None, **more: object) -> RunConfig:
    from seedbench.config import merge

    toys.register()
    return resolve("boxes", method, own=merge(toys.settings(model, method, **more), over or {}))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def seed_run(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SEED whose warm-up is long enough for the toy model to write skills."""
    warm_up = {"tasks": 6, "repeats": 3, "epochs": 24, "batch": 6, "learning_rate": 1e-2}
    over = {"method": {"options": {"warm_up": warm_up}}, "train": {"learning_rate": 1e-3}}
    config = configured(model, "seed", over)
    return train(config, tmp_path_factory.mktemp("runs") / "seed", 1, lambda m: None)


def test_seed_writes_skills_of_its_own_episodes_and_learns_from_them(seed_run: Path) -> None:
    run = Run(seed_run)
    warm_up = json.loads((seed_run / "warm_up.json").read_text())
    assert warm_up["annotator"] == "rules"
    assert warm_up["episodes"] == 18
    assert warm_up["epochs"][-1] < warm_up["epochs"][0] / 10
    assert warm_up["after"]["parsed"] > warm_up["before"]["parsed"]
    updates = [m for m in run.metrics() if "evaluation" not in m]
    assert [m["update"] for m in updates] == [0, 1]
    assert all(m["skills_valid"] > 0 for m in updates)
    assert all(
        {"teacher_gap", "teacher_gap_std", "loss_opd", "loss_gate", "loss_kl"} <= set(m) for m in updates
    )
    episodes = run.episodes("train")
    assert {e.hindsight.source for e in episodes if e.hindsight} == {"self"}
    assert all(e.acting_skill is None for e in episodes)


def test_deployment_needs_no_skill(seed_run: Path) -> None:
    """Evaluations hold no skill, acting or hindsight."""
    run = Run(seed_run)
    names = {s.name for s in run.streams()}
    assert names == {"train", "eval-u0000", "eval-u0001", "eval-final"}
    for name in names - {"train"}:
        assert all(e.acting_skill is None and e.hindsight is None for e in run.episodes(name))


def test_every_panel_task_is_played_as_often_as_planned(seed_run: Path) -> None:
    """BR-071, BR-072, BR-104: once per repeat, in panel order, no drawing."""
    for name in ("eval-u0000", "eval-u0001", "eval-final"):
        episodes = Run(seed_run).episodes(name)
        keys = Counter((e.task.id, e.repeat) for e in episodes)
        assert keys == {(f"test-{i:02d}", r): 1 for i in range(4) for r in range(2)}


def test_groups_share_their_task_and_start(seed_run: Path) -> None:
    """BR-006, BR-070: three plays for each of three tasks, own policy seeds, one opening."""
    episodes = [e for e in Run(seed_run).episodes("train")]
    for update in (0, 1):
        part = episodes[9 * update : 9 * update + 9]
        assert set(Counter(e.task.id for e in part).values()) == {3}
        assert len({e.seed for e in part}) == 9


def test_the_cost_ledger_covers_every_stage(seed_run: Path) -> None:
    costs = Run(seed_run).costs()
    stages = Counter((c["stage"], c["update"]) for c in costs)
    assert stages[("sft", -1)] == 1
    for update in (0, 1):
        assert {s for s, u in stages if u == update} == {
            "rollout",
            "analysis",
            "scoring",
            "update",
            "evaluation",
        }
    assert all(c["tokens"] > 0 and c["flops"] > 0 and c["seconds"] >= 0 for c in costs)


def test_the_ledger_counts_every_token_that_went_through_the_model(seed_run: Path) -> None:
    """Recounted from the episodes: reference and teacher read each transcript, the teacher its skill too."""
    from seedbench.config import make_environment
    from seedbench.policies.tiny.backbone import TinyBackbone
    from seedbench.policies.tiny.transcript import hindsight_ids, skill_block

    run = Run(seed_run)
    config = RunConfig.model_validate(run.config)
    backbone, env = TinyBackbone.load(seed_run / "checkpoints" / "start"), make_environment(config.env)
    spent = {(c["update"], c["stage"]): c["tokens"] for c in run.costs()}
    size = len(run.records("train")) // 2
    for update in (0, 1):
        episodes = run.episodes("train")[update * size : (update + 1) * size]
        lengths = {s.episode: s.length for s in backbone.samples(episodes, env)}
        taught = [i for i, e in enumerate(episodes) if e.hindsight]
        skills = sum(len(skill_block(backbone.tok, episodes[i].hindsight.text)) for i in taught)
        assert spent[update, "rollout"] == spent[update, "update"] == sum(lengths.values())
        teacher = sum(lengths[i] for i in taught) + skills
        assert spent[update, "scoring"] == sum(lengths.values()) + teacher
        questions = sum(len(hindsight_ids(backbone.tok, e)) for e in episodes)
        assert 0 < spent[update, "analysis"] - questions <= 96 * len(episodes)  # the answers
    record = json.loads((seed_run / "warm_up.json").read_text())
    assert spent[-1, "sft"] == record["tokens"] > record["trained_tokens"] > 24 * 18  # epochs x episodes


def test_the_record_says_what_was_run(seed_run: Path) -> None:
    """BR-007, BR-016, BR-058: estimator, aggregation, gate, panel, split and decoding are in it."""
    config = json.loads((seed_run / "config.json").read_text())
    manifest = json.loads((seed_run / "manifest.json").read_text())
    assert RunConfig.model_validate(config).method.name == "seed"
    assert manifest["model"]["decoding"] == "choices"
    assert manifest["panels"]["eval"]["ids"] == [f"test-{i:02d}" for i in range(4)]
    assert manifest["panels"]["train"]["split"] == "train"
    assert manifest["env"]["name"] == "boxes"
    assert Run(seed_run).status["state"] == "finished"


def test_grpo_learns_the_boxes(model: Path, tmp_path: Path) -> None:
    """Training success rises: the rewards reach the weights with the right sign."""
    config = configured(
        model,
        over={
            "train": {"tasks": 6, "group": 8, "updates": 10, "checkpoint_every": 10, "block": 64},
            "eval": {"every": 0},
        },
    )
    seen: list[dict] = []
    train(config, tmp_path / "run", 1, seen.append)
    success = [m["success"] for m in seen if "loss_pg" in m]
    assert sum(success[-3:]) / 3 > sum(success[:2]) / 2 + 0.2


def test_a_cap_on_importance_changes_nothing_where_engine_and_trainer_agree(
    model: Path, tmp_path: Path
) -> None:
    """BR-031: the tiny model samples and scores with the same weights, so the weights are 1 but for rounding."""
    for name, cap in (("off", 0.0), ("on", 2.0)):
        over = {"train": {"old_logprobs": "recomputed", "importance_cap": cap, "updates": 1}}
        train(configured(model, over=over), tmp_path / name, 1, lambda m: None)
    (off, *_), (on, *_) = (
        [m for m in Run(tmp_path / n).metrics() if "evaluation" not in m] for n in ("off", "on")
    )
    assert on["importance"] == pytest.approx(1.0, abs=1e-4) and "importance" not in off
    assert on["loss_pg"] == pytest.approx(off["loss_pg"], abs=1e-4)
    with pytest.raises(ConfigError, match="importance_cap needs old_logprobs"):
        configured(model, over={"train": {"old_logprobs": "sampled", "importance_cap": 2.0}})


def test_settings_that_came_later_leave_older_runs_their_names(model: Path) -> None:
    config = configured(model)
    assert not {"importance_cap", "mask_truncated"} & set(config.model_dump(mode="json")["train"])
    assert configured(model, over={"train": {"mask_truncated": False}}).sha256() == config.sha256()
    assert configured(model, over={"train": {"mask_truncated": True}}).sha256() != config.sha256()


def test_an_update_without_a_token_says_so(model: Path, tmp_path: Path, monkeypatch) -> None:
    """BR-015: every completion was cut and cut ones are masked: no loss, no step, a warning, no NaN."""
    from seedbench import rollout

    record = rollout.Turn

    def cut(**fields: object) -> object:
        return record(**{**fields, "truncated": True})

    monkeypatch.setattr(rollout, "Turn", cut)
    config = configured(model, over={"train": {"mask_truncated": True, "updates": 1}, "eval": {"every": 0}})
    with pytest.warns(RuntimeWarning, match="Update 0 has no token to train on"):
        train(config, tmp_path / "run", 1, lambda m: None)
    (line,) = [m for m in Run(tmp_path / "run").metrics() if "evaluation" not in m]
    assert line["decided_tokens"] == 0 and "loss_pg" not in line
    hashes = {m["weights_sha256"] for m in Run(tmp_path / "run").metrics() if "evaluation" in m}
    assert len(hashes) == 1


def test_a_method_that_learns_nothing_keeps_its_weights(model: Path, tmp_path: Path) -> None:
    folder = toys.run(model, tmp_path / "run", "skill_prompt")
    run = Run(folder)
    assert {s.name for s in run.streams()} == {"eval-final", "eval-final+skills"}
    assert {e.acting_skill.source for e in run.episodes("eval-final+skills") if e.acting_skill} == {"bank"}
    hashes = {m["weights_sha256"] for m in run.metrics()}
    assert hashes == {json.loads((folder / "manifest.json").read_text())["model"]["sha256"]}


def test_one_evaluation_is_of_the_weights_it_names(model: Path, tmp_path: Path) -> None:
    folder = toys.run(model, tmp_path / "run")
    hashes = [m["weights_sha256"] for m in Run(folder).metrics() if "evaluation" in m]
    assert len(set(hashes)) == len(hashes) == 3


def test_recomputed_and_sampled_old_log_probabilities_agree_on_the_first_step(
    model: Path, tmp_path: Path
) -> None:
    """BR-030, BR-031: with one mini-batch the ratio is 1 either way, and so is the training."""
    seen: dict[str, list[dict]] = {}
    for old in ("sampled", "recomputed"):
        config = configured(model, updates=1, over={"train": {"minibatches": 1, "old_logprobs": old}})
        seen[old] = []
        train(config, tmp_path / old, 1, seen[old].append)
    a, b = (next(m for m in seen[k] if "loss_pg" in m) for k in ("sampled", "recomputed"))
    for name in ("loss_pg", "loss_kl", "loss_entropy", "grad_norm"):
        assert a[name] == pytest.approx(b[name], rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("budget", [1, 60, 100_000])
def test_micro_batches_bound_memory_and_change_no_result(budget: int, model: Path, tmp_path: Path) -> None:
    """BR-008, through the whole trainer."""
    seen: list[dict] = []
    config = configured(model, "sdar", updates=1, over={"train": {"micro_tokens": budget}})
    train(config, tmp_path / "run", 1, seen.append)
    (update,) = [m for m in seen if "loss_pg" in m]
    reference: list[dict] = []
    train(configured(model, "sdar", updates=1), tmp_path / "reference", 1, reference.append)
    (expected,) = [m for m in reference if "loss_pg" in m]
    for name in expected:
        assert update[name] == pytest.approx(expected[name], rel=1e-3, abs=1e-4), name


def test_leaving_out_rows_without_signal_is_only_a_saving(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BR-007, BR-012: with no KL and no entropy, flat groups need no forward pass; means still count them."""
    from seedbench.train import trainer

    over = {
        "method": {"options": {"objective": {"kl": 0.0, "entropy": 0.0}}},
        "train": {"tasks": 6, "minibatches": 1},
    }
    seen: dict[str, list[dict]] = {"short": [], "full": []}
    train(configured(model, updates=1, over=over), tmp_path / "short", 1, seen["short"].append)
    monkeypatch.setattr(trainer, "trainable", lambda rows, method: list(range(len(rows))))
    train(configured(model, updates=1, over=over), tmp_path / "full", 1, seen["full"].append)
    short, full = (next(m for m in seen[k] if "loss_pg" in m) for k in ("short", "full"))
    assert 0 < short["zero_std_groups"] < 1
    assert short["loss_pg"] == pytest.approx(full["loss_pg"], rel=1e-5)
    assert short["grad_norm"] == pytest.approx(full["grad_norm"], rel=1e-4)


def test_an_environment_error_in_training_costs_one_episode(model: Path, tmp_path: Path) -> None:
    """BR-013, BR-051."""
    seen: list[dict] = []
    config = configured(model, over={"env": {"options": {"broken": "train-01"}}, "train": {"tasks": 6}})
    folder = train(config, tmp_path / "run", 1, seen.append)
    assert [m["errors"] for m in seen if "errors" in m] == [3, 3]
    broken = [e for e in Run(folder).episodes("train") if e.status == "env_error"]
    assert {e.task.id for e in broken} == {"train-01"}
    assert all(e.success is None and "fell apart" in e.error for e in broken)


@pytest.mark.parametrize("method", ["grpo", "seed"])
def test_a_run_in_which_everything_breaks_ends_and_says_so(method: str, model: Path, tmp_path: Path) -> None:
    """No episode to train or to warm up on: no division by zero, no NaN, nothing scored as failure."""

    class Dead(toys.Boxes):
        def session(self) -> toys.BoxSession:
            raise OSError("the server is down")

    toys.register()
    kind = ENVIRONMENTS.get("boxes")
    original = kind.make
    object.__setattr__(kind, "make", Dead)
    try:
        seen: list[dict] = []
        folder = train(configured(model, method, updates=1), tmp_path / "run", 1, seen.append)
    finally:
        object.__setattr__(kind, "make", original)
    assert [m["errors"] for m in seen if "errors" in m] == [9]
    assert {e.success for e in Run(folder).episodes("eval-final")} == {None}


# -- configuration -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("episodes", [0, -1])
def test_a_repeat_count_below_one_is_refused_before_anything_starts(episodes: int, model: Path) -> None:
    """BR-056."""
    with pytest.raises(ConfigError, match=r"eval\.episodes"):
        configured(model, over={"eval": {"episodes": episodes}})


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("train", "group", 1),
        ("train", "temperature", 0),
        ("train", "learning_rate", -1),
        ("train", "data_fraction", 0),
        ("train", "old_logprobs", "guessed"),
        ("train", "updates", 1.5),
        ("eval", "temperature", -0.1),
    ],
)
def test_a_setting_out_of_range_is_named(section: str, name: str, value: object, model: Path) -> None:
    with pytest.raises(ConfigError, match=f"{section}.{name}"):
        configured(model, over={section: {name: value}})


def test_training_on_the_panel_is_refused(model: Path) -> None:
    with pytest.raises(LeakFound, match="test-00"):
        toys.register()
        prepare(configured(model, over={"env": {"split": "test"}}).env)


def test_the_same_folder_with_other_settings_is_refused(model: Path, tmp_path: Path) -> None:
    """BR-097: other settings, other environment, other weights."""
    folder = toys.run(model, tmp_path / "run", updates=1)
    before = toys.fingerprint(folder)
    with pytest.raises(RunConflict, match=r"train\.updates"):
        toys.run(model, folder, updates=2)
    with pytest.raises(RunConflict, match="words"):
        train(
            configured(model, updates=1, over={"env": {"options": {"words": "get"}}}),
            folder,
            1,
            lambda m: None,
        )
    toys.save_backbone(model.parent / "replaced", seed=9)
    kept = (model / "model.safetensors").read_bytes()
    try:
        (model / "model.safetensors").write_bytes((model.parent / "replaced/model.safetensors").read_bytes())
        with pytest.raises(RunConflict, match="model"):
            toys.run(model, folder, updates=1)
    finally:
        (model / "model.safetensors").write_bytes(kept)
    assert toys.fingerprint(folder) == before


def test_equal_settings_have_one_name_and_hash(model: Path) -> None:
    a, b = configured(model), configured(model)
    assert a.canonical() == b.canonical()
    assert run_name(a) == run_name(b) != run_name(configured(model, updates=3))
    assert RunConfig.model_validate_json(a.canonical()) == a


# -- order of tasks ------------------------------------------------------------------------------------------
def tasks() -> list[Task]:
    return list(toys.Boxes(toys.Options()).tasks("train"))


def test_smaller_data_fractions_are_subsets_of_larger_ones() -> None:
    """Table 6: nested under one seed, different under another."""
    parts = [training_subset(tasks(), f, 3) for f in (0.2, 0.4, 0.6, 0.8, 1.0)]
    assert [len(p) for p in parts] == [2, 3, 4, 5, 6]
    for small, large in itertools.pairwise(parts):
        assert {t.id for t in small} < {t.id for t in large}
    assert any({t.id for t in training_subset(tasks(), 0.4, s)} != {t.id for t in parts[1]} for s in range(5))


def test_every_pass_over_the_data_is_a_permutation() -> None:
    """BR-093: positions run on over the ends of passes, whatever the size of an update."""
    order = [task_at(tasks(), 1, i).id for i in range(24)]
    passes = [order[i : i + 6] for i in range(0, 24, 6)]
    assert all(sorted(p) == sorted(t.id for t in tasks()) for p in passes)
    assert len({tuple(p) for p in passes}) > 1
    assert order != [task_at(tasks(), 2, i).id for i in range(24)]


def test_a_panel_drawn_with_replacement_tells_its_repeats_apart() -> None:
    assert Panel.of("p", ["a", "b", "a"]).entries() == [("a", 0), ("b", 0), ("a", 1)]
