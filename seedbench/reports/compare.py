"""Which differences between arms the data support: paired tests on the shared panel, Holm over the family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from seedbench import stats
from seedbench.errors import ConfigError
from seedbench.reports.builders import LABELS, Paths, by_setting
from seedbench.reports.collect import Arm, arms, collect
from seedbench.reports.layout import describe
from seedbench.tables import Block, Cell, Column, Row, Table

ALPHA = 0.05
#: Training seeds each side needs before a difference is called one.
MIN_SEEDS = 2


@dataclass(frozen=True, slots=True)
class Comparison:
    """A minus B in success rate. ``p_holm`` is adjusted over all comparisons made together."""

    a: Arm
    b: Arm
    difference: float
    interval: tuple[float, float]
    test: stats.PairedTest
    p_holm: float

    @property
    def seeds(self) -> int:
        return min(self.a.seeds, self.b.seeds)

    @property
    def separated(self) -> bool:
        """Both sides have enough seeds, the adjusted test and the interval over seeds and tasks agree."""
        apart = self.interval[0] > 0 or self.interval[1] < 0
        return self.seeds >= MIN_SEEDS and self.p_holm < ALPHA and apart

    @property
    def words(self) -> str:
        if self.seeds < MIN_SEEDS:
            return stats.ONE_SEED
        if not self.separated:
            return "no difference shown"
        return f"{(self.a if self.difference > 0 else self.b).label} higher"


def compare(pairs: Sequence[tuple[Arm, Arm]]) -> list[Comparison]:
    """Test a family of pairs. Raises :class:`ConfigError` for arms of different settings."""
    drawn = []
    for a, b in pairs:
        if a.setting != b.setting:
            raise ConfigError(
                f"'{a.label}' and '{b.label}' were evaluated under different settings "
                f"({a.setting.sha256} and {b.setting.sha256}); their numbers cannot be compared."
            )
        interval = stats.percentile_interval(stats.bootstrap_difference(a.success, b.success))
        drawn.append((a, b, interval, _test(a, b)))
    adjusted = stats.holm([test.p for *_, test in drawn])
    return [
        Comparison(a, b, float(np.nanmean(a.success) - np.nanmean(b.success)), interval, test, p)
        for (a, b, interval, test), p in zip(drawn, adjusted, strict=True)
    ]


def _test(a: Arm, b: Arm) -> stats.PairedTest:
    """Exact McNemar for one play of each task on both sides, else sign flips of per-task means."""
    if a.success.shape[::2] == b.success.shape[::2] == (1, 1):
        return stats.mcnemar(a.success[0, :, 0] == 1, b.success[0, :, 0] == 1)
    return stats.paired_permutation(_task_means(a.success), _task_means(b.success))


def _task_means(values: np.ndarray) -> np.ndarray:
    return np.nanmean(values, axis=(0, 2))


def tie_groups(members: Sequence[Arm]) -> list[tuple[int | None, Arm]]:
    """``(rank, arm)``, best first. Arms that no test separates from the best of their group share its rank.

    Arms that may not be ranked, and arms with one seed, get None and follow at the end.
    """
    able = [a for a in members if not a.not_ranked and a.seeds >= MIN_SEEDS]
    rest = [a for a in members if a not in able]
    by_value = sorted(able, key=lambda a: (-float(np.nanmean(a.success)), a.label, a.backbone))
    tests = {(id(c.a), id(c.b)): c for c in compare(list(combinations(by_value, 2)))}
    out: list[tuple[int | None, Arm]] = []
    leader, rank = None, 1
    for place, arm in enumerate(by_value, 1):
        if leader is None or tests[id(leader), id(arm)].separated:
            leader, rank = arm, place
        out.append((rank, arm))
    rest.sort(key=lambda a: (-float(np.nanmean(a.success)), a.label, a.backbone))
    return out + [(None, a) for a in rest]


def paired_table(runs: Paths) -> Table:
    """All pairs of ranked arms under one setting and backbone, tested as one family."""
    found, left_out = collect(runs)
    blocks = []
    for setting, members in by_setting(arms(found)).items():
        able = [a for a in members if not a.not_ranked]
        pairs = [(a, b) for a, b in combinations(able, 2) if a.backbone == b.backbone]
        columns = (
            Column("difference", "Difference", interval=True, compared=False),
            Column("p", "p", unit="number", decimals=4, compared=False),
            Column("holm", "p (Holm)", unit="number", decimals=4, compared=False),
            Column("verdict", "Verdict", unit="text", compared=False),
        )
        rows = tuple(_row(c) for c in compare(pairs))
        notes = (
            f"Family of {len(pairs)} comparisons; success rate over episodes (micro); {len(members)} arms.",
            "Intervals: bootstrap over training seeds (unpaired) and tasks (paired). p: sign flips of "
            "per-task means, exact McNemar for single plays. A difference counts when both exclude chance.",
        )
        heading = describe(setting, members[0].success.shape[1])
        blocks.append(Block(heading, ("A", "B", *LABELS[1:3]), columns, rows, notes))
    return Table("tests", "Paired tests", tuple(blocks), tuple(left_out))


def _row(c: Comparison) -> Row:
    runs = c.a.runs + c.b.runs
    cells = {
        "difference": Cell(c.difference, n=c.test.n, seeds=c.seeds, interval=c.interval, runs=runs),
        "p": Cell(c.test.p, n=c.test.n, seeds=c.seeds, runs=runs),
        "holm": Cell(c.p_holm, n=c.test.n, seeds=c.seeds, runs=runs),
        "verdict": Cell(text=c.words, runs=runs),
    }
    return Row((c.a.label, c.b.label, c.a.backbone, f"{c.a.seeds}/{c.b.seeds}"), cells, ranked=False)
