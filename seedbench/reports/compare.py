"""Which differences between arms the data support: paired tests on the shared panel, Holm over the family.

Every pair is compared twice: with its final checkpoints, and where both had spent the same training tokens.
"""

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
from seedbench.reports.spending import Curves, training_tokens, updates_of
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


def paired_table(runs: Paths, reference: str = "", curves: Curves | None = None) -> Table:
    """Pairs of ranked arms under one setting and backbone, tested as one family.

    All pairs, or with ``reference`` only those of that arm and another: fewer questions, so a milder adjustment.
    ``curves`` may be shared with other tables of the same runs. Raises :class:`ConfigError` when no block has
    such an arm.
    """
    found, left_out = collect(runs)
    curves, blocks, known = curves or Curves(), [], set()
    for setting, members in by_setting(arms(found)).items():
        able = [a for a in members if not a.not_ranked]
        known |= {a.label for a in able}
        pairs = _pairs(able, reference)
        if pairs or not reference:
            tasks = members[0].success.shape[1]
            blocks.append(_block(describe(setting, tasks), len(able), pairs, curves))
    if reference and reference not in known:
        raise ConfigError(f"There is no arm '{reference}' to compare with. Arms: {', '.join(sorted(known))}.")
    return Table("tests", "Paired tests", tuple(blocks), tuple(left_out))


def _pairs(able: Sequence[Arm], reference: str) -> list[tuple[Arm, Arm]]:
    """All pairs of one backbone; with a reference, the pairs of another arm (A) and it (B)."""
    pairs = [(a, b) for a, b in combinations(able, 2) if a.backbone == b.backbone]
    if not reference:
        return pairs
    return [(b, a) if a.label == reference else (a, b) for a, b in pairs if reference in (a.label, b.label)]


def _block(heading: str, count: int, pairs: Sequence[tuple[Arm, Arm]], curves: Curves) -> Block:
    cut = {i: c for i, pair in enumerate(pairs) if (c := _matched(pair, curves)) is not None}
    matched = dict(zip(cut, compare(list(cut.values())), strict=True))
    rows = tuple(_row(c, matched.get(i)) for i, c in enumerate(compare(pairs)))
    notes = (
        f"Two families, {len(pairs)} comparisons of final checkpoints and {len(cut)} at equal training tokens; "
        f"success rate over episodes (micro); {count} arms.",
        "Equal tokens: of each pair the one that spent less stands with its final checkpoint, the other with the "
        "newest evaluation that these tokens bought; in brackets the updates of A and B.",
        "Intervals: bootstrap over training seeds (unpaired) and tasks (paired). p: sign flips of per-task means, "
        "exact McNemar for single plays. A difference counts when both exclude chance.",
    )
    return Block(heading, ("A", "B", *LABELS[1:3]), COLUMNS, rows, notes)


def _matched(pair: tuple[Arm, Arm], curves: Curves) -> tuple[Arm, Arm] | None:
    """Both arms at the training tokens of the one that spent less; None when one of them did not train."""
    budgets = [training_tokens(arm) for arm in pair]
    a, b = (curves.within(arm, min(budgets)) for arm in pair) if all(budgets) else (None, None)
    return (a, b) if a is not None and b is not None else None


COLUMNS = tuple(
    Column(f"{key}{name}", title, group, unit, decimals, interval=name == "difference", compared=False)
    for key, group in (("", "Final checkpoints"), ("equal.", "Equal training tokens"))
    for name, title, unit, decimals in (
        ("difference", "Difference", "percent", 1),
        ("p", "p", "p", 4),
        ("holm", "p (Holm)", "p", 4),
        ("verdict", "Verdict", "text", 0),
    )
)


def _row(c: Comparison, matched: Comparison | None) -> Row:
    cells = _cells(c, "")
    if matched is not None:
        updates = f"({updates_of(matched.a)} : {updates_of(matched.b)})"
        cells |= _cells(matched, "equal.", updates)
    return Row((c.a.label, c.b.label, c.a.backbone, f"{c.a.seeds}/{c.b.seeds}"), cells, ranked=False)


def _cells(c: Comparison, key: str, note: str = "") -> dict[str, Cell]:
    n, seeds, runs = c.test.n, c.seeds, c.a.runs + c.b.runs
    return {
        f"{key}difference": Cell(c.difference, n=n, seeds=seeds, interval=c.interval, runs=runs, note=note),
        f"{key}p": Cell(c.test.p, n=n, seeds=seeds, runs=runs),
        f"{key}holm": Cell(c.p_holm, n=n, seeds=seeds, runs=runs),
        f"{key}verdict": Cell(text=c.words, runs=runs),
    }
