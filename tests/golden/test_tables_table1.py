"""Table 1 from run folders: what merges, what does not, what is said below."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fake_runs import panel, write_run

from seedbench import stats
from seedbench.errors import ConfigError
from seedbench.reports.builders import table1, table2, table6, table7
from seedbench.tables import render


def runs(folder: Path, method: str, rates: list[float], **more: object) -> list[Path]:
    """One run per entry of ``rates``; the first ``rate * n`` tasks are solved."""
    return [
        write_run(
            folder / f"{method}-{s}-{len(more)}", lambda i, r=r: i < r * 12, method=method, seed=s, **more
        )
        for s, r in enumerate(rates)
    ]


def test_cells_know_value_n_seeds_interval_runs(tmp_path: Path) -> None:
    made = runs(tmp_path, "grpo", [0.5, 0.75]) + runs(tmp_path, "seed", [0.75, 1.0])
    table = table1(made)
    (block,) = table.blocks
    assert [r.labels for r in block.rows] == [
        ("grpo", "tiny", "2", "measured"),
        ("seed", "tiny", "2", "measured"),
    ]
    cell = block.rows[0].cells["toy.micro"]
    assert cell.value == pytest.approx(0.625) and cell.n == 12 and cell.seeds == 2 and len(cell.runs) == 2
    values = np.array([[[float(i < 6)] for i in range(12)], [[float(i < 9)] for i in range(12)]])
    assert cell.interval == stats.percentile_interval(stats.hierarchical_bootstrap(values))
    assert block.rows[1].cells["toy.micro"].best and not cell.best
    assert [c.title for c in block.columns] == ["red", "green", "blue", "Micro", "Macro"]


def test_order_of_arguments_and_repetition_change_nothing(tmp_path: Path) -> None:
    made = runs(tmp_path, "grpo", [0.5, 0.75]) + runs(tmp_path, "seed", [0.75, 1.0])
    assert render(table1(made), "csv") == render(table1([*reversed(made), made[0]]), "csv")


def test_one_seed_gets_wilson_no_bold_and_no_claim(tmp_path: Path) -> None:
    table = table1(runs(tmp_path, "grpo", [0.5]) + runs(tmp_path, "seed", [1.0]))
    (block,) = table.blocks
    assert block.rows[0].cells["toy.micro"].interval == stats.wilson(6, 12)
    assert not any(c.best for r in block.rows for c in r.cells.values())
    assert any("one seed: no claim (grpo/tiny, seed/tiny)" in n for n in block.notes)
    assert any(f"{100 * stats.minimum_detectable_effect(12):.1f} points" in n for n in block.notes)


@pytest.mark.parametrize(
    "other",
    [
        {"protocol": "p2"},
        {"variant": "real"},
        {"panels": {"eval": panel(12, "toy-unseen")}},
        {"config": {"eval": {"temperature": 1.0}}},
        {"env_fields": {"details": {"catalogue": "1180000"}}},
        {"env_fields": {"fingerprint": "g"}},
    ],
)
def test_br_103_br_105_settings_never_merge(tmp_path: Path, other: dict) -> None:
    table = table1(runs(tmp_path, "grpo", [0.5, 0.5]) + runs(tmp_path, "seed", [1.0, 1.0], **other))
    assert len(table.blocks) == 2 and all(len(b.rows) == 1 for b in table.blocks)
    assert table.blocks[0].notes != table.blocks[1].notes


def test_settings_that_change_no_result_do_merge(tmp_path: Path) -> None:
    one = write_run(tmp_path / "a", lambda i: True, seed=0, config={"train": {"updates": 4, "block": 8}})
    two = write_run(tmp_path / "b", lambda i: True, seed=1, config={"train": {"updates": 4, "block": 64}})
    assert table1([one, two]).blocks[0].rows[0].labels[2] == "2"


def test_environments_stand_side_by_side(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", lambda i: i % 2 == 0, env="alfworld", groups=("look_at_obj_in_light",))
    b = write_run(tmp_path / "b", lambda i: 0.5, env="webshop", groups=("food",))
    (block,) = table1([a, b]).blocks
    assert [(c.group, c.title) for c in block.columns] == [
        ("ALFWorld", "Look"), ("ALFWorld", "Micro"), ("ALFWorld", "Macro"),
        ("WebShop", "Score"), ("WebShop", "Succ."),
    ]  # fmt: skip
    (row,) = block.rows
    assert row.cells["webshop.score"].value == 0.5 and row.cells["webshop.success"].value == 0.0


def test_errors_are_given_both_ways_and_unrank(tmp_path: Path) -> None:
    bad = [
        write_run(tmp_path / f"b{s}", lambda i: "timeout" if i < 3 else True, method="seed", seed=s)
        for s in (0, 1)
    ]
    (block,) = table1(bad + runs(tmp_path, "grpo", [0.5, 0.5])).blocks
    assert any("seed/tiny 6 of 24 (errors as failures 75.0, excluded 100.0)" in n for n in block.notes)
    row = block.rows[1]
    assert row.labels[0] == "seed †" and not row.ranked and not row.cells["toy.micro"].best
    assert row.cells["toy.micro"].value == 0.75


def test_br_104_coverage_is_printed_in_the_cell(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", lambda i: "missing" if i < 2 else True)
    cell = table1([run]).blocks[0].rows[0].cells["toy.micro"]
    assert cell.note == "10/12" and cell.value == pytest.approx(10 / 12)


def test_unfinished_runs_are_named_not_dropped(tmp_path: Path) -> None:
    run = write_run(tmp_path / "half", lambda i: True, streams=["eval-u0002"])
    table = table1([run])
    assert table.blocks == () and "half: no 'final' evaluation" in table.notes[0]


def test_two_results_of_one_seed_are_refused(tmp_path: Path) -> None:
    one = write_run(tmp_path / "a", lambda i: True)
    two = write_run(tmp_path / "b", lambda i: False)
    with pytest.raises(ConfigError, match="different results"):
        table1([one, two])


def test_starred_rows_are_their_own(tmp_path: Path) -> None:
    run = write_run(
        tmp_path / "a", lambda i: True, method="skill_grpo", streams=["eval-final", "eval-final+skills"]
    )
    assert [r.labels[0] for r in table1([run]).blocks[0].rows] == ["skill_grpo", "skill_grpo* †"]


def test_table2_names_what_differs_and_gives_paired_differences(tmp_path: Path) -> None:
    def arm(tag: str, rate: float, **options: object) -> list[Path]:
        config = {"method": {"name": "seed", "options": options}}
        return [
            write_run(tmp_path / f"{tag}{s}", lambda i: i < rate * 12, method="seed", seed=s, config=config)
            for s in (0, 1)
        ]

    (block,) = table2(arm("a", 0.75, gate="sigmoid") + arm("b", 0.5, gate="ones")).blocks
    assert [r.labels[0] for r in block.rows] == ["seed (gate=ones)", "seed (gate=sigmoid)"]
    delta = block.rows[1].cells["toy.delta"]
    assert delta.value == pytest.approx(0.25) and delta.interval[0] <= 0.25 <= delta.interval[1]
    assert block.rows[0].cells["toy.delta"].text == "0"


def test_table6_sorts_by_share(tmp_path: Path) -> None:
    made = [
        write_run(tmp_path / f"{f}-{s}", lambda i, f=f: i < 12 * f, method="seed", seed=s,
                  config={"train": {"updates": 4, "data_fraction": f}})
        for f in (1.0, 0.25) for s in (0, 1)
    ]  # fmt: skip
    (block,) = table6(made).blocks
    assert [c.title for c in block.columns] == ["25 %", "100 %"] and len(block.rows) == 1
    assert [block.rows[0].cells[k].value for k in ("0.25", "1")] == [0.25, 1.0]


def test_table7_keeps_seen_and_unseen_apart(tmp_path: Path) -> None:
    panels = {"eval": panel(12, "seen"), "unseen": panel(6, "unseen")}
    made = [
        write_run(tmp_path / f"{s}", lambda i: i < 3, seed=s, panels=panels,
                  streams=["eval-final", "eval-final@unseen"])
        for s in (0, 1)
    ]  # fmt: skip
    seen, unseen = table7(made).blocks
    assert (seen.rows[0].cells["toy.micro"].value, unseen.rows[0].cells["toy.micro"].value) == (0.25, 0.5)
    assert unseen.rows[0].cells["toy.micro"].n == 6


def test_reported_rows_are_never_bold_ranked_or_measured(tmp_path: Path) -> None:
    table = table1(
        runs(tmp_path, "grpo", [0.5, 0.5]) + runs(tmp_path, "seed", [1.0, 1.0]), with_reported=True
    )
    reported = [r for b in table.blocks[1:] for r in b.rows]
    assert len(reported) > 30 and not any(r.ranked for r in reported)
    assert {c.provenance for r in reported for c in r.cells.values()} == {"reported"}
    assert not any(c.best for r in reported for c in r.cells.values())
    seed = next(r for b in table.blocks if "3B" in b.title for r in b.rows if r.labels[0] == "SEED")
    assert seed.cells["alfworld.avg"].value == pytest.approx(0.918)
    assert seed.cells["alfworld.macro"].value == pytest.approx(0.91767, abs=1e-4)
    grpo = next(r for b in table.blocks if "3B" in b.title for r in b.rows if r.labels[0] == "GRPO")
    assert grpo.labels[3] == "SEED arXiv:2607.14777 = SDAR arXiv:2605.15155"
    assert grpo.cells["alfworld.macro"].value == pytest.approx(0.707, abs=1e-4)


@pytest.mark.parametrize("build", [table2, table6, table7])
def test_other_reported_tables_are_shown_as_printed(build: object) -> None:
    table = build([], with_reported=True)
    assert table.blocks and all(not r.ranked for b in table.blocks for r in b.rows)
