"""Statistics against closed forms, statsmodels and scipy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import mcnemar as sm_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import NormalIndPower
from statsmodels.stats.proportion import proportion_confint, proportion_effectsize

from seedbench import stats


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_equals_statsmodels(case: tuple[int, int]) -> None:
    k, n = case
    assert stats.wilson(k, n) == pytest.approx(proportion_confint(k, n, method="wilson"), abs=1e-9)


def test_wilson_closed_form_and_edges() -> None:
    z = scipy_stats.norm.ppf(0.975)
    k, n = 96, 128
    centre, half = (k + z * z / 2) / (n + z * z), z * math.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    assert stats.wilson(k, n) == pytest.approx((centre - half, centre + half))
    assert stats.wilson(0, 0) is None
    assert stats.wilson(0, 1)[0] == pytest.approx(0, abs=1e-12) and stats.wilson(1, 1)[1] == pytest.approx(1)
    with pytest.raises(ValueError):
        stats.wilson(3, 2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_mcnemar_equals_statsmodels(pairs: list[tuple[bool, bool]]) -> None:
    a, b = zip(*pairs, strict=True)
    table = [[sum(x and y for x, y in pairs), sum(x and not y for x, y in pairs)],
             [sum(y and not x for x, y in pairs), sum(not x and not y for x, y in pairs)]]  # fmt: skip
    if table[0][1] + table[1][0]:
        assert stats.mcnemar(a, b).p == pytest.approx(sm_mcnemar(table, exact=True).pvalue)
    else:
        assert stats.mcnemar(a, b).p == 1.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=14))
def test_sign_flips_of_binary_outcomes_are_mcnemar(pairs: list[tuple[bool, bool]]) -> None:
    a, b = zip(*pairs, strict=True)
    assert stats.paired_permutation(a, b).p == pytest.approx(stats.mcnemar(a, b).p)


def test_permutation_equals_scipy_exactly_and_by_sampling() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.random(10), rng.random(10)
    want = scipy_stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True,
        n_resamples=np.inf,
    )  # fmt: skip
    assert stats.paired_permutation(a, b).p == pytest.approx(want.pvalue)
    a, b = rng.random(60) + 0.12, rng.random(60)
    want = scipy_stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True,
        n_resamples=10_000, random_state=1,
    )  # fmt: skip
    got = stats.paired_permutation(a, b)
    assert got.p == pytest.approx(want.pvalue, abs=0.015) and got.p > 0
    assert got == stats.paired_permutation(a, b)
    assert got.difference == pytest.approx(np.mean(a - b))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_equals_statsmodels(p_values: list[float]) -> None:
    assert stats.holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_holm_of_nothing() -> None:
    assert stats.holm([]) == []


@pytest.mark.parametrize("n", [20, 134, 1000])
def test_minimum_detectable_effect_has_the_power_it_promises(n: int) -> None:
    effect = stats.minimum_detectable_effect(n)
    z = NormalIndPower().solve_power(None, nobs1=n, alpha=0.05, power=0.8)
    # statsmodels works on the arcsine scale, where h = 2 asin sqrt(p1) - 2 asin sqrt(p2) ~ 2 (p1 - p2) at 0.5
    assert proportion_effectsize(0.5 + effect / 2, 0.5 - effect / 2) == pytest.approx(z, rel=0.06)
    assert stats.minimum_detectable_effect(n, correlation=0.5) == pytest.approx(effect * math.sqrt(0.5))
    assert stats.minimum_detectable_effect(0) is None


def test_br_055_standard_error_of_one_value_is_absent() -> None:
    assert stats.standard_error([0.5]) is None and stats.standard_error([]) is None
    assert stats.standard_error([0.0, 1.0]) == pytest.approx(0.5)


def test_bootstrap_over_tasks_alone_enumerated_in_full() -> None:
    """One seed, one repeat: the distribution is that of all draws of tasks with replacement."""
    x = np.array([0.0, 1.0, 1.0, 0.5])
    exact = np.array([np.mean(x[list(draw)]) for draw in itertools.product(range(4), repeat=4)])
    got = stats.hierarchical_bootstrap(x[None, :, None], samples=20_000)
    for q in (0.1, 0.3, 0.5, 0.8):
        cut = np.quantile(exact, q) + 1e-9
        assert np.mean(got <= cut) == pytest.approx(np.mean(exact <= cut), abs=0.015)


def test_bootstrap_variance_has_all_three_levels() -> None:
    """Seeds, tasks and repeats drawn: the variance is the closed form of the crossed, nested draw."""
    rng = np.random.default_rng(0)
    x = rng.random((3, 5, 4))
    got = stats.hierarchical_bootstrap(x, samples=20_000)
    cells, s, t, r = x.mean(axis=2), 3, 5, 4
    # E[w_i w_j] for multinomial weights / n, seeds and tasks independent; repeats add their own variance
    ws = (np.ones((s, s)) * (s - 1) / s + np.eye(s)) / s**2
    wt = (np.ones((t, t)) * (t - 1) / t + np.eye(t)) / t**2
    second = np.einsum("ij,kl,ik,jl->", ws, wt, cells, cells)
    # one draw of repeats per cell, used as often as the cell is drawn: the diagonal terms
    within = np.einsum("ii,kk,ik->", ws, wt, x.var(axis=2) / r)
    assert np.var(got) == pytest.approx(second - cells.mean() ** 2 + within, rel=0.05)
    assert np.mean(got) == pytest.approx(x.mean(), abs=0.004)


def test_macro_bootstrap_draws_within_groups() -> None:
    x = np.zeros((2, 6, 1))
    x[:, :2] = 1.0  # group a all solved, group b never: macro is 0.5 in every draw
    groups = ["a", "a", "b", "b", "b", "b"]
    assert set(stats.hierarchical_bootstrap(x, groups, samples=200)) == {0.5}
    assert np.mean(stats.hierarchical_bootstrap(x, samples=4000)) == pytest.approx(1 / 3, abs=0.02)


def test_unequal_repeats_are_drawn_within_their_task() -> None:
    x = np.full((1, 2, 3), np.nan)
    x[0, 0, 0], x[0, 1] = 1.0, [0.0, 0.0, 0.0]
    got = stats.hierarchical_bootstrap(x, samples=4000)
    assert set(np.round(got, 6)) == {0.0, 0.25, 1.0}


def test_difference_pairs_tasks_but_not_seeds() -> None:
    rng = np.random.default_rng(5)
    hard = (rng.random(200) < 0.5).astype(float)  # the same tasks are hard for both
    a = b = hard[None, :, None]
    assert np.all(stats.bootstrap_difference(a, b) == 0)
    with pytest.raises(ValueError):
        stats.bootstrap_difference(a, b[:, :5])


def test_bootstrap_is_reproducible_and_independent_of_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).random((3, 40, 2))
    groups = ["a"] * 10 + ["b"] * 30
    whole = stats.hierarchical_bootstrap(x, groups, samples=100)
    monkeypatch.setattr(stats, "_CHUNK", 3 * 40 * 2 * 7)
    assert np.allclose(whole, stats.hierarchical_bootstrap(x, groups, samples=100), atol=1e-12)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 3), st.integers(1, 12), st.integers(0, 2**32))
def test_rate_interval_is_sane(seeds: int, tasks: int, seed: int) -> None:
    x = (np.random.default_rng(seed).random((seeds, tasks, 1)) < 0.5).astype(float)
    low, high = stats.rate_interval(x)
    assert 0 <= low <= x.mean() + 1e-9 and x.mean() - 1e-9 <= high <= 1 and low < high


def test_rate_interval_without_width_falls_back_to_tasks() -> None:
    assert stats.rate_interval(np.ones((3, 20, 2))) == stats.wilson(20, 20)
    assert stats.rate_interval(np.full((1, 3, 1), np.nan)) is None
    assert stats.rate_interval(np.full((2, 3, 1), 0.4)) is None


def test_coverage_of_the_interval_over_seeds_and_tasks() -> None:
    """Simulated truth lies inside the interval about as often as promised (few seeds: somewhat less)."""
    inside, rounds = 0, 100
    for i in range(rounds):
        rng = np.random.default_rng([7, i])
        ability = 0.6 + 0.03 * rng.standard_normal(5)
        x = (rng.random((5, 100, 1)) < ability[:, None, None]).astype(float)
        low, high = stats.percentile_interval(stats.hierarchical_bootstrap(x, samples=400, seed=i))
        inside += low <= 0.6 <= high
    assert 0.85 <= inside / rounds <= 1.0
