"""What a score cost: tokens, seconds and FLOPs by stage, beside the score at equal tokens.

Evaluation is not counted as training cost; it is shown on its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from seedbench import stats
from seedbench.reports.builders import LABELS, Paths, by_setting
from seedbench.reports.collect import Arm, Setting, arms, collect
from seedbench.reports.layout import describe, title
from seedbench.reports.spending import (
    Curves,
    Spent,
    cheapest,
    spent_by_stage,
    stage_place,
    training,
    updates_of,
)
from seedbench.tables import Block, Cell, Column, Row, Table


def cost_table(runs: Paths, curves: Curves | None = None) -> Table:
    """Costs per training run (mean over seeds) beside the final score and the score at equal tokens.

    ``curves`` may be shared with other tables of the same runs.
    """
    found, left_out = collect(runs)
    curves = curves or Curves()
    blocks = [_block(setting, part, curves) for setting, part in by_setting(arms(found)).items()]
    return Table("costs", "What the scores cost", tuple(blocks), tuple(left_out))


def _block(setting: Setting, part: Sequence[Arm], curves: Curves) -> Block:
    stages = sorted({s for a in part for e in a.evaluations for s in spent_by_stage(e.run)}, key=stage_place)
    budget = cheapest(part)
    columns = [
        Column("final", "Final", "Success", interval=True),
        Column("equal", "At equal tokens", "Success", interval=True),
    ]
    columns += [Column(f"tokens.{s}", s, "Tokens (k)", "number", compared=False) for s in stages]
    columns += [Column("tokens", "training", "Tokens (k)", "number", compared=False)]
    columns += [Column(f"seconds.{s}", s, "Seconds", "number", compared=False) for s in stages]
    columns += [Column("seconds", "training", "Seconds", "number", compared=False)]
    columns += [Column("flops", "training", "TFLOP", "number", 3, compared=False)]
    rows = tuple(_row(arm, stages, budget, curves) for arm in part)
    equal = (
        f"Means over training seeds. Equal tokens: the newest evaluation (its updates in brackets) after at most "
        f"{budget:,} training tokens, what the cheapest trained arm here spent. Pairwise: paired tests."
    )
    notes = (
        equal if budget else "Means over training seeds. No arm recorded training tokens.",
        "Training is everything but evaluation. FLOPs are estimated from parameters and tokens.",
    )
    heading = f"{title(setting.env)}: {describe(setting, part[0].success.shape[1])}"
    return Block(heading, LABELS, tuple(columns), rows, notes)


def _row(arm: Arm, stages: Sequence[str], budget: int, curves: Curves) -> Row:
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
        "equal": _at_equal(arm, budget, curves),
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


def _at_equal(arm: Arm, budget: int, curves: Curves) -> Cell:
    cut = curves.within(arm, budget)
    if cut is None:
        return Cell(seeds=arm.seeds, runs=arm.runs)
    values, note = cut.success, f"(u{updates_of(cut)})"
    return Cell(float(np.nanmean(values)), n=values.shape[1], seeds=arm.seeds,
                interval=stats.rate_interval(values), runs=arm.runs, note=note)  # fmt: skip


def _mean(arm: Arm, values: Sequence[float]) -> Cell:
    return Cell(float(np.mean(values)), seeds=arm.seeds, runs=arm.runs)
