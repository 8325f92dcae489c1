"""The one loop: every kind of failure costs what it must and nothing else; nothing depends on neighbours."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import toys
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbench.engines.local import LocalEngine
from seedbench.errors import SeedbenchError
from seedbench.jsonl import read_lines
from seedbench.policies.scripted import OraclePolicy, RandomPolicy, ScriptPolicy
from seedbench.records import from_record, to_record
from seedbench.rollout import Job, blocks, derive_seed, play
from seedbench.store import RunStore, canonical_lines
from seedbench.types import (
    Action,
    Episode,
    Generation,
    History,
    Message,
    Outcome,
    Skill,
    Start,
    StepResult,
    Task,
    View,
)


def env(**options: object) -> toys.Boxes:
    return toys.Boxes(toys.Options(**options))  # type: ignore[arg-type]


def jobs(world: toys.Boxes, count: int = 10, split: str = "train") -> list[Job]:
    tasks = world.tasks(split)
    return [Job(tasks[i % len(tasks)], derive_seed("t", i), 0, i // len(tasks)) for i in range(count)]


def says(text: str | Callable[[View], str], constrained: bool = False) -> ScriptPolicy:
    return ScriptPolicy("script", text if callable(text) else lambda view: text, constrained)


def summary(episodes: Sequence[Episode]) -> list[tuple]:
    return [
        (e.task.id, e.repeat, e.status, e.success, e.score, [(t.action, t.reward) for t in e.turns])
        for e in episodes
    ]


# -- endings -------------------------------------------------------------------------------------------------
def test_success_comes_from_the_task_and_not_from_the_end() -> None:
    """BR-001: an episode that used up its steps is over and not won."""
    world = env()
    lose = lambda view: "wait here"  # noqa: E731
    right = {t.public.id: f"open box {t.hidden.payload[1]}" for t in world.tasks("train")}
    tasks = world.tasks("train")
    winner = says(lambda v: right[tasks[v.slot].id], constrained=True)
    lost, won = play(world, says(lose, True), jobs(world, 1)), play(world, winner, jobs(world, 6))
    assert (lost[0].status, lost[0].success, lost[0].score) == ("step_limit", False, 0.0)
    assert len(lost[0].turns) == 3
    assert {(e.status, e.success, e.score, len(e.turns)) for e in won} == {("completed", True, 1.0, 1)}
    assert [e.reward for e in won] == [10.0] * 6


def test_a_silent_backend_is_no_failed_agent() -> None:
    """BR-040: every step is invalid("empty"), the run goes on to the limit, and the ending says whose fault."""
    world = env(steps=5)
    (episode,) = play(world, says(""), jobs(world, 1))
    assert [(t.valid, t.reason) for t in episode.turns] == [(False, "empty")] * 5
    assert (episode.status, episode.success) == ("model_error", None)
    assert "no output" in episode.error


def test_one_word_among_silence_is_the_agents_own_failure() -> None:
    world = env(steps=4)
    (episode,) = play(
        world, says(lambda v: "" if v.history.step else "<action>wait here</action>"), jobs(world, 1)
    )
    assert (episode.status, episode.success) == ("step_limit", False)


@pytest.mark.parametrize("limit", [1, 5])
def test_illegal_actions_use_up_the_steps(limit: int) -> None:
    """BR-041: "terminate" for ever ends after exactly the limit, every action invalid or without effect."""
    world = env(steps=limit)
    (bare,) = play(world, says("terminate"), jobs(world, 1))
    assert (bare.status, len(bare.turns), sum(not t.valid for t in bare.turns)) == (
        "step_limit",
        limit,
        limit,
    )
    (formed,) = play(world, says("<action>terminate</action>"), jobs(world, 1))
    assert (formed.status, len(formed.turns), sum(not t.effect for t in formed.turns)) == (
        "step_limit",
        limit,
        limit,
    )


# -- what a policy sees --------------------------------------------------------------------------------------
def test_the_first_prompt_holds_the_task_and_later_ones_the_parsed_actions() -> None:
    """BR-064: nothing of ``reset`` is dropped. BR-087: past turns show observation and action, no reasoning."""
    world, seen = env(steps=4), []

    def say(view: View) -> str:
        seen.append(view)
        return f"<think>SECRET-{view.history.step} long reasoning</think><action>wait here</action>"

    play(world, says(say), jobs(world, 1))
    assert "find the key" in seen[0].messages[0].content
    assert seen[0].history.instruction == "find the key"
    assert seen[0].history.observation.text == "you see three boxes ."
    assert [v.history.step for v in seen] == [0, 1, 2, 3]
    assert [p.action for p in seen[3].history.past] == ["wait here"] * 3
    assert not any("SECRET" in m.content for v in seen for m in v.messages)
    assert all(v.choices == tuple(sorted(v.choices)) for v in seen)


def test_a_view_holds_ordinary_history_and_nothing_hidden() -> None:
    """The hidden half of the task reaches no view; a skill only where the job carries one."""
    world, seen = env(), []
    policy = says(lambda v: seen.append(v) or "<action>wait here</action>")  # type: ignore[func-returns-value]
    skill = Skill("s", "open box 2", "bank")
    play(world, policy, [Job(world.tasks("train")[0], 1), Job(world.tasks("train")[1], 2, skill=skill)])
    assert {v.skill for v in seen if v.slot == 0} == {None}
    assert {v.skill for v in seen if v.slot == 1} == {"open box 2"}
    assert not any("HiddenTask" in repr(v) for v in seen)


def test_members_of_a_group_start_alike_and_act_apart() -> None:
    """BR-070: one world seed, own policy seeds."""
    starts: dict[str, set[str]] = {}
    world = env(steps=6)
    task = world.tasks("train")[0]
    episodes = play(world, RandomPolicy(), [Job(task, derive_seed("g", i), 99, i) for i in range(8)])
    for e in episodes:
        starts.setdefault(e.task.id, set()).add(e.turns[0].observation.text)
    assert all(len(s) == 1 for s in starts.values())
    assert len({tuple(t.action for t in e.turns) for e in episodes}) > 1


# -- neighbours ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [1, 3, 10, 16])
def test_the_number_of_episodes_side_by_side_changes_nothing(size: int) -> None:
    """BR-071, BR-072: each task once, in order, same outcomes; a last small block is neither filled nor lost."""
    world = env(steps=4)
    work = jobs(world, 10)
    reference = play(world, RandomPolicy(), work)
    found = [e for part in blocks(work, size) for e in play(world, RandomPolicy(), part)]
    assert summary(found) == summary(reference)
    assert [(e.task.id, e.repeat) for e in found] == [(j.task.id, j.repeat) for j in work]


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("block", [1, 4, 64])
def test_workers_change_nothing(workers: int, block: int) -> None:
    """BR-071, BR-073, BR-096: sequential and in processes, equal, and reported in order."""
    world = env(steps=4)
    work, seen = jobs(world, 10), []
    found = LocalEngine(workers).play(world, RandomPolicy(), work, block, lambda e: seen.append(e.repeat))
    assert summary(found) == summary(play(world, RandomPolicy(), work))
    assert sorted(seen) == sorted(j.repeat for j in work)
    if workers > 1 and block < 10:
        assert seen == [j.repeat for j in work]


def test_one_success_stays_with_its_own_episode() -> None:
    """BR-075: three plays of one task, only the middle one solves it."""
    world = env()
    task = world.tasks("train")[0]
    policy = says(lambda v: f"open box {task.hidden.payload[1]}" if v.slot == 1 else "wait here", True)
    episodes = play(world, policy, [Job(task, i, 0, i) for i in range(3)])
    assert [e.success for e in episodes] == [False, True, False]
    assert [len(e.turns) for e in episodes] == [3, 1, 3]


def test_a_finished_episode_is_asked_nothing_more() -> None:
    """BR-062: no reward, step or view after its end."""
    world, asked = env(steps=6), []
    task = world.tasks("train")[0]

    def say(view: View) -> str:
        asked.append(view.slot)
        return f"open box {task.hidden.payload[1]}" if view.slot == 0 else "wait here"

    episodes = play(world, says(say, True), [Job(task, 0), Job(task, 1, 0, 1)])
    assert asked.count(0) == 1
    assert asked.count(1) == 6
    assert episodes[0].reward == 10.0


def test_two_environments_in_one_process_keep_their_own_actions() -> None:
    """BR-076: nothing lives on a class."""

    class Other(toys.Boxes):
        def choices(self, history: History) -> tuple[str, ...]:
            return ("wait here",)

    first, second = env(), Other(toys.Options())
    a = play(first, RandomPolicy(), jobs(first, 6))
    b = play(second, RandomPolicy(), jobs(second, 6))
    again = play(first, RandomPolicy(), jobs(first, 6))
    assert {t.action for e in b for t in e.turns} == {"wait here"}
    assert summary(a) == summary(again)
    assert len({t.action for e in a for t in e.turns}) > 1


def test_the_oracle_is_handed_the_sessions_and_others_are_not() -> None:
    world = env()
    assert all(e.success for e in play(world, OraclePolicy(), jobs(world, 6)))
    assert all(e.success for e in LocalEngine(2).play(world, OraclePolicy(), jobs(world, 6), 2))


# -- failures ------------------------------------------------------------------------------------------------
class Broken(toys.Boxes):
    """Raises in one place, for one task."""

    def __init__(self, where: str, victim: str = "train-01") -> None:
        super().__init__(toys.Options(steps=4))
        self.where, self.victim = where, victim

    def _maybe(self, where: str, history: History) -> None:
        if where == self.where and history.instruction.endswith("coin"):
            raise RuntimeError(f"broken {where}")

    def render(self, history: History) -> tuple[Message, ...]:
        self._maybe("render", history)
        return super().render(history)

    def choices(self, history: History) -> tuple[str, ...]:
        self._maybe("choices", history)
        return super().choices(history)

    def parse(self, completion: str) -> Action:
        if self.where == "parse" and "box 2" in completion:
            raise RuntimeError("broken parse")
        return super().parse(completion)

    def wrap(self, action: str) -> str:
        if self.where == "wrap" and "box 2" in action:
            raise RuntimeError("broken wrap")
        return super().wrap(action)

    def session(self) -> BrokenSession:
        return BrokenSession(self)


class BrokenSession(toys.BoxSession):
    def __init__(self, world: Broken) -> None:
        super().__init__(world.options)
        self.world = world

    def _break(self, where: str) -> None:
        if self.world.where == where and self.id == self.world.victim:
            raise RuntimeError(f"broken {where}")

    def reset(self, task: Task, seed: int) -> Start:
        self.id = task.id
        self._break("reset")
        return super().reset(task, seed)

    def step(self, action: Action) -> StepResult:
        self._break("step")
        return super().step(action)

    def outcome(self) -> Outcome:
        self._break("outcome")
        return super().outcome()

    def close(self) -> None:
        self._break("close")
        super().close()


@pytest.mark.parametrize("where", ["reset", "step", "outcome", "close", "render", "choices", "parse", "wrap"])
def test_an_environment_that_raises_costs_its_own_episode(where: str) -> None:
    """BR-051, BR-062: env_error, success None, the message kept; the neighbours play on undisturbed."""
    world = Broken(where)
    policy = says(lambda v: f"open box {1 + (v.slot + v.history.step) % 3}", True)
    found = play(world, policy, jobs(world, 6))
    healthy = play(Broken("nowhere"), policy, jobs(world, 6))
    broken = [i for i, e in enumerate(found) if e.status == "env_error"]
    if where in ("parse", "wrap"):
        assert 1 in broken
    else:
        assert broken == [1]
    for i, (a, b) in enumerate(zip(found, healthy, strict=True)):
        if i in broken:
            assert (a.success, a.score) == (None, None)
            assert "broken" in a.error
        else:
            assert summary([a]) == summary([b])


def test_an_environment_that_cannot_open_a_session_is_an_env_error() -> None:
    class NoSession(toys.Boxes):
        opened = 0

        def session(self) -> toys.BoxSession:
            type(self).opened += 1
            if type(self).opened == 2:
                raise OSError("no more files")
            return super().session()

    world = NoSession(toys.Options())
    episodes = play(world, RandomPolicy(), jobs(world, 3))
    assert [e.status == "env_error" for e in episodes] == [False, True, False]
    assert "no more files" in episodes[1].error


class Moody:
    """Raises on the second request; counts what it is told to forget."""

    name, privileged, constrained = "moody", False, True

    def __init__(self, fail: Callable[[int, Sequence[View]], Sequence[Generation]]) -> None:
        self.calls, self.fail, self.forgotten = 0, fail, []

    def act(self, views: Sequence[View]) -> Sequence[Generation]:
        self.calls += 1
        return self.fail(self.calls, views)

    def forget(self, slots: Sequence[int]) -> None:
        self.forgotten += slots


def test_a_policy_that_raises_loses_the_episodes_in_flight_and_not_the_run() -> None:
    def fail(call: int, views: Sequence[View]) -> list[Generation]:
        if call == 2:
            raise RuntimeError("out of memory")
        return [Generation(f"open box {1 + v.slot % 2}") for v in views]

    world = env()
    policy = Moody(fail)
    episodes = play(world, policy, jobs(world, 6))
    solved = [e for e in episodes if e.success]
    lost = [e for e in episodes if e.status == "model_error"]
    assert solved
    assert lost
    assert len(solved) + len(lost) == 6
    assert all(e.success is None and "out of memory" in e.error and len(e.turns) == 1 for e in lost)
    assert sorted(policy.forgotten) == list(range(6))
    # and the next block plays as if nothing had happened
    assert {e.status for e in play(world, policy, jobs(world, 6))} <= {"completed", "step_limit"}


def test_a_backend_error_for_one_view_costs_one_episode() -> None:
    world = env()

    def fail(call: int, views: Sequence[View]) -> list[Generation]:
        return [Generation("wait here", error="server said 500" if v.slot == 2 else "") for v in views]

    episodes = play(world, Moody(fail), jobs(world, 4))
    assert [e.status for e in episodes] == ["step_limit", "step_limit", "model_error", "step_limit"]
    assert episodes[2].error == "server said 500"
    assert not episodes[2].turns


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_policy_that_answers_too_few_or_too_many_is_a_model_error(count: int) -> None:
    world = env()
    policy = Moody(lambda call, views: [Generation("wait here")] * count)
    episodes = play(world, policy, jobs(world, 3))
    assert {e.status for e in episodes} == {"model_error"}
    assert all(str(count) in e.error for e in episodes)


def test_a_full_context_ends_one_episode_as_the_agents_own_doing() -> None:
    """BR-088: "stop"; the outcome is the task's, the turns before are kept (BR-083)."""
    world = env(steps=8)

    def fail(call: int, views: Sequence[View]) -> list[Generation]:
        full = "context_limit" if call == 6 else ""
        return [Generation("wait here", error=full if v.slot == 0 else "") for v in views]

    first, second = play(world, Moody(fail), jobs(world, 2))
    assert (first.status, first.success, len(first.turns)) == ("context_limit", False, 5)
    assert (second.status, len(second.turns)) == ("step_limit", 8)


def _die(view: View) -> str:
    if view.history.instruction.endswith("ring"):
        os._exit(9)
    return "wait here"


def test_a_worker_that_dies_is_reported_and_does_not_hang_the_run() -> None:
    world = env()
    with pytest.raises(SeedbenchError, match="worker"):
        LocalEngine(2).play(world, says(_die, True), jobs(world, 12), 2)


def test_an_error_in_a_worker_reaches_the_parent() -> None:
    class Half(ScriptPolicy):
        def forget(self, slots: Sequence[int]) -> None:
            raise ZeroDivisionError("in the worker")

    world = env()
    with pytest.raises(ZeroDivisionError, match="in the worker"):
        LocalEngine(2).play(world, Half("half", lambda v: "wait here"), jobs(world, 12), 2)


# -- text ----------------------------------------------------------------------------------------------------
ODD = "\ud835 \U0001f600 \u4e2d\u6587 \x00 <action>wait here</action>"


def test_odd_text_survives_the_road_to_the_disk(tmp_path: Path) -> None:
    """BR-106: lone surrogate, emoji, CJK, NUL in a model's output."""
    world = env()
    (episode,) = play(world, says(ODD), jobs(world, 1))
    assert episode.status == "step_limit"
    manifest = {"env": {"name": "boxes"}}
    with RunStore.create(tmp_path / "run", {"env": {"name": "boxes"}}, manifest) as store:
        store.append_episode("eval-final", to_record(episode, "eval", 0))
    path = tmp_path / "run" / "episodes" / "eval-final.jsonl"
    path.read_bytes().decode("utf-8")
    (record,) = read_lines(path)
    assert from_record(record).turns[0].completion == ODD
    assert len(canonical_lines(path)) == 1


# -- properties ----------------------------------------------------------------------------------------------
@given(st.integers(1, 12), st.integers(1, 7), st.integers(0, 10**6), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_any_blocking_plays_the_same_episodes(count: int, size: int, seed: int, steps: int) -> None:
    world = env(steps=steps)
    tasks = world.tasks("train")
    rng = random.Random(seed)
    work = [Job(rng.choice(tasks), rng.randrange(2**40), 0, i) for i in range(count)]
    whole = play(world, RandomPolicy(), work)
    parts = blocks(work, size)
    assert [j for p in parts for j in p] == work
    assert summary([e for p in parts for e in play(world, RandomPolicy(), p)]) == summary(whole)
    for e in whole:
        assert len(e.turns) <= steps
        assert e.success == (e.reward > 0) == (e.status == "completed")


@given(st.lists(st.one_of(st.text(max_size=8), st.integers(), st.floats(allow_nan=False)), max_size=5))
@settings(max_examples=60, deadline=None)
def test_seeds_are_stable_and_fit_63_bits(parts: list) -> None:
    parts = [p.encode("utf-8", "replace").decode() if isinstance(p, str) else p for p in parts]
    assert derive_seed(*parts) == derive_seed(*parts)
    assert 0 <= derive_seed(*parts) < 2**63


def test_a_known_seed() -> None:
    """Frozen: another value would change every recorded run."""
    digest = hashlib.sha256(b"0/train/1/2/3").digest()
    assert derive_seed(0, "train", 1, 2, 3) == int.from_bytes(digest[:8], "big") // 2
