"""Comparisons, costs and verdicts: they say what the data say, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_runs import write_run

from seedbench import stats
from seedbench.errors import ConfigError
from seedbench.reports.collect import arms, collect
from seedbench.reports.compare import compare, paired_table, tie_groups
from seedbench.reports.costs import cost_table
from seedbench.reports.spending import curve, spent_by_stage, training
from seedbench.reports.verdict import COST, GAIN, NO_GAIN, verdict
from seedbench.store import Run

N = 60
COSTS = [
    (-1, "sft", 2.0, 1000, 1e9),
    *[(u, stage, 1.0, 500, flops) for u in (0, 2) for stage, flops in (("rollout", 1e9), ("update", 3e9))],
    (4, "evaluation", 9.0, 9999, 9e9),
]


def arm(folder: Path, name: str, solved: int, seeds: int = 3, scale: int = 1, **more: object) -> Path:
    """``seeds`` runs that solve the first ``solved`` (+ seed) of 60 tasks."""
    costs = [(u, s, t * scale, k * scale, f * scale) for u, s, t, k, f in COSTS]
    for seed in range(seeds):
        write_run(folder / name / f"s{seed}", lambda i, s=seed: i < solved + s, n=N, method=name, seed=seed,
                  costs=costs, **more)  # fmt: skip
    return folder / name


def test_a_clear_gain_goes_on(tmp_path: Path) -> None:
    got = verdict(arm(tmp_path, "seed", 50), arm(tmp_path, "grpo", 20))
    assert (
        got.decision == GAIN and "+50.0 points" in got.paragraph and "3 and 3 training seeds" in got.paragraph
    )


def test_no_gain_at_equal_cost_stops(tmp_path: Path) -> None:
    got = verdict(arm(tmp_path, "seed", 21), arm(tmp_path, "grpo", 20))
    effect = 100 * stats.minimum_detectable_effect(N)
    assert got.decision == NO_GAIN and f"below {effect:.1f} points" in got.paragraph


def test_no_gain_at_higher_cost_names_the_cost(tmp_path: Path) -> None:
    got = verdict(arm(tmp_path, "seed", 21, scale=2), arm(tmp_path, "grpo", 20))
    assert got.decision == COST and "2.00 times the training cost" in got.paragraph


def test_a_reproducible_loss_is_called_worse(tmp_path: Path) -> None:
    got = verdict(arm(tmp_path, "seed", 10), arm(tmp_path, "grpo", 40))
    assert got.decision == NO_GAIN and "reproducibly worse" in got.paragraph


def test_one_seed_never_claims(tmp_path: Path) -> None:
    got = verdict(arm(tmp_path, "seed", 60, seeds=1), arm(tmp_path, "grpo", 0, seeds=1))
    assert (
        got.decision == NO_GAIN
        and "One seed: no claim." in got.paragraph
        and "exact McNemar" in got.paragraph
    )


def test_the_table_holds_cost_latency_and_errors(tmp_path: Path) -> None:
    (block,) = verdict(arm(tmp_path, "seed", 50), arm(tmp_path, "grpo", 20)).table.blocks
    cells = block.rows[0].cells
    assert (
        cells["tokens"].value == 3.0
        and cells["seconds"].value == 6.0
        and cells["flops"].value == pytest.approx(0.009)
    )
    assert cells["errors"].value == 0.0 and cells["latency"].value == 0.0 and cells["new"].value == 3.0


def test_different_settings_have_no_verdict(tmp_path: Path) -> None:
    one, two = arm(tmp_path, "seed", 50), arm(tmp_path, "grpo", 20, protocol="p2")
    with pytest.raises(ConfigError, match="share no evaluation setting"):
        verdict(one, two)
    with pytest.raises(ConfigError, match="two arms"):
        arm(tmp_path / "seed", "rlsd", 3)
        verdict(one, one)
    with pytest.raises(ConfigError, match="holds no run"):
        verdict(one / "s0" / "checkpoints", one)
    made = arms(collect([one / "s0", two / "s0"])[0])
    with pytest.raises(ConfigError, match="different settings"):
        compare([(made[0], made[1])])


def test_tie_groups_follow_the_tests(tmp_path: Path) -> None:
    folders = [arm(tmp_path, n, k) for n, k in (("a", 55), ("b", 53), ("c", 20), ("d", 19))]
    folders.append(arm(tmp_path, "lucky", 60, seeds=1))
    folders.append(arm(tmp_path, "oracle", 60, policy={"privileged": True}))
    runs = [r for f in folders for r in sorted(f.iterdir())]
    got = [(rank, a.label) for rank, a in tie_groups(arms(collect(runs)[0]))]
    assert got == [(1, "a"), (1, "b"), (3, "c"), (3, "d"), (None, "lucky"), (None, "oracle")] or got == [
        (1, "a"), (1, "b"), (3, "c"), (3, "d"), (None, "oracle"), (None, "lucky")]  # fmt: skip


def test_the_family_is_adjusted_together(tmp_path: Path) -> None:
    folders = [arm(tmp_path, n, k) for n, k in (("a", 30), ("b", 25), ("c", 20))]
    (block,) = paired_table([r for f in folders for r in f.iterdir()]).blocks
    raw = [r.cells["p"].value for r in block.rows]
    assert [r.cells["holm"].value for r in block.rows] == pytest.approx(stats.holm(raw)) and len(raw) == 3


def test_costs_by_stage_and_score_at_equal_tokens(tmp_path: Path) -> None:
    streams = ["eval-u0000", "eval-u0002", "eval-final"]
    cheap = arm(tmp_path, "grpo", 20, streams=streams)
    dear = arm(tmp_path, "seed", 40, scale=2, streams=streams)
    run = Run(dear / "s0")
    assert list(spent_by_stage(run)) == ["sft", "rollout", "update", "evaluation"]
    assert training(run).tokens == 6000
    (block,) = cost_table([*cheap.iterdir(), *dear.iterdir()]).blocks
    low, high = block.rows
    assert low.cells["equal"].note == "(u4)" and high.cells["equal"].note == "(u0)"
    assert low.cells["tokens.sft"].value == 1.0 and high.cells["tokens"].value == 6.0
    assert "3,000" in block.notes[0]


def test_pairs_are_compared_at_equal_tokens_too(tmp_path: Path) -> None:
    """A (cheap) solves 20 of 60 in the end; B, twice as dear, 40 in the end, but 10 when A's tokens are spent."""
    streams = ["eval-u0000", "eval-u0002", "eval-final"]
    cheap, dear = (
        arm(tmp_path, "grpo", 20, streams=streams),
        arm(tmp_path, "seed", 40, scale=2, streams=streams),
    )
    early = arm(tmp_path / "early", "seed", 10, scale=2, streams=streams)
    for seed in range(3):
        name = f"s{seed}/episodes/eval-u0000.jsonl"
        (dear / name).write_bytes((early / name).read_bytes())
    (block,) = paired_table([*cheap.iterdir(), *dear.iterdir()]).blocks
    cells = block.rows[0].cells
    assert cells["difference"].value == pytest.approx(-20 / 60) and cells["difference"].note == ""
    assert cells["equal.difference"].value == pytest.approx(10 / 60)
    assert cells["equal.difference"].note == "(4 : 0)"
    assert cells["verdict"].text == "seed higher" and cells["equal.verdict"].text == "grpo higher"


def test_what_did_not_train_is_not_compared_at_equal_tokens(tmp_path: Path) -> None:
    streams = ["eval-u0000", "eval-final"]
    runs = [
        *arm(tmp_path, "grpo", 20, streams=streams).iterdir(),
        *arm(tmp_path, "seed", 9, streams=streams).iterdir(),
    ]
    idle = [
        write_run(tmp_path / "idle" / f"s{s}", lambda i: i < 5, n=N, method="vanilla", seed=s)
        for s in range(3)
    ]
    (block,) = paired_table(runs + idle).blocks
    told = {r.labels[:2]: "equal.difference" in r.cells for r in block.rows}
    assert told == {("grpo", "seed"): True, ("grpo", "vanilla"): False, ("seed", "vanilla"): False}


def test_a_reference_makes_the_family_smaller(tmp_path: Path) -> None:
    folders = [arm(tmp_path, n, k) for n, k in (("a", 30), ("b", 25), ("c", 20))]
    runs = [r for f in folders for r in f.iterdir()]
    (block,) = paired_table(runs, "b").blocks
    assert [r.labels[:2] for r in block.rows] == [("a", "b"), ("c", "b")]
    raw = [r.cells["p"].value for r in block.rows]
    assert [r.cells["holm"].value for r in block.rows] == pytest.approx(stats.holm(raw))
    with pytest.raises(ConfigError, match="no arm 'd'"):
        paired_table(runs, "d")


def test_curve_counts_only_training_before_each_point(tmp_path: Path) -> None:
    folder = arm(tmp_path, "seed", 40, streams=["eval-u0000", "eval-u0002", "eval-final"])
    found, _ = collect([folder / "s0"])
    assert [(p.update, p.spent.tokens) for p in curve(found[0])] == [(0, 1000), (2, 2000), (4, 3000)]
