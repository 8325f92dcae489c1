"""Every format of one table: same numbers, valid syntax, hostile text disarmed."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from seedbench.errors import ConfigError
from seedbench.reports.builders import table1, table2
from seedbench.reports.compare import paired_table
from seedbench.tables import RENDERERS, Block, Cell, Column, Row, Table, mark_best, render
from seedbench.tables.model import format_value

ROOT = Path(__file__).resolve().parent.parent.parent
EVIL = 'a|b & 100% <script>"x"</script> _{#}$~^\\ [bold]'


@pytest.fixture
def table() -> Table:
    columns = (
        Column("a", "Pick", "Home"),
        Column("m", "Micro", "Home", interval=True),
        Column("t", "Sec.", "", "number"),
    )
    best = {
        "a": Cell(0.5, n=24, seeds=3, runs=("r1",)),
        "m": Cell(0.916, n=134, seeds=3, interval=(0.85, 0.95)),
    }
    rows = (
        Row((EVIL, "tiny"), best | {"t": Cell(12.34)}),
        Row(("grpo", "tiny"), {"a": Cell(0.25, seeds=3), "m": Cell(0.9, n=134, seeds=3, note="132/134")}),
        Row(("paper", "3B"), {k: Cell(0.99, provenance="reported") for k in "am"}, False),
    )  # fmt: skip
    return Table(
        "t", "Title", (mark_best(Block("Block 1", ("Method", "Backbone"), columns, rows, ("a note",))),)
    )


def test_best_is_the_highest_measured_ranked_value(table: Table) -> None:
    marked = [[k for k, c in r.cells.items() if c.best] for r in table.blocks[0].rows]
    assert marked == [["a", "m"], [], []]


def test_ties_are_both_best_and_a_lone_row_is_not() -> None:
    columns = (Column("a", "A"),)
    two = Block("b", ("M",), columns, tuple(Row((n,), {"a": Cell(0.1 + 0.2, seeds=2)}) for n in "xy"))
    assert all(r.cells["a"].best for r in mark_best(two).rows)
    one = Block("b", ("M",), columns, two.rows[:1])
    assert not mark_best(one).rows[0].cells["a"].best


def test_a_tiny_probability_is_a_bound_and_never_zero() -> None:
    column = Column("p", "p", unit="p", decimals=4)
    shown = [format_value(Cell(v), column) for v in (0.0, 5e-5, 1e-4, 0.0123, 1.0)]
    assert shown == ["<0.0001", "<0.0001", "0.0001", "0.0123", "1.0000"]


def test_markdown(table: Table) -> None:
    lines = render(table, "markdown").splitlines()
    body = [line for line in lines if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in body}) == 1
    assert "**91.6 [85.0, 95.0]**" in body[2] and "90.0 132/134" in body[3] and "—" in body[4]
    assert "- a note" in lines


def test_latex_is_balanced_booktabs(table: Table) -> None:
    text = render(table, "latex")
    for opened, closed in ((r"\begin{tabular}", r"\end{tabular}"), (r"\begin{table}", r"\end{table}")):
        assert text.count(opened) == text.count(closed) == 1
    assert re.sub(r"\\[{}]", "", text).count("{") == re.sub(r"\\[{}]", "", text).count("}")
    rows = [line for line in text.splitlines() if line.endswith(r" \\")]
    assert [len(re.findall(r"(?<!\\)&", line)) for line in rows] == [3, 4, 4, 4, 4]  # the first spans two
    assert r"\cmidrule(lr)" in text
    assert r"\textbf{91.6 {[}85.0, 95.0]}" in text and r"100\%" in text and "—" not in text
    assert all(r in text for r in (r"\toprule", r"\midrule", r"\bottomrule"))


TEX = shutil.which("pdflatex")


@pytest.mark.skipif(TEX is None, reason="no pdflatex on this machine")
@pytest.mark.parametrize("packages", ["booktabs", "booktabs,graphicx"])
def test_latex_compiles(tmp_path: Path, table: Table, packages: str) -> None:
    """Every kind of table, on the records of the repository, with every character the notes and labels hold."""
    runs = sorted((ROOT / "results" / "measured").glob("*/runs/*_s0_*"))
    odd = Block("100% & #1 $x_{1}^2$ <~> \\ [a] — ± ≥ α − † Δ ×", ("A",), table.blocks[0].columns, ())
    tables = [table, Table("odd", "Odd", (odd,)), table1(runs, True), table2(runs), paired_table(runs)]
    body = "".join(render(t, "latex") for t in tables)
    text = f"\\documentclass{{article}}\\usepackage{{{packages}}}\\begin{{document}}{body}\\end{{document}}"
    (tmp_path / "t.tex").write_text(text, encoding="utf-8")
    command = [str(TEX), "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    log = (tmp_path / "t.log").read_text("latin-1")
    assert done.returncode == 0, log[-2000:]
    assert "Missing character" not in log
    if "graphicx" in packages:
        assert "Overfull" not in log  # nothing sticks out of the page


def test_html_escapes_and_every_cell_tells_its_origin(table: Table) -> None:
    text = render(table, "html")
    tags: list[str] = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list) -> None:
            tags.append(tag)
            if tag == "td":
                assert dict(attrs)["title"]

    Parser().feed(text)
    assert "script" not in tags and tags.count("td") == 9 and tags.count("b") == 2
    assert 'class="reported"' in text and "n=134; seeds=3" in text and "runs r1" in text


def test_csv_holds_every_cell_at_full_precision(table: Table) -> None:
    lines = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    assert len(lines) == 9
    assert lines[1]["value"] == "0.916" and lines[1]["low"] == "0.85" and lines[1]["seeds"] == "3"
    assert lines[5]["value"] == "" and {line["provenance"] for line in lines[6:8]} == {"reported"}


def test_json_is_the_object(table: Table) -> None:
    assert json.loads(render(table, "json"))["blocks"][0]["rows"][1]["cells"]["m"]["note"] == "132/134"


def test_terminal_prints_markup_as_text_and_splits_by_group(table: Table) -> None:
    from seedbench.tables.render import terminal

    wide = terminal(table, 200)
    assert "[bold]" in wide and "91.6 [85.0,95.0]" in wide and "a note" in wide
    assert wide.count("Method") == 2  # one part per column group


@pytest.mark.parametrize("form", RENDERERS)
def test_empty_tables_render(form: str) -> None:
    assert isinstance(render(Table("t", "Nothing", ()), form), str)


def test_unknown_format_lists_the_known() -> None:
    with pytest.raises(ConfigError, match="markdown"):
        render(Table("t", "x", ()), "docx")
