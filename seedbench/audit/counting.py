"""Which success counts can lie behind printed rates. Pure arithmetic on rounded percentages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations

import numpy as np

#: Half a unit of the last printed digit, with room for either way of rounding a tie.
HALF = 0.05 + 1e-9


def counts_for(rate: float, n: int, cut: bool = False) -> list[int]:
    """Success counts k of n that print as ``rate`` (one decimal, percent); ``cut``: or are cut off to it."""
    near, above = round(rate * n / 100), 2 * HALF if cut else HALF
    return [k for k in range(max(0, near - 1), min(n, near + 1) + 1) if -HALF <= 100 * k / n - rate <= above]


def possible(rate: float, n: int, rounds: int = 1) -> bool:
    """Whether ``rate`` can be k of n, or of n played up to ``rounds`` times, rounded or cut off."""
    return any(counts_for(rate, n * m, cut=True) for m in range(1, rounds + 1))


@cache
def _pairs(rate: float, limit: int) -> tuple[tuple[int, int], ...]:
    return tuple((n, k) for n in range(1, limit + 1) for k in counts_for(rate, n, cut=True))


@cache
def draw_counts(rates: tuple[float, ...], draws: int) -> frozenset[int]:
    """Total successes reachable by group rates whose unknown group sizes (at least 1) sum to ``draws``."""
    reach = np.zeros((draws + 1, draws + 1), dtype=bool)  # [tasks so far, successes so far]
    reach[0, 0] = True
    for rate in rates:
        step = np.zeros_like(reach)
        for n, k in _pairs(rate, draws):
            step[n:, k:] |= reach[: draws + 1 - n, : draws + 1 - k]
        reach = step
    return frozenset(int(k) for k in np.flatnonzero(reach[draws]))


def micro_possible(rates: Sequence[float], average: float, draws: int) -> bool:
    """Whether ``average`` can be the share of successes over ``draws`` draws with these group rates."""
    return bool(set(counts_for(average, draws, cut=True)) & draw_counts(tuple(rates), draws))


def macro_possible(rates: Sequence[float], average: float) -> bool:
    """Whether ``average`` can be the unweighted mean of rates that were themselves rounded."""
    return abs(sum(rates) / len(rates) - average) <= 2 * HALF


def weighted_possible(rates: Sequence[float], sizes: Sequence[int], average: float) -> bool:
    """Whether ``average`` can be the mean over all tasks of groups of known sizes."""
    mean = sum(r * n for r, n in zip(rates, sizes, strict=True)) / sum(sizes)
    return abs(mean - average) <= 2 * HALF


def implied_sizes(
    rows: Sequence[Sequence[float]], total: int, limit: int = 50
) -> tuple[list[int], list[tuple[int, ...]]]:
    """Group sizes summing to ``total`` that fit the rates of as many rows as possible at once.

    Returns the places of the rows that fit together and the first ``limit`` solutions; both empty when not
    even one row fits.
    """
    for count in range(len(rows), 0, -1):
        for chosen in combinations(range(len(rows)), count):
            columns = [[rows[i][j] for i in chosen] for j in range(len(rows[0]))]
            sizes = [[n for n in range(1, total + 1) if all(counts_for(r, n) for r in c)] for c in columns]
            found = _sum_to(sizes, total, limit)
            if found:
                return list(chosen), found
    return [], []


def _sum_to(sizes: Sequence[Sequence[int]], total: int, limit: int) -> list[tuple[int, ...]]:
    if not sizes:
        return [()] if total == 0 else []
    least = sum(min(s, default=total + 1) for s in sizes[1:])
    out: list[tuple[int, ...]] = []
    for n in sizes[0]:
        if n + least > total:
            break
        out += [(n, *rest) for rest in _sum_to(sizes[1:], total - n, limit - len(out))]
        if len(out) >= limit:
            break
    return out
