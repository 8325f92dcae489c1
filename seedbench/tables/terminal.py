"""Table -> text for a terminal, as wide as it is and no wider."""

from __future__ import annotations

from typing import Any

from seedbench.tables.model import Block, Cell, Column, Row, Table, by_group, format_cell


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
            for part in by_group(block):
                for piece in _fitting(part, console.width):
                    console.print(piece)
            for note in block.notes:
                if note.rstrip(".") != block.title:
                    console.print(f"  {note}", markup=False, highlight=False)
        for note in table.notes:
            console.print(note, markup=False, highlight=False)
    return capture.get()


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
