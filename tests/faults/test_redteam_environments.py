"""Environments, renderers and policies that leak: the canary audit finds each, by the right check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from seedbench.audit.canary import audit_environment
from seedbench.audit.watch import watched
from seedbench.contracts import Environment
from seedbench.registry import ENVIRONMENTS
from seedbench.types import (
    Action,
    Generation,
    History,
    Message,
    Observation,
    Outcome,
    Skill,
    Start,
    StepResult,
    Task,
    View,
)
from tests.red_team import environment, twin

COUNT = 4


def tasks() -> list[Task]:
    return list(environment().tasks("mini-test"))[:COUNT]


@pytest.mark.parametrize("name", ENVIRONMENTS.names())
def test_every_shipped_environment_is_clean(name: str) -> None:
    kind = ENVIRONMENTS.get(name)
    env = kind.make(kind.options())
    report = audit_environment(env, list(env.tasks(kind.default_splits["mini"][1]))[:COUNT])
    assert {c.status for c in report.checks} == {"pass"}, report.lines()


class Session:
    """Passes everything on; a leaking one overrides a method."""

    def __init__(self, inner: object) -> None:
        self.inner = inner

    def reset(self, task: Task, seed: int) -> Start:
        self.task = task
        return self.inner.reset(task, seed)  # type: ignore[attr-defined]

    def step(self, action: Action) -> StepResult:
        return self.inner.step(action)  # type: ignore[attr-defined]

    def outcome(self) -> Outcome:
        return self.inner.outcome()  # type: ignore[attr-defined]

    def oracle(self) -> str:
        return self.inner.oracle()  # type: ignore[attr-defined]

    def close(self) -> None:
        self.inner.close()  # type: ignore[attr-defined]


def leaking(kind: type[Session]) -> Environment:
    env = environment()
    return twin(env, session=lambda: kind(env.session()))


def failed(env: Environment, policy: object = None) -> tuple[str, ...]:
    return audit_environment(env, tasks(), policy).failed  # type: ignore[arg-type]


class GoldInResults(Session):
    """The retriever puts the gold answer on top of its hits."""

    def step(self, action: Action) -> StepResult:
        result = super().step(action)
        if result.terminated or result.truncated:
            return result
        text = f"{result.observation.text}\n{self.task.hidden.payload.golds[0]}"
        return replace(result, observation=Observation(text, result.observation.legal))


def test_gold_answer_in_tool_output() -> None:
    assert set(failed(leaking(GoldInResults))) == {"hidden fields", "exchange"}


class GoldAnnounced(Session):
    """The gold answer stands among the announced actions."""

    def reset(self, task: Task, seed: int) -> Start:
        start = super().reset(task, seed)
        legal = (*start.observation.legal, task.hidden.payload.golds[0])
        return Start(start.instruction, Observation(start.observation.text, legal))


def test_hidden_answer_among_the_announced_actions() -> None:
    assert {"hidden fields", "exchange"} <= set(failed(leaking(GoldAnnounced)))


class EvidenceOrder(Session):
    """No hidden word is shown, but what is shown depends on the hidden half: the exchange finds it."""

    def reset(self, task: Task, seed: int) -> Start:
        start = super().reset(task, seed)
        hint = "early" if len(task.hidden.payload.golds[0]) % 2 else "late"
        return Start(
            start.instruction, Observation(f"{start.observation.text}{hint}", start.observation.legal)
        )


def test_observation_that_depends_on_the_answer_without_naming_it() -> None:
    golds = {len(t.hidden.payload.golds[0]) % 2 for t in tasks()}
    assert golds == {0, 1}, "the tasks of this test must differ in what leaks"
    assert "exchange" in failed(leaking(EvidenceOrder))


class GoldInMetrics(Session):
    """The answer goes into the record, where a later policy could read it."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, metrics={**outcome.metrics, self.task.hidden.payload.golds[0]: 1.0})


def test_hidden_answer_in_the_record() -> None:
    assert failed(leaking(GoldInMetrics)) == ("hidden fields",)


class OracleWhispers(Session):
    """The environment's own plan stands in the first observation."""

    def reset(self, task: Task, seed: int) -> Start:
        start = super().reset(task, seed)
        return replace(start, observation=Observation(self.oracle(), start.observation.legal))


def test_oracle_plan_in_the_observation() -> None:
    assert "helpers" in failed(leaking(OracleWhispers))


def test_skill_from_the_bank_in_the_system_prompt() -> None:
    env = environment()

    def render(self: Environment, history: History) -> tuple[Message, ...]:
        return (Message("system", self.bank("nq").text), *env.render(history))

    told = {"render": render, "bank": lambda self, group: Skill("s", "search first", "bank")}
    leaky = twin(env)
    leaky.__class__ = type("Leaky", (type(env),), {**told, "__module__": type(env).__module__})
    assert failed(leaky) == ("helpers",)


def test_history_longer_than_declared() -> None:
    env = environment()

    def render(history: History) -> tuple[Message, ...]:
        past = " ".join(f"{t.observation.text} {t.action}" for t in history.past)
        return (Message("user", f"{history.instruction} {past} {history.observation.text}"),)

    assert failed(twin(env, render=render)) == ("history",)


class Cached:
    """A policy with a file of its own, read when it acts."""

    name, privileged, constrained = "cached", False, True
    file: Path

    def act(self, views: Sequence[View]) -> list[Generation]:
        hint = self.file.read_text()
        return [Generation(next((c for c in v.choices if hint in c), v.choices[0])) for v in views]

    def forget(self, slots: Sequence[int]) -> None: ...


def test_policy_that_reads_a_cached_skill_file(tmp_path: Path) -> None:
    Cached.file = tmp_path / "skills.txt"
    Cached.file.write_text("oslo")
    report = audit_environment(environment(), tasks(), Cached)
    assert report.failed == ("files",)
    assert "skills.txt" in report["files"].evidence[0]


class Peeking:
    """Called unprivileged, but holds on to the sessions it should never see."""

    name, privileged, constrained = "peeking", True, True

    def attach(self, sessions: dict) -> None:  # type: ignore[type-arg]
        self.sessions = sessions

    def act(self, views: Sequence[View]) -> list[Generation]:
        return [Generation(self.sessions[v.slot].oracle()) for v in views]

    def forget(self, slots: Sequence[int]) -> None: ...


def test_policy_that_asks_the_oracle() -> None:
    assert set(failed(environment(), Peeking)) == {"hidden fields", "helpers"}


def test_watching_sees_files_and_sockets_of_this_thread_only(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    with watched() as seen:
        (tmp_path / "a").read_text()
        with watched() as inner:
            pass
    (tmp_path / "a").read_text()
    assert seen == [f"opens {tmp_path / 'a'}"] and inner == []
