"""The scorer, one test per public bug report of its kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_runs import GROUPS, episode_record, panel, write_run
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbench.errors import DataCorrupt
from seedbench.score import GroupScore, PanelTable, mean_or_none, score_records, score_stream, value_array
from seedbench.store import Run


def score(*outcomes: bool | float | str, groups: tuple[str, ...] = ("g",)) -> object:
    """Score a panel whose task ``i`` has the given outcome."""
    made = panel(len(outcomes), groups=groups)
    records = [
        episode_record(t, g, o)
        for t, g, o in zip(made["ids"], made["groups"], outcomes, strict=True)
        if o != "missing"
    ]
    return score_records(records, PanelTable.of(made), groups)


def test_br_001_running_out_of_steps_is_no_success() -> None:
    made = panel(2, groups=("g",))
    lost = episode_record(made["ids"][0], "g", False) | {"status": "step_limit"}
    won = episode_record(made["ids"][1], "g", True)
    got = score_records([lost, won], PanelTable.of(made), ("g",))
    assert got.micro == 0.5 and got.total.errors == 0


def test_br_045_partial_credit_is_score_not_success() -> None:
    got = score(0.2, 1.0, 0.0)
    assert got.micro == pytest.approx(1 / 3) and got.total.score == pytest.approx(0.4)


@pytest.mark.parametrize("status", ["env_error", "model_error", "timeout", "interrupted"])
def test_br_051_crashes_stay_in_the_denominator(status: str) -> None:
    got = score(True, True, *[False] * 6, status, status)
    assert (got.micro, got.total.n, got.total.errors) == (0.2, 10, 2)
    assert got.total.rate_without_errors == 0.25
    assert "20.0 % of the episodes broke off" in got.not_ranked


def test_one_percent_of_errors_is_the_limit() -> None:
    assert score(*[True] * 99, "timeout").not_ranked == ()
    assert score(*[True] * 98, "timeout", "timeout").not_ranked != ()


def test_br_053_micro_and_macro_differ_and_are_both_given() -> None:
    sizes, rates = (4705, 3077, 3107, 3153), (24.21, 23.82, 21.71, 21.31)
    parts = [
        GroupScore(str(i), n, n, 0, 0, n * r / 100) for i, (n, r) in enumerate(zip(sizes, rates, strict=True))
    ]
    micro = sum(p.score_sum for p in parts) / sum(p.n for p in parts)
    assert 100 * micro == pytest.approx(22.920, abs=5e-4)
    assert 100 * mean_or_none([p.score for p in parts]) == pytest.approx(22.7625)
    got = score(True, False, False, True, groups=("a", "b", "b"))  # a: 2 of 2, b: 0 of 2
    uneven = score(True, False, False, groups=("a", "b", "b"))
    assert (got.micro, got.macro) == (0.5, 0.5)
    assert uneven.micro == pytest.approx(1 / 3) and uneven.macro == 0.5


def test_br_055_unknown_parts_make_an_unknown_whole() -> None:
    assert mean_or_none([]) is None and mean_or_none([0.5, None]) is None
    got = score(groups=("g",))
    assert got.micro is None and got.macro is None and got.steps is None
    assert score("missing").steps is None and score("missing").micro == 0.0


def test_br_057_tasks_of_equal_wording_stay_two() -> None:
    got = score(True, False)  # both instructions read "do it"
    assert got.total.n == 2 and got.micro == 0.5


def test_br_058_the_average_is_recomputable_from_the_row() -> None:
    got = score(True, False, True, True, False, False, groups=GROUPS)
    assert got.macro == pytest.approx(sum(g.rate for g in got.groups) / 3)
    assert got.micro == pytest.approx(sum(g.rate * g.n for g in got.groups) / sum(g.n for g in got.groups))


def test_br_104_missing_tasks_are_failures_and_shown() -> None:
    got = score(*[True] * 132, "missing", "missing")
    assert got.coverage == "132/134" and got.micro == pytest.approx(132 / 134)
    assert "coverage 132/134" in got.not_ranked


def test_groups_keep_the_reporting_order_and_empty_ones_leave_the_macro_mean() -> None:
    made = panel(2, groups=("b",))
    records = [episode_record(t, "b", True) for t in made["ids"]]
    got = score_records(records, PanelTable.of(made), ("a", "b"))
    assert [(g.group, g.rate) for g in got.groups] == [("a", None), ("b", 1.0)] and got.macro == 1.0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"task": {"id": "other", "split": "s", "group": "g"}}, "not in the panel"),
        ({"repeat": 5}, "plays it 1 times"),
        ({"task": {"id": "toy-test-000", "split": "s", "group": "h"}}, "its group"),
        ({"success": None}, "without a verdict"),
        ({"score": "NaN"}, "without a verdict"),
        ({"score": 1.5}, "outside"),
        ({"score": -0.1}, "outside"),
    ],
)
def test_records_that_cannot_belong_to_the_panel_are_refused(change: dict, why: str) -> None:
    made = panel(1, groups=("g",))
    record = episode_record(made["ids"][0], "g", True) | change
    with pytest.raises(DataCorrupt, match=why):
        score_records([record], PanelTable.of(made), ("g",))


def test_one_stream_holds_one_evaluation() -> None:
    made = panel(1, groups=("g",))
    records = [episode_record(made["ids"][0], "g", ok, update=u) for u, ok in ((0, True), (4, False))]
    with pytest.raises(DataCorrupt, match="twice"):
        score_records(records, PanelTable.of(made), ("g",))


def test_an_edited_panel_is_refused(tmp_path: Path) -> None:
    made = panel(3)
    made["ids"][0] = "another"
    with pytest.raises(DataCorrupt, match="sha256"):
        PanelTable.of(made)


def test_privileged_policies_and_skill_prompts_are_scored_but_not_ranked(tmp_path: Path) -> None:
    oracle = write_run(tmp_path / "o", lambda i: True, policy={"name": "oracle", "privileged": True})
    assert score_stream(Run(oracle), "eval-final").not_ranked == ("the policy reads hidden state",)
    starred = write_run(tmp_path / "s", lambda i: True, streams=["eval-final+skills"])
    assert score_stream(Run(starred), "eval-final+skills").not_ranked == ("evaluation prompts held a skill",)


def test_draws_with_replacement_count_every_draw(tmp_path: Path) -> None:
    from seedbench.panel import sha256_lines

    ids = ["a", "b", "a"]
    made = {
        "name": "d",
        "split": "s",
        "sha256": sha256_lines(ids),
        "repeats": 2,
        "ids": ids,
        "groups": ["g"] * 3,
    }
    records = [episode_record("a", "g", r < 2, repeat=r) for r in range(4)]
    records += [episode_record("b", "g", True, repeat=r) for r in range(2)]
    got = score_records(records, PanelTable.of(made), ("g",))
    assert got.total.n == 6 and got.micro == pytest.approx(4 / 6)
    values, groups = value_array(records, PanelTable.of(made))
    assert values.shape == (2, 4) and groups == ["g", "g"]
    assert values[0].tolist() == [1, 1, 0, 0] and values[1, :2].tolist() == [1, 1]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([True, False, 0.3, "timeout", "missing"]), min_size=1, max_size=20))
def test_metrics_stay_in_range(outcomes: list) -> None:
    got = score(*outcomes, groups=GROUPS)
    parts = [got.micro, got.macro, got.total.score, got.total.rate_without_errors, got.error_share]
    assert all(p is None or 0 <= p <= 1 for p in parts)
    assert got.total.n == len(outcomes) and got.total.played == sum(o != "missing" for o in outcomes)
