"""What training cost, and where an arm stood when it had spent a given number of tokens.

Two methods are compared after equal updates (sample efficiency) and after equal training tokens (compute
efficiency): warm-up, analysis and teacher scoring are paid for like rollouts and updates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seedbench.reports.collect import Arm, Evaluation, evaluate
from seedbench.store import Run

#: Stages in the order in which an update runs them.
STAGES = ("sft", "rollout", "analysis", "scoring", "update", "evaluation")
EVALUATION = "evaluation"


@dataclass(frozen=True, slots=True)
class Spent:
    seconds: float = 0.0
    tokens: int = 0
    flops: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.seconds + other.seconds, self.tokens + other.tokens, self.flops + other.flops)


def spent_by_stage(run: Run) -> dict[str, Spent]:
    """Sums of ``costs.jsonl``; stages that are not on record are absent."""
    out: dict[str, Spent] = {}
    for line in run.costs():
        piece = Spent(float(line["seconds"]), int(line["tokens"]), float(line["flops"]))
        out[line["stage"]] = out.get(line["stage"], Spent()) + piece
    return dict(sorted(out.items(), key=lambda kv: stage_place(kv[0])))


def stage_place(stage: str) -> tuple[int, str]:
    """Sort key: the order of an update, unknown stages last by name."""
    return (STAGES.index(stage) if stage in STAGES else len(STAGES), stage)


def training(run: Run) -> Spent:
    """Everything except evaluation."""
    return sum((s for stage, s in spent_by_stage(run).items() if stage != EVALUATION), Spent())


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """One evaluation on the way, and what was ``spent`` on training until then."""

    spent: Spent
    evaluation: Evaluation

    @property
    def update(self) -> int:
        return self.evaluation.update

    @property
    def success(self) -> np.ndarray:
        return self.evaluation.success


def curve(last: Evaluation) -> list[Point]:
    """Evaluations of the run of ``last`` on its panel and with its kind of prompts, by number of updates."""
    run, wanted = last.run, (last.stream.panel, last.stream.skills)
    costs, points = run.costs(), {}
    for stream in run.streams():
        if stream.phase != "eval" or (stream.panel, stream.skills) != wanted:
            continue
        e = last if stream == last.stream else evaluate(run, stream)
        if e.result.total.played:
            points[e.update] = Point(_spent_before(costs, e.update), e)
    return [points[u] for u in sorted(points)]


def _spent_before(costs: Sequence[Mapping[str, Any]], update: int) -> Spent:
    before = (c for c in costs if c["stage"] == "sft" or (c["update"] < update and c["stage"] != EVALUATION))
    return sum((Spent(float(c["seconds"]), int(c["tokens"]), float(c["flops"])) for c in before), Spent())


def training_tokens(arm: Arm) -> int:
    """Of the arm's dearest seed, so that with this budget all its seeds stand with their final checkpoints."""
    return max(training(e.run).tokens for e in arm.evaluations)


def cheapest(part: Sequence[Arm]) -> int:
    """Training tokens of the trained arm that spent least; 0 when none trained."""
    return min((t for t in map(training_tokens, part) if t), default=0)


class Curves:
    """Learning curves, each read once, and arms cut back to a budget."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], list[Point]] = {}

    def of(self, evaluation: Evaluation) -> list[Point]:
        key = (str(evaluation.run.path), evaluation.stream.name)
        if key not in self._known:
            self._known[key] = curve(evaluation)
        return self._known[key]

    def within(self, arm: Arm, budget: int) -> Arm | None:
        """``arm`` with the newest evaluation that at most ``budget`` training tokens bought, for every seed;
        None when a seed has none."""
        points = [[p for p in self.of(e) if p.spent.tokens <= budget] for e in arm.evaluations]
        if not all(points):
            return None
        return replace(arm, evaluations=tuple(p[-1].evaluation for p in points))


def updates_of(arm: Arm) -> str:
    """After how many updates the arm's evaluations were made: ``24``, or ``16/20`` where seeds differ."""
    return "/".join(map(str, sorted({e.update for e in arm.evaluations})))
