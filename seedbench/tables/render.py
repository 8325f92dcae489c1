"""Table -> terminal, Markdown, HTML, LaTeX (booktabs), CSV, JSON. Pure functions of the Table."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable
from itertools import groupby
from typing import Any

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

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "—": "---", "±": r"$\pm$",
    "≥": r"$\ge$", "<": r"$<$", ">": r"$>$", "α": r"$\alpha$", "−": "--",
    "†": r"\textdagger{}", "Δ": r"$\Delta$", "×": r"$\times$", "[": "{[}",  # after \\ a bracket is an option
}  # fmt: skip


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


def latex(table: Table) -> str:
    """One ``tabular`` per block; needs ``booktabs`` only."""
    out = ["% needs \\usepackage{booktabs}", f"% {table.title}"]
    for block in table.blocks:
        out += _latex_block(block, table.title)
    out += [f"% {note}" for note in table.notes]
    return "\n".join(out) + "\n"


def _latex_block(block: Block, title: str) -> list[str]:
    spec = "l" * len(block.labels) + "r" * len(block.columns)
    out = [r"\begin{table}", r"\centering", rf"\caption{{{_tex(f'{title}. {block.title}')}}}"]
    out += [rf"\begin{{tabular}}{{{spec}}}", r"\toprule"]
    if any(c.group for c in block.columns):
        groups = [(name, len(list(cs))) for name, cs in groupby(block.columns, key=lambda c: c.group)]
        over = [""] * len(block.labels) + [rf"\multicolumn{{{n}}}{{c}}{{{_tex(g)}}}" for g, n in groups]
        out.append(" & ".join(over) + r" \\")
    out.append(" & ".join(_tex(h) for h in [*block.labels, *(c.title for c in block.columns)]) + r" \\")
    out.append(r"\midrule")
    for row in block.rows:
        cells = [_tex(label) for label in row.labels]
        for column in block.columns:
            cell = row.cells.get(column.key)
            text = _tex(format_cell(cell, column))
            cells.append(rf"\textbf{{{text}}}" if cell is not None and cell.best else text)
        out.append(" & ".join(cells) + r" \\")
    out += [r"\bottomrule", r"\end{tabular}"]
    out += [rf"\par{{\footnotesize {_tex(note)}}}" for note in block.notes]
    return [*out, r"\end{table}"]


def _tex(text: str) -> str:
    return "".join(_LATEX.get(ch, ch) for ch in text)


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


def terminal(table: Table, width: int | None = None) -> str:
    """Text with colours when the terminal has them; column groups stand below each other, and a group too
    wide for the terminal is turned on its side (one line per column) rather than cut."""
    from rich.console import Console

    console = Console(width=width)
    with console.capture() as capture:
        console.print(f"[bold]{table.title}[/bold]", highlight=False)
        for block in table.blocks:
            console.print()
            console.print(block.title, markup=False, highlight=False)
            for part in _by_group(block):
                for piece in _fitting(part, console.width):
                    console.print(piece)
            for note in block.notes:
                if note.rstrip(".") != block.title:
                    console.print(f"  {note}", markup=False, highlight=False)
        for note in table.notes:
            console.print(note, markup=False, highlight=False)
    return capture.get()


def _by_group(block: Block) -> list[Block]:
    """One block per column group: headings over groups do not exist in a terminal."""
    groups = groupby(block.columns, key=lambda c: c.group)
    return [Block(block.title, block.labels, tuple(columns), block.rows) for _, columns in groups]


_SENTENCE = 40  # characters: longer entries are text to be wrapped, not numbers


def _spoken(cell: Cell | None, column: Column) -> str:
    text = format_cell(cell, column)
    return text if column.unit == "text" else text.replace(", ", ",")  # so that an interval is not broken


def _width(block: Block) -> int:
    """Characters an upright table takes: the longest entry of each column, and its frame."""
    heads = [
        max([len(head), *(len(row.labels[i]) for row in block.rows)]) for i, head in enumerate(block.labels)
    ]
    columns = [
        max([len(c.title), *(len(_spoken(row.cells.get(c.key), c)) for row in block.rows)])
        for c in block.columns
    ]
    return sum(w + 3 for w in heads + columns) + 1


def _fitting(block: Block, width: int) -> list[Any]:
    """Upright if it fits or holds sentences (they wrap); else on its side, as many rows at a time as fit."""
    entries = [_spoken(r.cells.get(c.key), c) for r in block.rows for c in block.columns]
    if _width(block) <= width or max(map(len, entries), default=0) > _SENTENCE:
        return [_upright(block)]
    heads = [block.labels[0], *block.labels[1:], *(c.title for c in block.columns)]
    room, pieces, taken = width - max(map(len, heads)) - 4, [], 0
    while taken < len(block.rows):
        count, used = 0, 0
        for row in block.rows[taken:]:
            used += 3 + max(
                [*map(len, row.labels), *(len(_spoken(row.cells.get(c.key), c)) for c in block.columns)]
            )
            if count and used > room:
                break
            count += 1
        rows = block.rows[taken : taken + count]
        pieces.append(_sideways(Block(block.title, block.labels, block.columns, rows)))
        taken += count
    return pieces


def _framed(block: Block) -> Any:
    from rich.table import Table as RichTable
    from rich.text import Text

    group = next((c.group for c in block.columns), "")
    return RichTable(title=Text(group) if group else None, title_justify="left")


def _upright(block: Block) -> Any:
    from rich.text import Text

    out = _framed(block)
    for head in block.labels:
        out.add_column(Text(head))
    for column in block.columns:
        out.add_column(Text(column.title), justify="left" if column.unit == "text" else "right")
    for row in block.rows:
        out.add_row(*(Text(label) for label in row.labels), *(_entry(row, c) for c in block.columns))
    return out


def _sideways(block: Block) -> Any:
    """One line per column of the table, one column per row."""
    from rich.text import Text

    out = _framed(block)
    out.add_column(Text(block.labels[0]))
    for row in block.rows:
        out.add_column(Text(row.labels[0]), justify="right")
    for i, head in enumerate(block.labels[1:], 1):
        out.add_row(Text(head), *(Text(row.labels[i]) for row in block.rows))
    out.add_section()
    for column in block.columns:
        out.add_row(Text(column.title), *(_entry(row, column) for row in block.rows))
    return out


def _entry(row: Row, column: Column) -> Any:
    from rich.text import Text

    cell = row.cells.get(column.key)
    return Text(_spoken(cell, column), style="bold" if cell is not None and cell.best else "")


RENDERERS: dict[str, Callable[[Table], str]] = {
    "terminal": terminal,
    "markdown": markdown,
    "html": html_fragment,
    "latex": latex,
    "csv": to_csv,
    "json": to_json,
}
