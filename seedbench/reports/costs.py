"""What a score cost: tokens, seconds and FLOPs by stage, and scores at equal tokens.

Sample efficiency (score after equal updates) and compute efficiency (score after equal training tokens)
stand side by side. Evaluation is not counted as training cost; it is shown on its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seedbench import stats
from seedbench.reports.builders import LABELS, Paths, by_setting
from seedbench.reports.collect import Arm, Evaluation, Setting, arms, collect
from seedbench.reports.layout import describe, title
from seedbench.score import PanelTable, value_array
from seedbench.store import Run
from seedbench.tables import Block, Cell, Column, Row, Table

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
    return dict(sorted(out.items(), key=lambda kv: _stage_place(kv[0])))


def _stage_place(stage: str) -> tuple[int, str]:
    return (STAGES.index(stage) if stage in STAGES else len(STAGES), stage)


def training(run: Run) -> Spent:
    """Everything except evaluation."""
    return sum((s for stage, s in spent_by_stage(run).items() if stage != EVALUATION), Spent())


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """One evaluation on the way: after ``update`` updates and ``spent`` on training.

    ``success`` (tasks, repeats) as in :func:`seedbench.score.value_array`.
    """

    update: int
    spent: Spent
    success: np.ndarray

    @property
    def value(self) -> float:
        return float(np.nanmean(self.success))


def curve(evaluation: Evaluation) -> list[Point]:
    """Evaluations of the run on the same panel and with the same prompts, by number of updates."""
    run, last = evaluation.run, evaluation.stream
    panel = PanelTable.of(run.manifest["panels"][last.panel])
    costs = run.costs()
    points: dict[int, Point] = {}
    for stream in run.streams():
        if stream.phase != "eval" or (stream.panel, stream.skills) != (last.panel, last.skills):
            continue
        records = run.records(stream.name)
        if not records:
            continue
        update = int(records[0]["update"])
        before = [
            c for c in costs if c["stage"] == "sft" or (c["update"] < update and c["stage"] != EVALUATION)
        ]
        spent = sum(
            (Spent(float(c["seconds"]), int(c["tokens"]), float(c["flops"])) for c in before), Spent()
        )
        points[update] = Point(update, spent, value_array(records, panel)[0])
    return [points[u] for u in sorted(points)]


def cost_table(runs: Paths) -> Table:
    """Costs per training run (mean over seeds) beside the final score and the score at equal tokens."""
    found, left_out = collect(runs)
    blocks = [_block(setting, part) for setting, part in by_setting(arms(found)).items()]
    return Table("costs", "What the scores cost", tuple(blocks), tuple(left_out))


def _block(setting: Setting, part: Sequence[Arm]) -> Block:
    stages = sorted({s for a in part for e in a.evaluations for s in spent_by_stage(e.run)}, key=_stage_place)
    budget = common_budget(part)
    columns = [
        Column("final", "Final", "Success", interval=True),
        Column("equal", "At equal tokens", "Success"),
    ]
    columns += [Column(f"tokens.{s}", s, "Tokens (k)", "number", compared=False) for s in stages]
    columns += [Column("tokens", "training", "Tokens (k)", "number", compared=False)]
    columns += [Column(f"seconds.{s}", s, "Seconds", "number", compared=False) for s in stages]
    columns += [Column("seconds", "training", "Seconds", "number", compared=False)]
    columns += [Column("flops", "training", "TFLOP", "number", 3, compared=False)]
    rows = tuple(_row(arm, stages, budget) for arm in part)
    equal = (
        f"Means over training seeds. Equal tokens: the newest evaluation after at most {budget:,} training "
        "tokens, the smallest budget of a trained arm here."
    )
    notes = (
        equal if budget else "Means over training seeds. No arm recorded training tokens.",
        "Training is everything but evaluation. FLOPs are estimated from parameters and tokens.",
    )
    heading = f"{title(setting.env)}: {describe(setting, part[0].success.shape[1])}"
    return Block(heading, LABELS, tuple(columns), rows, notes)


def common_budget(part: Sequence[Arm]) -> int:
    """Smallest number of training tokens of any run that trained; 0 when none did."""
    totals = [training(e.run).tokens for a in part for e in a.evaluations]
    return min((t for t in totals if t), default=0)


def at_tokens(evaluation: Evaluation, budget: int) -> Point | None:
    """The newest evaluation that at most ``budget`` training tokens bought; None when there is none."""
    within = [p for p in curve(evaluation) if p.spent.tokens <= budget]
    return within[-1] if within else None


def _row(arm: Arm, stages: Sequence[str], budget: int) -> Row:
    by_stage: dict[str, list[Spent]] = defaultdict(list)
    for e in arm.evaluations:
        spent = spent_by_stage(e.run)
        for stage in stages:
            by_stage[stage].append(spent.get(stage, Spent()))
    total = [training(e.run) for e in arm.evaluations]
    values = arm.success
    cells = {
        "final": Cell(float(np.nanmean(values)), n=values.shape[1], seeds=arm.seeds,
                      interval=stats.rate_interval(values), runs=arm.runs),
        "equal": _at_equal(arm, budget),
        "tokens": _mean(arm, [s.tokens / 1e3 for s in total]),
        "seconds": _mean(arm, [s.seconds for s in total]),
        "flops": _mean(arm, [s.flops / 1e12 for s in total]),
    }  # fmt: skip
    for stage, spent in by_stage.items():
        cells[f"tokens.{stage}"] = _mean(arm, [s.tokens / 1e3 for s in spent])
        cells[f"seconds.{stage}"] = _mean(arm, [s.seconds for s in spent])
    ranked = not arm.not_ranked
    label = arm.label + ("" if ranked else " †")
    return Row((label, arm.backbone, str(arm.seeds), "measured"), cells, ranked)


def _at_equal(arm: Arm, budget: int) -> Cell:
    points = [at_tokens(e, budget) for e in arm.evaluations]
    if any(p is None for p in points):
        return Cell(seeds=arm.seeds, runs=arm.runs)
    value = float(np.mean([p.value for p in points if p is not None]))
    updates = sorted({p.update for p in points if p is not None})
    note = f"(u{'/'.join(map(str, updates))})"
    return Cell(value, n=arm.success.shape[1], seeds=arm.seeds, runs=arm.runs, note=note)


def _mean(arm: Arm, values: Sequence[float]) -> Cell:
    return Cell(float(np.mean(values)), seeds=arm.seeds, runs=arm.runs)
