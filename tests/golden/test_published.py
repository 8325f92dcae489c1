"""The audit of published tables: finds what is wrong with the real ones, stays silent on consistent ones."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbench.audit import counting
from seedbench.audit.findings import Finding, known_tasks
from seedbench.audit.published import audit_tables, findings_table
from seedbench.errors import DataCorrupt, DataMissing
from seedbench.reports.reported import FIELDS, Fact, load
from seedbench.tables import render


@pytest.fixture(scope="module")
def found() -> list[Finding]:
    return audit_tables(load())


def one(found: list[Finding], kind: str, *words: str) -> Finding:
    (match,) = [f for f in found if f.kind == kind and all(w in f.text for w in words)]
    return match


def test_table_7_was_not_measured_on_the_real_unseen_split(found: list[Finding]) -> None:
    finding = one(found, "impossible rate", "Table 7")
    assert "24/18/31/23/21/17" in finding.text
    assert "ReAct Qwen2.5-3B-Instruct, GRPO Qwen2.5-3B-Instruct fit 23/15/34/27/22/13 of 134" in finding.text
    assert "no other split" in finding.text and "SEED Qwen2.5-3B-Instruct: neither" in finding.text
    assert any(
        "Table 7" in c and "| GRPO |" in c and c.endswith("pick = 73.9 (n = 24)") for c in finding.cells
    )


def test_alfworld_averages_mix_micro_and_macro(found: list[Finding]) -> None:
    main = one(found, "mixed averages", "Table 1")
    assert "30 rows print the micro average" in main.text and "SEED Qwen2.5-3B-Instruct" in main.text
    one(found, "mixed averages", "Table 2", "SEED w/o on-policy skill")


def test_search_averages_that_do_not_match_their_columns(found: list[Finding]) -> None:
    wrong = [f for f in found if f.kind == "average"]
    assert "45.86" in one(wrong, "average", "SEED Qwen2.5-3B-Instruct").text
    assert len(wrong) == 3 and sum("ADRS" in f.text for f in wrong) == 2


def test_rows_reused_between_papers(found: list[Finding]) -> None:
    assert one(found, "reused rows").text.startswith("30 rows of SEED arXiv:2607.14777 and SDAR")
    renamed = one(found, "renamed row")
    assert (
        "'SEED w/o on-policy skill'" in renamed.text
        and "SDAR in SDAR arXiv:2605.15155 Table 1" in renamed.text
    )


def test_the_skill_sd_claim_is_the_7b_value(found: list[Finding]) -> None:
    claim = one(found, "contradicted claim")
    assert "gives 47.8" in claim.text and "print 44.1; 47.8 is the value for Qwen2.5-7B" in claim.text
    assert len(claim.cells) == 5


def test_independent_reruns_disagree(found: list[Finding]) -> None:
    assert "84.4" in one(found, "disagreeing rerun", "GRPO Qwen3-1.7B", "46.1").text


def test_bamboogle_rates_are_not_of_125_questions(found: list[Finding]) -> None:
    assert (
        "bamboogle: 125 fits 3 of 33 rows, 248 fits 31"
        in one(found, "impossible rate", "SEED", "search").text
    )


def test_every_finding_cites_cells_that_are_printed(found: list[Finding]) -> None:
    cites = {f.cite for f in load()}
    assert all(f.cells and all(c.partition(" (n =")[0] in cites for c in f.cells) for f in found)
    assert "impossible rate" in render(findings_table(found), "markdown")


def consistent(seed: int, env: str, macro: bool) -> list[Fact]:
    """A table computed from success counts: sizes as known, or a random division of the draws."""
    rng, known = random.Random(f"published/{seed}"), known_tasks()[env]
    groups = len(known["metrics"])
    cuts = sorted(rng.sample(range(1, known.get("draws", 0) or 9), groups - 1)) if "draws" in known else []
    sizes = known.get("sizes") or [b - a for a, b in zip([0, *cuts], [*cuts, known["draws"]], strict=True)]
    facts = []
    for method in ("A", "B", "C"):
        wins = [rng.randint(0, n) for n in sizes]
        rates = [100 * k / n for k, n in zip(wins, sizes, strict=True)]
        average = sum(rates) / groups if macro else 100 * sum(wins) / sum(sizes)
        cells = dict(zip([*known["metrics"], "avg"], [*rates, average], strict=True))
        facts += [
            Fact("P", "Table 1", "X", method, env, m, round(v, 1), "table", "figure")
            for m, v in cells.items()
        ]
    return facts


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["alfworld", "alfworld-unseen", "search"]), st.booleans())
def test_silent_on_a_consistent_table(seed: int, env: str, macro: bool) -> None:
    assert audit_tables(consistent(seed, env, macro)) == []


@pytest.mark.parametrize("env", ["alfworld-unseen", "search"])
def test_a_wrong_average_in_a_consistent_table_is_found(env: str) -> None:
    facts = consistent(1, env, True)
    broken = [
        replace(f, value=round((f.value + 7) % 100, 1)) if f.metric == "avg" and f.method == "B" else f
        for f in facts
    ]
    assert [f.kind for f in audit_tables(broken)] == ["average"]


def test_true_claims_and_close_reruns_are_not_findings() -> None:
    facts = consistent(3, "alfworld", True)
    average = next(f for f in facts if f.metric == "avg")
    claim = Fact("Blog", "t", "X", average.method, "alfworld", "avg", average.value, "claim", "summary")
    rerun = Fact(
        "Rerun", "t", "X", average.method, "alfworld", "avg", min(100, average.value + 5), "rerun", "page"
    )
    assert audit_tables([*facts, claim, rerun]) == []


def test_range_claims_are_recomputed() -> None:
    facts = [f for f in load() if f.role == "table"]
    good = [f for f in load() if " minus " in f.method]
    assert len(good) == 16 and not [
        f for f in audit_tables([*facts, *good]) if f.kind == "contradicted claim"
    ]
    bad = replace(good[0], value=good[0].value + 5)
    assert "is 14.9 by the tables, not 19.9" in one(audit_tables([*facts, bad]), "contradicted claim").text


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 150).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_every_count_finds_its_printed_rate(case: tuple[int, int]) -> None:
    k, n = case
    assert k in counting.counts_for(round(100 * k / n, 1), n)
    assert k in counting.counts_for(int(1000 * k / n) / 10, n, cut=True)


def test_draw_counts_by_brute_force() -> None:
    rates, draws = (50.0, 66.7), 10
    want = {
        a + b
        for n in range(1, draws)
        for a in counting.counts_for(rates[0], n, cut=True)
        for b in counting.counts_for(rates[1], draws - n, cut=True)
    }
    assert counting.draw_counts(rates, draws) == want and want


def test_implied_sizes_recover_the_sizes_that_made_the_rates() -> None:
    sizes = (23, 15, 34, 27, 22, 13)
    rows = [[round(100 * (n // d) / n, 1) for n in sizes] for d in (2, 3)]
    chosen, solutions = counting.implied_sizes(rows, sum(sizes))
    assert chosen == [0, 1] and sizes in solutions
    assert counting.implied_sizes([[33.3, 33.3]], 2) == ([], [])


def test_files_of_another_shape_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataCorrupt, match="line 1"):
        load(path)
    path.write_text(",".join(FIELDS) + "\nP,T,X,M,e,avg,high,table,page\n")
    with pytest.raises(DataCorrupt, match="line 2"):
        load(path)
    with pytest.raises(DataMissing):
        load(tmp_path / "none")


def test_the_committed_facts_agree_with_the_given_data() -> None:
    import csv

    source = Path(__file__).resolve().parents[3] / "shared" / "data" / "published_results.csv"
    if not source.is_file():
        pytest.skip("the collected file of published numbers is not beside the checkout")
    with source.open(encoding="utf-8", newline="") as file:
        given_rows = {
            (r["backbone"], r["method"], r["env"], r["metric"], float(r["value"]))
            for r in csv.DictReader(file)
        }
    assert {(f.backbone, f.method, f.env, f.metric, f.value) for f in load()} <= given_rows
