"""What is left of a method without skills: the same weights, the same panel, with and without the bank skill.

The papers mark rows with skills by a star. The difference (ordinary minus with skills) is tested in pairs:
same training seeds, same tasks, same world seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from seedbench import stats
from seedbench.reports.collect import STAR, Arm, arms, collect
from seedbench.reports.layout import describe
from seedbench.tables import Block, Cell, Column, Row, Table

_COLUMNS = (
    Column("ordinary", "Ordinary", interval=True, compared=False),
    Column("skills", "With skills", interval=True, compared=False),
    Column("difference", "Difference", interval=True, compared=False),
    Column("p", "p", unit="p", decimals=4, compared=False),
)
NOTE = (
    "Difference: ordinary minus with skills, in points; negative means that the policy leans on skills it does "
    "not have at deployment. Intervals: bootstrap over seeds and tasks (both paired). p: exact McNemar for "
    "single plays, else sign flips of per-task means. Success rate over episodes (micro)."
)


def retention_table(runs: Iterable[str | Path]) -> Table:
    """One row per method, backbone and setting that was evaluated both ways; others are named below."""
    found, left_out = collect(runs)
    by_setting: dict[object, list[Arm]] = {}
    for arm in arms(found):
        by_setting.setdefault(arm.setting, []).append(arm)
    blocks = []
    for members in by_setting.values():
        pairs = [(a, b) for a in members for b in members if _starred_twin(a, b)]
        rows = tuple(_row(a, b) for a, b in pairs)
        single = [a.label for a in members if not any(a in pair for pair in pairs)]
        left_out += [f"{label}: evaluated one way only." for label in single]
        if rows:
            heading = describe(members[0].setting, members[0].success.shape[1])
            blocks.append(Block(heading, ("Method", "Backbone", "Seeds"), _COLUMNS, rows, (NOTE,)))
    return Table("retention", "Deployment retention", tuple(blocks), tuple(left_out))


def _starred_twin(a: Arm, b: Arm) -> bool:
    one, two = a.evaluations[0], b.evaluations[0]
    same = a.backbone == b.backbone and one.options == two.options and two.method == one.method + STAR
    return same and not one.stream.skills and two.stream.skills


def _row(ordinary: Arm, skills: Arm) -> Row:
    shared = sorted({e.seed for e in ordinary.evaluations} & {e.seed for e in skills.evaluations})
    a, b = (np.stack([e.success for e in arm.evaluations if e.seed in shared]) for arm in (ordinary, skills))
    n, runs, seeds = a.shape[1], ordinary.runs, len(shared)
    if a.shape[::2] == (1, 1):
        test = stats.mcnemar(a[0, :, 0] == 1, b[0, :, 0] == 1)
    else:
        test = stats.paired_permutation(np.nanmean(a, axis=(0, 2)), np.nanmean(b, axis=(0, 2)))
    spread = stats.percentile_interval(stats.hierarchical_bootstrap(a - b))
    cells = {
        "ordinary": Cell(float(np.nanmean(a)), n=n, seeds=seeds, interval=stats.rate_interval(a), runs=runs),
        "skills": Cell(float(np.nanmean(b)), n=n, seeds=seeds, interval=stats.rate_interval(b), runs=runs),
        "difference": Cell(float(np.nanmean(a - b)), n=n, seeds=seeds, interval=spread, runs=runs),
        "p": Cell(test.p, n=n, seeds=seeds, runs=runs, note=stats.ONE_SEED if seeds < 2 else ""),
    }
    return Row((ordinary.label, ordinary.backbone, str(seeds)), cells, ranked=False)
