"""Table -> terminal, Markdown, HTML, LaTeX (booktabs), CSV, JSON. Pure functions of the Table."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable
from itertools import groupby

from seedbench.tables.latex import latex
from seedbench.tables.model import (
    Block,
    Cell,
    Column,
    Row,
    Table,
    format_cell,
    format_interval,
    format_value,
)
from seedbench.tables.terminal import terminal


def markdown(table: Table) -> str:
    """GitHub-flavoured Markdown: one pipe table per block, notes as a list."""
    out = [f"# {table.title}", ""]
    for block in table.blocks:
        out += [f"## {block.title}", "", *_markdown_block(block), ""]
        out += [*(f"- {note}" for note in block.notes), ""] if block.notes else []
    out += [f"- {note}" for note in table.notes]
    return "\n".join(out).rstrip() + "\n"


def _markdown_block(block: Block) -> list[str]:
    heads = [*block.labels, *(f"{c.group} {c.title}".strip() for c in block.columns)]
    lines = ["| " + " | ".join(_pipe(h) for h in heads) + " |"]
    lines.append("|" + " --- |" * len(block.labels) + " ---: |" * len(block.columns))
    for row in block.rows:
        cells = [_pipe(label) for label in row.labels]
        for column in block.columns:
            cell = row.cells.get(column.key)
            text = _pipe(format_cell(cell, column))
            cells.append(f"**{text}**" if cell is not None and cell.best else text)
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _pipe(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("\n", " ")


def html_fragment(table: Table) -> str:
    """``<section>`` without page around it. A cell's title tells n, seeds, interval, provenance, runs."""
    parts = [
        f'<section class="sb-table" id="{html.escape(table.name)}">',
        f"<h2>{html.escape(table.title)}</h2>",
    ]
    for block in table.blocks:
        heading = html.escape(block.title)
        parts += [f'<div class="block" data-title="{heading}">', f"<h3>{heading}</h3>", "<table>"]
        parts += [_html_head(block), "<tbody>", *(_html_row(block, row) for row in block.rows)]
        parts += ["</tbody></table>", _html_notes(block.notes), "</div>"]
    parts += [_html_notes(table.notes), "</section>"]
    return "\n".join(p for p in parts if p) + "\n"


def _html_head(block: Block) -> str:
    groups = "".join(
        f'<th colspan="{len(list(columns))}">{html.escape(name)}</th>'
        for name, columns in groupby(block.columns, key=lambda c: c.group)
    )
    heads = "".join(f"<th>{html.escape(h)}</th>" for h in block.labels)
    heads += "".join(f"<th>{html.escape(c.title)}</th>" for c in block.columns)
    return f'<thead><tr><th colspan="{len(block.labels)}"></th>{groups}</tr><tr>{heads}</tr></thead>'


def _html_row(block: Block, row: Row) -> str:
    cells = "".join(f"<th>{html.escape(label)}</th>" for label in row.labels)
    for column in block.columns:
        cell = row.cells.get(column.key) or Cell()
        text = html.escape(format_value(cell, column))
        text = f"<b>{text}</b>" if cell.best else text
        extra = " ".join(p for p in (format_interval(cell, column), cell.note) if p)
        text += f" <small>{html.escape(extra)}</small>" if extra else ""
        order = "" if cell.value is None else f' data-value="{cell.value:.9g}"'
        cells += f'<td class="{cell.provenance}"{order} title="{html.escape(_about(cell))}">{text}</td>'
    return f"<tr>{cells}</tr>"


def _about(cell: Cell) -> str:
    """What a cell knows about itself, in words."""
    facts = [cell.provenance]
    facts += [f"n={cell.n}"] if cell.n is not None else []
    facts += [f"seeds={cell.seeds}"] if cell.seeds is not None else []
    facts += [f"95 % {cell.interval[0]:.4f} to {cell.interval[1]:.4f}"] if cell.interval else []
    facts += (
        [("runs " if cell.provenance == "measured" else "from ") + ", ".join(cell.runs)] if cell.runs else []
    )
    return "; ".join(facts)


def _html_notes(notes: tuple[str, ...]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(n)}</li>" for n in notes) + "</ul>" if notes else ""


def to_csv(table: Table) -> str:
    """Long form, one line per cell, full precision: for spreadsheets and for checking a table."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["block", "row", "ranked", "group", "column", "value", "text", "n", "seeds", "low", "high",
         "provenance", "runs", "note"]
    )  # fmt: skip
    for block in table.blocks:
        for row in block.rows:
            for column in block.columns:
                writer.writerow(_csv_line(block, row, column))
    return out.getvalue()


def _csv_line(block: Block, row: Row, column: Column) -> list[object]:
    cell = row.cells.get(column.key) or Cell()
    low, high = cell.interval or (None, None)
    head = [block.title, " / ".join(row.labels), int(row.ranked), column.group, column.key]
    numbers = [_digits(cell.value), cell.text, cell.n, cell.seeds, _digits(low), _digits(high)]
    return [*head, *numbers, cell.provenance, " ".join(cell.runs), cell.note]


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.9g}"


def to_json(table: Table) -> str:
    return json.dumps(table.to_dict(), sort_keys=True, indent=1, ensure_ascii=False) + "\n"


RENDERERS: dict[str, Callable[[Table], str]] = {
    "terminal": terminal,
    "markdown": markdown,
    "html": html_fragment,
    "latex": latex,
    "csv": to_csv,
    "json": to_json,
}
