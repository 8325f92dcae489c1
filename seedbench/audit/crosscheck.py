"""Reported tables against each other: copies, two values for one thing, claims, independent reruns."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

from seedbench.audit.findings import Finding, known_tasks, who
from seedbench.reports.reported import Fact

#: Cells two rows must share, all equal, before one is called a copy of the other.
MIN_SHARED = 6
#: |z| of two independent shares of the stated draws above which a rerun disagrees (p about 0.001).
RERUN_Z = 3.29


def copied_rows(facts: Sequence[Fact]) -> list[Finding]:
    """Rows that equal another source's row of the same method, or a row of another method, cell for cell."""
    whole: dict[tuple[str, str, str, str], dict[tuple[str, str], Fact]] = defaultdict(dict)
    for f in facts:
        whole[f.source, f.table, f.backbone, f.method][f.env, f.metric] = f
    reused: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    renamed: dict[tuple[str, str, str, str], list[Fact]] = defaultdict(list)
    for (key_a, a), (key_b, b) in combinations(whole.items(), 2):
        shared = [k for k in a if k in b]
        same = all(a[k].value == b[k].value for k in shared)
        if len(shared) < MIN_SHARED or not same or all(a[k].value in (0, 100) for k in shared):
            continue
        first = shared[-1]
        if key_a[3] == key_b[3] and key_a[0] != key_b[0]:
            reused[key_a[0], key_b[0]] += [a[first], b[first]]
        elif key_a[3] != key_b[3]:
            small, large = (key_a, b) if len(a) <= len(b) else (key_b, a)
            renamed[small] += [whole[small][first], large[first]]
    out = []
    for (one, two), cells in reused.items():
        text = f"{len(cells) // 2} rows of {one} and {two} are equal cell for cell: one measurement, not two."
        out.append(Finding("reused rows", text, tuple(c.cite for c in cells)))
    for (source, table, backbone, method), cells in renamed.items():
        others = ", ".join(dict.fromkeys(f"{c.method} in {c.source} {c.table}" for c in cells[1::2]))
        text = f"{source} {table}: the row '{method}' ({backbone}) equals {others} cell for cell."
        out.append(Finding("renamed row", text, tuple(dict.fromkeys(c.cite for c in cells))))
    return out


def disagreeing_tables(facts: Sequence[Fact]) -> list[Finding]:
    """One source that prints two values for one thing (say, at 100 % of the data and in the main table)."""
    places: dict[tuple[str, ...], list[Fact]] = defaultdict(list)
    for f in facts:
        metric = f.metric.removesuffix("@data=100%")
        places[f.source, f.backbone, f.method, f.env, metric].append(f)
    out = []
    for (source, *_), cells in places.items():
        if len({c.value for c in cells}) > 1:
            text = f"{source}: {who(cells[0])}, {cells[0].env} {cells[0].metric} has two values."
            out.append(Finding("two values", text, tuple(c.cite for c in cells)))
    return out


def contradicted_claims(facts: Sequence[Fact], printed: Sequence[Fact]) -> list[Finding]:
    """Statements of secondary texts that the tables they speak of contradict."""
    out = []
    for claim in (f for f in facts if f.role == "claim"):
        if " minus " in claim.method:
            out += _range_claim(claim, printed)
            continue
        same = [f for f in printed if (f.method, f.env, f.metric) == (claim.method, claim.env, claim.metric)]
        here = [f for f in same if f.backbone == claim.backbone]
        if not here or any(math.isclose(f.value, claim.value, abs_tol=0.05) for f in here):
            continue
        values = " and ".join(dict.fromkeys(f"{f.value:g}" for f in here))
        text = f"{claim.source} gives {claim.value:g} for {who(claim)}, {claim.env} {claim.metric}"
        text += f"; the tables print {values}"
        elsewhere = [f for f in same if math.isclose(f.value, claim.value, abs_tol=0.05)]
        text += f"; {claim.value:g} is the value for {elsewhere[0].backbone}." if elsewhere else "."
        out.append(Finding("contradicted claim", text, tuple(f.cite for f in (claim, *here, *elsewhere))))
    return out


def _range_claim(claim: Fact, printed: Sequence[Fact]) -> list[Finding]:
    """``X minus Y`` over all backbones, smallest or largest."""
    one, _, two = claim.method.partition(" minus ")
    values: dict[str, dict[str, Fact]] = defaultdict(dict)
    for f in printed:
        if (f.env, f.metric) == (claim.env, claim.metric) and f.method in (one, two) and f.table == "Table 1":
            values[f.backbone].setdefault(f.method, f)
    pairs = [v for v in values.values() if len(v) == 2]
    if not pairs:
        return []
    pick = min if "(min)" in claim.backbone else max
    best = pick(pairs, key=lambda v: v[one].value - v[two].value)
    difference = best[one].value - best[two].value
    if abs(difference - claim.value) <= 0.1 + 1e-9:
        return []
    what = f"{claim.method}, {claim.env} {claim.metric}, {claim.backbone}"
    text = f"{claim.source}: {what} is {difference:.1f} by the tables, not {claim.value:g}."
    return [Finding("contradicted claim", text, (claim.cite, best[one].cite, best[two].cite))]


def disagreeing_reruns(facts: Sequence[Fact], printed: Sequence[Fact]) -> list[Finding]:
    """Independent runs further from the printed value than two samples of the stated draws explain."""
    out = []
    for rerun in (f for f in facts if f.role == "rerun"):
        draws = known_tasks().get(rerun.env, {}).get("draws")
        key = (rerun.backbone, rerun.method, rerun.env, rerun.metric)
        same = [f for f in printed if (f.backbone, f.method, f.env, f.metric) == key]
        if not draws or not same:
            continue
        p, q = rerun.value / 100, same[0].value / 100
        pooled = (p + q) / 2
        z = abs(p - q) / max(math.sqrt(2 * pooled * (1 - pooled) / draws), 1e-9)
        if z > RERUN_Z:
            text = (
                f"{rerun.source} measured {rerun.value:g} for {who(rerun)}, {rerun.env} {rerun.metric}; "
                f"printed {same[0].value:g}: more than two samples of {draws} draws explain (z = {z:.1f})."
            )
            out.append(Finding("disagreeing rerun", text, (rerun.cite, *(f.cite for f in same))))
    return out
