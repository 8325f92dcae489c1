"""The one Table object. Every number in a report is a :class:`Cell` that knows where it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from typing import Any, Literal

#: ``measured``: by seedbench, from episodes on record. ``reported``: printed in a paper or a page.
#: ``imported``: computed by seedbench from another program's logs.
Provenance = Literal["measured", "reported", "imported"]
Unit = Literal["percent", "number", "p", "text"]
ABSENT = "—"


@dataclass(frozen=True, slots=True)
class Column:
    """``group`` is the heading over neighbouring columns. ``unit`` percent: values are shares in [0, 1]; p:
    probabilities of which a tiny one is printed as a bound, never as 0.

    ``interval``: renderers print it beside the value. ``compared`` is False where larger is not better.
    """

    key: str
    title: str
    group: str = ""
    unit: Unit = "percent"
    decimals: int = 1
    interval: bool = False
    compared: bool = True


@dataclass(frozen=True, slots=True)
class Cell:
    """One number. ``value`` None means: not known, and is printed as a dash, never as 0.

    ``n`` counts evaluated tasks, ``seeds`` training seeds, ``runs`` cites run ids (or the source of a
    reported value), ``note`` is a short remark printed with the value, ``best`` is set by
    :func:`mark_best` only.
    """

    value: float | None = None
    text: str = ""
    n: int | None = None
    seeds: int | None = None
    interval: tuple[float, float] | None = None
    runs: tuple[str, ...] = ()
    provenance: Provenance = "measured"
    note: str = ""
    best: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """``labels`` fill the block's label columns. ``ranked`` False: never bold, never compared."""

    labels: tuple[str, ...]
    cells: Mapping[str, Cell]
    ranked: bool = True


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that may be read against each other: one variant, protocol, panel and decoding."""

    title: str
    labels: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    title: str
    blocks: tuple[Block, ...]
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and dictionaries, for JSON and the web pages."""
        return asdict(self)


def by_group(block: Block) -> list[Block]:
    """One block per group of columns, for pages too narrow for all of them; the notes are left out."""
    groups = groupby(block.columns, key=lambda c: c.group)
    return [Block(block.title, block.labels, tuple(columns), block.rows) for _, columns in groups]


def mark_best(block: Block) -> Block:
    """Set ``best`` on the highest value of each compared column.

    Only measured cells of ranked rows with at least two training seeds take part, and only when at least two
    rows do: one seed supports no claim, and a reported number was measured under other conditions.
    """
    winners = {c.key: _highest(block.rows, c) for c in block.columns if c.compared and c.unit != "text"}
    rows = tuple(
        replace(row, cells={k: _marked(row, k, cell, winners) for k, cell in row.cells.items()})
        for row in block.rows
    )
    return replace(block, rows=rows)


def _eligible(row: Row, cell: Cell | None) -> bool:
    if cell is None or cell.value is None or not row.ranked:
        return False
    return cell.provenance == "measured" and (cell.seeds or 0) >= 2


def _highest(rows: Iterable[Row], column: Column) -> float | None:
    values = [
        round(cell.value, 9)
        for row in rows
        if (cell := row.cells.get(column.key)) is not None and cell.value is not None and _eligible(row, cell)
    ]
    return max(values) if len(values) >= 2 else None


def _marked(row: Row, key: str, cell: Cell, winners: Mapping[str, float | None]) -> Cell:
    top = winners.get(key)
    best = top is not None and cell.value is not None and _eligible(row, cell) and round(cell.value, 9) == top
    return replace(cell, best=best)


def format_value(cell: Cell | None, column: Column) -> str:
    """The number alone, as every format prints it."""
    if cell is None:
        return ABSENT
    if column.unit == "text" or cell.text:
        return cell.text or ABSENT
    if cell.value is None:
        return ABSENT
    smallest = 10**-column.decimals
    if column.unit == "p" and cell.value < smallest:
        return f"<{smallest:.{column.decimals}f}"
    return f"{_scaled(cell.value, column):.{column.decimals}f}"


def format_interval(cell: Cell | None, column: Column) -> str:
    """``[low, high]`` or nothing."""
    if cell is None or cell.interval is None or not column.interval:
        return ""
    low, high = (f"{_scaled(v, column):.{column.decimals}f}" for v in cell.interval)
    return f"[{low}, {high}]"


def format_cell(cell: Cell | None, column: Column) -> str:
    """Value, interval and note, separated by spaces."""
    note = cell.note if cell is not None else ""
    return " ".join(p for p in (format_value(cell, column), format_interval(cell, column), note) if p)


def _scaled(value: float, column: Column) -> float:
    # The decimal digits that floats near a rounding edge print must not depend on how a sum was ordered.
    return round(100 * value if column.unit == "percent" else value, 9)
