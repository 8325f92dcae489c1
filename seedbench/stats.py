"""Statistics of success rates measured on a shared panel, by few training seeds.

Intervals are 95 % unless told otherwise. All functions are pure; randomness comes from a seeded generator,
so the same data give the same digits.

Sources: Wilson 1927 (score interval); McNemar 1947, exact form; Holm 1979; Efron & Tibshirani 1993, ch. 13
(percentile bootstrap); Phipson & Smyth 2010 (a Monte Carlo p-value counts the observed arrangement).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats as _scipy

#: Said wherever a difference between methods rests on a single training seed.
ONE_SEED = "one seed: no claim"
_CHUNK = 4_000_000  # array elements drawn at once


def wilson(successes: int, n: int, level: float = 0.95) -> tuple[float, float] | None:
    """Wilson score interval of a proportion; None when ``n`` is 0."""
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return None
    bounds = _scipy.binomtest(successes, n).proportion_ci(level, method="wilson")
    return float(bounds.low), float(bounds.high)


def standard_error(values: Sequence[float]) -> float | None:
    """Standard error of a mean; None below two values (BR-055), never 0 or NaN for lack of data."""
    if len(values) < 2:
        return None
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def hierarchical_bootstrap(
    values: np.ndarray, groups: Sequence[str] | None = None, *, samples: int = 2000, seed: int = 0
) -> np.ndarray:
    """Bootstrap distribution (samples,) of a mean over training seed, task and repeat.

    ``values`` (seeds, tasks, repeats), NaN where there is no such repeat. Seeds and tasks are crossed: every
    seed was evaluated on the same tasks, so one draw of tasks serves all drawn seeds; repeats are drawn
    within their cell. With ``groups`` (one per task) the statistic is the macro mean: tasks are drawn within
    their group and group means are averaged; without, it is the mean over all episodes (micro).
    """
    return _bootstrap([values], groups, samples, seed)[0]


def bootstrap_difference(
    a: np.ndarray, b: np.ndarray, groups: Sequence[str] | None = None, *, samples: int = 2000, seed: int = 0
) -> np.ndarray:
    """Bootstrap distribution of mean(a) - mean(b): both sides share the drawn tasks, not the drawn seeds."""
    if a.shape[1] != b.shape[1]:
        raise ValueError("a paired comparison needs the same tasks on both sides")
    one, two = _bootstrap([a, b], groups, samples, seed)
    return one - two


def _bootstrap(
    sides: Sequence[np.ndarray], groups: Sequence[str] | None, samples: int, seed: int
) -> list[np.ndarray]:
    """Distributions (samples,) of the sides' means under common draws of tasks."""
    sides = [np.asarray(v, dtype=float) for v in sides]
    strata = [np.arange(sides[0].shape[1])] if groups is None else _strata(groups)
    parts = [_Stratum([v[:, places] for v in sides], (seed, i)) for i, places in enumerate(strata)]
    seed_rngs = [np.random.default_rng([seed, 1, k]) for k in range(len(sides))]
    out = [np.empty(samples) for _ in sides]
    step = max(1, _CHUNK // max(1, *(part.size for part in parts)))
    for start in range(0, samples, step):
        stop = min(start + step, samples)
        seed_weights = [_weights(rng, len(v), stop - start) for rng, v in zip(seed_rngs, sides, strict=True)]
        means = np.mean([part.draw(seed_weights) for part in parts], axis=0)
        for k, side in enumerate(out):
            side[start:stop] = means[k]
    return out


def _weights(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """How often each of ``n`` things is drawn in ``n`` draws with replacement (size, n)."""
    return rng.multinomial(n, np.full(n, 1 / n), size).astype(float)


def _strata(groups: Sequence[str]) -> list[np.ndarray]:
    names = np.asarray(groups)
    return [np.flatnonzero(names == g) for g in dict.fromkeys(groups)]


class _Stratum:
    """Tasks drawn together. Arrays of a side are (seeds, tasks, repeats).

    With one repeat per cell, tasks of equal outcomes on all sides and seeds are exchangeable, so only how
    many of each kind are drawn matters: that keeps panels of tens of thousands of tasks cheap.
    """

    def __init__(self, sides: Sequence[np.ndarray], key: tuple[int, int]) -> None:
        self.n = sides[0].shape[1]
        self.counts = [np.sum(~np.isnan(v), axis=2).astype(float) for v in sides]
        self.sums = [np.nansum(v, axis=2) for v in sides]
        self.repeats = None if all(c.max(initial=0) <= 1 for c in self.counts) else list(sides)
        self.kinds = np.full(self.n, 1 / self.n)
        if self.repeats is None:
            self._merge()
        self.size = sum(s.size for s in (self.repeats or self.sums)) + len(self.kinds)
        self.task_rng = np.random.default_rng([key[0], 0, key[1]])
        self.repeat_rng = np.random.default_rng([key[0], 2, key[1]])

    def _merge(self) -> None:
        rows = [len(c) for c in self.counts]
        stacked = np.concatenate([*self.sums, *self.counts])
        kinds, times = np.unique(stacked, axis=1, return_counts=True)
        parts = np.split(kinds, np.cumsum([*rows, *rows])[:-1])
        self.sums, self.counts = parts[: len(rows)], parts[len(rows) :]
        self.kinds = times / self.n

    def draw(self, seed_weights: Sequence[np.ndarray]) -> np.ndarray:
        """Means (sides, draws) under the drawn seeds and freshly drawn tasks and repeats."""
        size = len(seed_weights[0])
        tasks = self.task_rng.multinomial(self.n, self.kinds, size).astype(float)
        out = []
        for k, weight in enumerate(seed_weights):
            if self.repeats is None:
                sums = weight @ self.sums[k]
            else:
                drawn = _repeat_sums(self.repeats[k], self.counts[k], size, self.repeat_rng)
                sums = np.einsum("bs,bst->bt", weight, drawn)
            out.append(np.sum(sums * tasks, axis=1) / np.sum((weight @ self.counts[k]) * tasks, axis=1))
        return np.array(out)


def _repeat_sums(values: np.ndarray, counts: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Sums (b, S, T) over repeats drawn with replacement within each (seed, task) cell."""
    packed = np.sort(np.isnan(values), axis=2, kind="stable")  # False first: where values go
    filled = np.zeros_like(values)
    filled[~packed] = values[~np.isnan(values)]
    picks = np.floor(rng.random((size, *values.shape)) * counts[None, :, :, None]).astype(np.intp)
    drawn = np.take_along_axis(filled[None], picks, axis=3)
    return np.sum(drawn * ~packed[None], axis=3)


def percentile_interval(distribution: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    tail = 50 * (1 - level)
    low, high = np.percentile(distribution, [tail, 100 - tail])
    return float(low), float(high)


def rate_interval(
    values: np.ndarray, groups: Sequence[str] | None = None, level: float = 0.95, seed: int = 0
) -> tuple[float, float] | None:
    """Interval of a mean of values (seeds, tasks, repeats).

    One seed, one repeat, zeros and ones: Wilson over the tasks. Otherwise the hierarchical bootstrap; where
    every value is 0 or every value is 1 that would have no width, so Wilson over the *tasks* is given (seeds
    and repeats of a task are not independent evidence). None without data or for a constant of other kind.
    """
    known = values[~np.isnan(values)]
    if known.size == 0:
        return None
    binary = bool(np.all((known == 0) | (known == 1)))
    same = bool(np.all(known == known[0]))
    single = values.shape[0] == 1 and known.size == values.shape[1]
    if binary and (same or (single and groups is None)):
        n = values.shape[1]
        return wilson(round(float(known.mean()) * n), n, level)
    if same:
        return None
    return percentile_interval(hierarchical_bootstrap(values, groups, seed=seed), level)


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Result of a paired test: mean difference A - B over tasks, two-sided p, and how it was got."""

    difference: float
    p: float
    n: int
    method: str


def mcnemar(a: Sequence[bool], b: Sequence[bool]) -> PairedTest:
    """Exact McNemar test on tasks both were evaluated on: a binomial test of the discordant pairs."""
    x, y = np.asarray(a, dtype=bool), np.asarray(b, dtype=bool)
    if x.shape != y.shape:
        raise ValueError("McNemar's test needs the same tasks on both sides")
    only_a, only_b = int(np.sum(x & ~y)), int(np.sum(~x & y))
    p = 1.0 if only_a + only_b == 0 else _scipy.binomtest(only_a, only_a + only_b).pvalue
    n = len(x)
    return PairedTest((only_a - only_b) / n if n else 0.0, float(p), n, "exact McNemar")


def paired_permutation(
    a: Sequence[float], b: Sequence[float], *, samples: int = 20_000, seed: int = 0
) -> PairedTest:
    """Sign-flip test of the mean paired difference; exact up to 16 tasks that differ, else Monte Carlo."""
    d = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    n, mean = len(d), float(np.mean(d)) if len(d) else 0.0
    moving = d[d != 0]
    if moving.size == 0:
        return PairedTest(mean, 1.0, n, "paired permutation, exact")
    observed = abs(float(np.sum(moving))) * (1 - 1e-9)  # sums of equal terms in another order are equal
    if moving.size <= 16:
        bits = (np.arange(2**moving.size)[:, None] >> np.arange(moving.size)) & 1
        p = float(np.mean(np.abs((2 * bits - 1) @ moving) >= observed))
        return PairedTest(mean, p, n, "paired permutation, exact")
    # flipped signs of equal magnitudes add up to a binomial count
    sizes, times = np.unique(np.round(np.abs(moving), 12), return_counts=True)
    rng, hits, done = np.random.default_rng(seed), 0, 0
    while done < samples:
        draws = min(samples - done, max(1, _CHUNK // sizes.size))
        plus = rng.binomial(times, 0.5, (draws, sizes.size))
        hits += int(np.sum(np.abs((2 * plus - times) @ sizes) >= observed))
        done += draws
    return PairedTest(mean, (hits + 1) / (samples + 1), n, f"paired permutation, {samples} draws")


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given."""
    order = np.argsort(p_values, kind="stable")
    adjusted, running = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * float(p_values[i])))
        adjusted[i] = running
    return adjusted


def minimum_detectable_effect(
    n: int, rate: float = 0.5, *, correlation: float = 0.0, alpha: float = 0.05, power: float = 0.8
) -> float | None:
    """Smallest true difference of two success rates that ``n`` tasks each would show.

    Normal approximation (z_{1-alpha/2} + z_{power}) * sqrt(2 p (1-p) (1-correlation) / n), where
    ``correlation`` is that of the paired outcomes (0: as if unpaired, the cautious case). None for n = 0.
    """
    if n == 0:
        return None
    z = _scipy.norm.ppf(1 - alpha / 2) + _scipy.norm.ppf(power)
    return float(z * np.sqrt(2 * rate * (1 - rate) * (1 - correlation) / n))
