"""Numbers printed by others (``results/reported``), as cells that are never bold, ranked or tested."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import seedbench
from seedbench.errors import DataCorrupt, DataMissing
from seedbench.reports.layout import presentation
from seedbench.tables import Block, Cell, Column, Row

FIELDS = ("source", "table", "backbone", "method", "env", "metric", "value", "role", "read")
_NOTE = (
    "Reported numbers were measured by others under other conditions (128 draws, one run, step limits of 30 "
    "or 50): to be read, not compared. 'Avg' is as printed; 'Macro' is recomputed from the printed columns."
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One printed number, in percent unless ``metric`` says otherwise."""

    source: str
    table: str
    backbone: str
    method: str
    env: str
    metric: str
    value: float
    role: str
    read: str

    @property
    def cite(self) -> str:
        where = " | ".join((self.source, self.table, self.backbone, self.method, self.env, self.metric))
        return f"{where} = {self.value:g}"


def folder() -> Path:
    """The reported numbers: in the wheel inside the package, in a checkout under ``results``."""
    package = Path(seedbench.__file__).resolve().parent
    for place in (package / "reported", package.parent / "results" / "reported"):
        if place.is_dir():
            return place
    raise DataMissing("The folder of reported numbers (results/reported) is missing. Reinstall seedbench.")


def load(place: Path | None = None) -> list[Fact]:
    """All facts of a folder, or of one CSV file, in file order. Raises :class:`DataCorrupt` with the line."""
    place = folder() if place is None else place
    if not place.exists():
        raise DataMissing(f"'{place}' is not there. Give a CSV file or a folder of them.")
    paths = sorted(place.glob("*.csv")) if place.is_dir() else [place]
    return [fact for path in paths for fact in _read(path)]


def _read(path: Path) -> Iterable[Fact]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != FIELDS:
            raise DataCorrupt(f"'{path}' line 1 should read: {','.join(FIELDS)}.")
        for number, line in enumerate(reader, 2):
            try:
                yield Fact(**{**line, "value": float(line["value"])})
            except (TypeError, ValueError) as error:
                raise DataCorrupt(f"'{path}' line {number} is no reported number ({error}).") from error


def table1_blocks() -> list[Block]:
    """Reported rows under Table 1's columns, one block per backbone."""
    facts = [f for f in load() if f.table in ("Table 1", "main results") and f.role == "table"]
    columns, where = _table1_columns()
    blocks = []
    for backbone in dict.fromkeys(f.backbone for f in facts):
        rows = _rows([f for f in facts if f.backbone == backbone], where)
        title = f"Reported by others: {backbone}"
        blocks.append(Block(title, ("Method", "Backbone", "Seeds", "From"), columns, rows, (_NOTE,)))
    return blocks


def _table1_columns() -> tuple[tuple[Column, ...], dict[tuple[str, str], str]]:
    """Columns, and (env, metric) of a fact -> column key."""
    columns: list[Column] = []
    where: dict[tuple[str, str], str] = {}
    for env, entry in presentation().items():
        if "reported" not in entry:
            continue
        name, over = entry["reported"], entry["title"]
        pairs = list(entry.get("groups", {}).values())
        pairs += [["Avg", "avg"]] if pairs else [["Score", "score"], ["Succ.", "success"]]
        for title, metric in pairs:
            columns.append(Column(f"{env}.{metric}", title, over, compared=False))
            where[name, metric] = f"{env}.{metric}"
        if entry.get("groups"):
            columns.append(Column(f"{env}.macro", "Macro", over, compared=False))
    return tuple(columns), where


def _rows(facts: Iterable[Fact], where: Mapping[tuple[str, str], str]) -> tuple[Row, ...]:
    """One row per method; sources that print the same cells share it."""
    by_row: dict[tuple[str, str, str], dict[str, Fact]] = {}
    for fact in facts:
        key = where.get((fact.env, fact.metric))
        if key is not None:
            by_row.setdefault((fact.method, fact.backbone, fact.source), {})[key] = fact
    merged: dict[tuple[str, str, tuple], list[str]] = {}
    for (method, backbone, source), cells in by_row.items():
        values = tuple(sorted((key, fact.value) for key, fact in cells.items()))
        merged.setdefault((method, backbone, values), []).append(source)
    out = []
    for (method, backbone, _), sources in merged.items():
        cells = _with_macro(by_row[method, backbone, sources[0]], tuple(sources))
        out.append(Row((method, backbone, "—", " = ".join(sources)), cells, ranked=False))
    return tuple(out)


def _with_macro(facts: Mapping[str, Fact], sources: tuple[str, ...]) -> dict[str, Cell]:
    cells = {key: _cell(fact.value / 100, sources) for key, fact in facts.items()}
    for env, entry in presentation().items():
        keys = [f"{env}.{metric}" for _, metric in entry.get("groups", {}).values()]
        if keys and all(k in facts for k in keys):
            value = sum(facts[k].value for k in keys) / len(keys) / 100
            cells[f"{env}.macro"] = _cell(value, sources)
    return cells


def _cell(value: float, sources: tuple[str, ...]) -> Cell:
    return Cell(value, runs=sources, provenance="reported")


def other_blocks(table: str) -> list[Block]:
    """A reported table as printed: one block per environment, metrics as columns."""
    facts = [f for f in load() if f.table == table and f.role == "table"]
    blocks = []
    for env in dict.fromkeys(f.env for f in facts):
        part = [f for f in facts if f.env == env]
        metrics = list(dict.fromkeys(f.metric for f in part))
        columns = tuple(Column(m, m, compared=False) for m in metrics)
        rows = _rows(part, {(env, m): m for m in metrics})
        title = f"Reported by others: {table}, {env}"
        note = "Measured by others under other conditions: to be read, not compared."
        blocks.append(Block(title, ("Method", "Backbone", "Seeds", "From"), columns, rows, (note,)))
    return blocks
