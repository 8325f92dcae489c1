"""``seedbench audit tables``: what reported numbers contradict about themselves and each other.

Every check is arithmetic on printed cells and on what is known about the tasks (``published_facts.toml``); a
finding says what cannot be, and cites the cells. A table without contradictions gives no finding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seedbench.audit import counting
from seedbench.audit.crosscheck import (
    contradicted_claims,
    copied_rows,
    disagreeing_reruns,
    disagreeing_tables,
)
from seedbench.audit.findings import Finding, known_tasks, who
from seedbench.reports.reported import Fact
from seedbench.tables import Block, Cell, Column, Row, Table

#: A row of one environment: source, table, backbone, method, env.
RowKey = tuple[str, str, str, str, str]
#: Rates may be averages over this many plays of the whole split before they are called impossible.
ROUNDS = 3
#: Task counts above this print almost every rate with one decimal; no size can be read from them.
MAX_SEARCHED = 500


def audit_tables(facts: Sequence[Fact]) -> list[Finding]:
    """All findings, in the order of the checks, of what :func:`seedbench.reports.reported.load` gives."""
    printed = [f for f in facts if f.role == "table"]
    rows = _rows(printed)
    return [
        *averages(rows),
        *impossible_rates(rows),
        *copied_rows(printed),
        *disagreeing_tables(printed),
        *contradicted_claims(facts, printed),
        *disagreeing_reruns(facts, printed),
    ]


def _rows(facts: Iterable[Fact]) -> dict[RowKey, dict[str, Fact]]:
    out: dict[RowKey, dict[str, Fact]] = defaultdict(dict)
    for f in facts:
        out[f.source, f.table, f.backbone, f.method, f.env][f.metric] = f
    return dict(out)


def averages(rows: Mapping[RowKey, Mapping[str, Fact]]) -> list[Finding]:
    """Averages that follow from no reading of their columns, and tables that mix two readings."""
    findings = []
    readings: dict[tuple[str, str, str], dict[str, list[Fact]]] = defaultdict(lambda: defaultdict(list))
    for (source, table, _, _, env), cells in rows.items():
        known = known_tasks().get(env)
        if known is None or any(m not in cells for m in (*known["metrics"], known["average"])):
            continue
        rates, average = [cells[m].value for m in known["metrics"]], cells[known["average"]]
        fits = _readings(known, rates, average.value)
        if not fits:
            cited = (average.cite, *(cells[m].cite for m in known["metrics"]))
            findings.append(Finding("average", _no_reading(known, rates, average), cited))
        if len(fits) == 1:
            readings[source, table, env][fits[0]].append(average)
    for (source, table, env), by_kind in readings.items():
        if len(by_kind) > 1:
            (few, some), (many, rest) = sorted(by_kind.items(), key=lambda kv: len(kv[1]))
            text = (
                f"{source} {table}, {env}: the average column mixes two definitions. {len(rest)} rows print "
                f"the {many} average; {len(some)} print the {few} average ({', '.join(map(who, some))})."
            )
            cited = tuple(f.cite for f in (*some, *rest))
            findings.append(Finding("mixed averages", text, cited))
    return findings


def _readings(known: Mapping[str, Any], rates: Sequence[float], average: float) -> list[str]:
    fits = ["macro"] if counting.macro_possible(rates, average) else []
    if "draws" in known and counting.micro_possible(rates, average, known["draws"]):
        fits.append("micro")
    if "sizes" in known and counting.weighted_possible(rates, known["sizes"], average):
        fits.append("micro")
    return fits


def _no_reading(known: Mapping[str, Any], rates: Sequence[float], average: Fact) -> str:
    mean = sum(rates) / len(rates)
    other = f"no success count of {known['draws']} draws" if "draws" in known else "not the mean over tasks"
    return (
        f"{who(average)}, {average.env}: the printed average {average.value:.1f} is {other} that these "
        f"columns allow, and not their unweighted mean {mean:.2f}."
    )


def impossible_rates(rows: Mapping[RowKey, Mapping[str, Fact]]) -> list[Finding]:
    """Rates that no success count of the true family sizes prints, and the sizes they imply instead."""
    findings = []
    tables: dict[tuple[str, str, str], list[Mapping[str, Fact]]] = defaultdict(list)
    for (source, table, _, _, env), cells in rows.items():
        known = known_tasks().get(env, {})
        if "sizes" in known and all(m in cells for m in known["metrics"]):
            tables[source, table, env].append(cells)
    for (source, table, env), members in tables.items():
        known = known_tasks()[env]
        wrong = [
            (c[m], n)
            for c in members
            for m, n in zip(known["metrics"], known["sizes"], strict=True)
            if not counting.possible(c[m].value, n, ROUNDS)
        ]
        if wrong:
            text = _impossible(f"{source} {table}, {env}", known, members, len(wrong))
            findings.append(Finding("impossible rate", text, tuple(f"{f.cite} (n = {n})" for f, n in wrong)))
    return findings


def _impossible(
    where: str, known: Mapping[str, Any], members: Sequence[Mapping[str, Fact]], wrong: int
) -> str:
    sizes, total = known["sizes"], sum(known["sizes"])
    text = (
        f"{where}: {wrong} rates are no success count of the true group sizes {_slashed(sizes)}, played "
        f"up to {ROUNDS} times."
    )
    rates = [[c[m].value for m in known["metrics"]] for c in members]
    if total <= MAX_SEARCHED:
        return text + _split(rates, total, members)
    for j, (metric, size) in enumerate(zip(known["metrics"], sizes, strict=True)):
        text += _one_size(metric, [row[j] for row in rates], size)
    return text


def _split(rates: Sequence[Sequence[float]], total: int, members: Sequence[Mapping[str, Fact]]) -> str:
    """Sizes of all groups that fit as many rows as possible."""
    chosen, found = counting.implied_sizes(rates, total)
    if not found:
        return ""
    names = [who(next(iter(c.values()))) for c in members]
    more = f" (or {len(found) - 1} other splits)" if len(found) > 1 else ", and no other split of it"
    text = f" {', '.join(names[i] for i in chosen)} fit {_slashed(found[0])} of {total} games{more}."
    rest = [name for i, name in enumerate(names) if i not in chosen]
    return text + (f" {', '.join(rest)}: neither that nor the true sizes." if rest else "")


def _one_size(metric: str, rates: Sequence[float], size: int) -> str:
    """The number of tasks, up to twice the true one, that fits most rows; nothing when the true one does."""
    if size > MAX_SEARCHED or all(counting.possible(r, size, ROUNDS) for r in rates):
        return ""
    fits = {n: sum(bool(counting.counts_for(r, n)) for r in rates) for n in range(2, 2 * size + 1)}
    best = max(fits, key=lambda n: (fits[n], -n))
    return f" {metric}: {size} fits {fits[size]} of {len(rates)} rows, {best} fits {fits[best]}."


def _slashed(sizes: Sequence[int]) -> str:
    return "/".join(map(str, sizes))


def findings_table(findings: Sequence[Finding], cited: int = 4) -> Table:
    """Findings as a table: kind, what, and the first ``cited`` cells."""
    columns = (Column("finding", "Finding", unit="text"), Column("cells", "Cells", unit="text"))
    rows = []
    for f in findings:
        more = f"; and {len(f.cells) - cited} more" if len(f.cells) > cited else ""
        cells = {
            "finding": Cell(text=f.text, runs=f.cells, provenance="reported"),
            "cells": Cell(text="; ".join(f.cells[:cited]) + more, runs=f.cells, provenance="reported"),
        }
        rows.append(Row((f.kind,), cells, ranked=False))
    title = f"{len(findings)} findings" if findings else "No contradiction found"
    block = Block(title, ("Check",), columns, tuple(rows))
    return Table(
        "audit-tables", "Audit of published tables", (block,) if rows else (), () if rows else (title,)
    )
