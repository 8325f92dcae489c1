"""Support, gate and gradients: numbers of a model that is known, and of made-up states."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from seedbench.baselines.grpo import Grpo
from seedbench.baselines.seed import Seed

from seedbench.diagnose import signal, support
from seedbench.diagnose.material import Item
from seedbench.diagnose.run import diagnose_run
from seedbench.diagnose.support import Candidate, State
from seedbench.rollout import Job, play
from seedbench.types import Skill
from tests.red_team import TRAIN, backbone, environment, write_run


def state(gaps: dict[str, float], logp: float = 0.0) -> State:
    made = [
        Candidate(n, n.split("-")[0], logp, {"own": g, "shuffled": 0.0, "random": 0.0})
        for n, g in gaps.items()
    ]
    return State(None, 0, made)  # type: ignore[arg-type]


def test_auc_counts_pairs_within_a_state() -> None:
    first = state({"useful": 0.3, "idle": 0.1, "harmful": 0.5})
    second = state({"useful": 0.2, "idle": 0.2})
    assert support.auc([first], "own") == 0.5
    assert support.auc([first, second], "own") == pytest.approx((1 + 0 + 0.5) / 3)
    assert support.auc([first, second], "random") == 0.5
    assert support.auc([], "own") is None


def test_within_state_spread_is_zero_for_a_constant_gate_and_known_for_two_actions() -> None:
    assert support.within_state([state({"useful": 0.7, "idle": 0.7})], 5.0)["gate_within_state_std"] == 0.0
    two = support.within_state([state({"useful": 100.0, "idle": -100.0})], 5.0)
    assert two["gate_within_state_std"] == pytest.approx(0.5)
    sure = [Candidate("a", "useful", 0.0, {"own": 1.0}), Candidate("b", "idle", -100.0, {"own": -1.0})]
    only = support.within_state([State(None, 0, sure)], 5.0)  # type: ignore[arg-type]
    assert only["gate_within_state_std"] == pytest.approx(0.0, abs=1e-12)
    assert only["gate_within_state_std_uniform"] > 0.4


def test_gate_is_the_sigmoid() -> None:
    assert signal.gate(0.0, 5.0) == 0.5
    assert signal.gate(0.2, 5.0) == pytest.approx(1 / (1 + math.exp(-1)))


def items(count: int = 4) -> list[Item]:
    env = environment()
    tasks = [t for t in env.tasks(TRAIN)[:count] for _ in range(2)]
    jobs = [Job(t, seed=i, repeat=i % 2) for i, t in enumerate(tasks)]
    episodes = play(env, backbone().actor(1.0), jobs)
    for i, e in enumerate(episodes):
        e.turns[-1].reward = float(i % 2)  # unequal rewards in every group
    return [Item(0, e, env.annotate(e)) for e in episodes]


def test_scored_rows_are_what_the_policy_recorded() -> None:
    made, model = items(), backbone()
    rows = signal.scored_rows(environment(), model, made, 4096)
    for sample, old in zip(rows.samples, rows.old, strict=True):
        assert old == pytest.approx(list(sample.old), abs=1e-4)
    same = signal.scored_rows(environment(), model, [replace(i, skill=Skill("", "")) for i in made], 4096)
    assert len(same.samples) == len(rows.samples)


def test_cosine_of_a_method_without_auxiliary_loss_is_none() -> None:
    made, model = items(), backbone()
    rows = signal.scored_rows(environment(), model, made, 4096, Grpo())
    assert signal.gradient_cosine(model, rows, Grpo(), 4096)["cosine"] is None


def test_auxiliary_gradient_is_that_of_the_imitation_term() -> None:
    """Independent of micro-batching; scales with the coefficient, so the cosine does not move."""
    made, model = items(), backbone()
    rows = signal.scored_rows(environment(), model, made, 4096, Seed())
    one = signal.gradient_cosine(model, rows, Seed(coefficient=0.01), 4096)
    two = signal.gradient_cosine(model, rows, Seed(coefficient=0.02), 64)
    assert one["cosine"] == pytest.approx(two["cosine"], abs=2e-3)
    assert two["auxiliary_norm"] == pytest.approx(2 * one["auxiliary_norm"], rel=1e-2)
    assert -1 <= one["cosine"] <= 1


def test_a_diagnosis_is_reproducible_byte_for_byte(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    torch.manual_seed(1)
    path = write_run(tmp_path / "r")
    text = diagnose_run(path, tmp_path / "a", 8, 0)
    diagnose_run(path, tmp_path / "b", 8, 0)
    names = sorted(p.name for p in (tmp_path / "a").iterdir())
    assert names == ["diagnosis.json", "faithfulness.svg", "gate.svg", "support.svg", "verdict.md"]
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    diagnosis = json.loads((tmp_path / "a" / "diagnosis.json").read_text())
    assert diagnosis["items"] == 4 and "gate is flat" in text  # random weights cannot follow a skill
