"""Tables 1, 2, 6 and 7 of the papers, from run records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from seedbench import stats
from seedbench.reports import reported
from seedbench.reports.collect import Arm, Evaluation, Setting, arms, collect
from seedbench.reports.layout import Layout, describe, headline, presentation
from seedbench.tables import Block, Cell, Column, Row, Table, mark_best

LABELS = ("Method", "Backbone", "Seeds", "From")
Paths = Iterable[str | Path]


def table1(runs: Paths, with_reported: bool = False) -> Table:
    """Method x backbone against the reporting groups and averages of every environment.

    One block per variant; an environment that was run under several settings (protocol, panel, decoding ...)
    gets a block for each, so no two settings stand in one column.
    """
    found, left_out = collect(runs)
    blocks = [_block(part) for part in _parts(arms(found))]
    if with_reported:
        blocks += reported.table1_blocks()
    return Table("table1", "Table 1: success by method", tuple(blocks), tuple(left_out))


def table2(runs: Paths, with_reported: bool = False) -> Table:
    """Ablations: the arms of one method. Columns as in Table 1; ``Δ`` is the difference to the first row.

    The first row of each method and backbone is the arm without changed settings where there is one.
    """
    found, left_out = collect(runs)
    made = arms(found)
    blocks = [_ablation_block(part) for part in _parts(made)]
    if with_reported:
        blocks += reported.other_blocks("Table 2")
    return Table("table2", "Table 2: ablations", tuple(blocks), tuple(left_out))


def table6(runs: Paths, with_reported: bool = False) -> Table:
    """Success by share of the training tasks (``train.data_fraction``)."""
    found, left_out = collect(runs)
    blocks = [_fraction_block(setting, part) for setting, part in by_setting(_fractions(found)).items()]
    if with_reported:
        blocks += reported.other_blocks("Table 6")
    return Table("table6", "Table 6: success by share of training data", tuple(blocks), tuple(left_out))


def table7(runs: Paths, with_reported: bool = False) -> Table:
    """Every evaluation panel of the runs, one block each: seen beside unseen tasks, never merged (BR-103)."""
    found, left_out = collect(runs)
    blocks = [_block(part) for part in by_setting(arms(found)).values()]
    if with_reported:
        blocks += reported.other_blocks("Table 7")
    return Table("table7", "Table 7: seen and unseen tasks", tuple(blocks), tuple(left_out))


BUILDERS = {"1": table1, "2": table2, "6": table6, "7": table7}


def by_setting(made: Sequence[Arm]) -> dict[Setting, list[Arm]]:
    out: dict[Setting, list[Arm]] = defaultdict(list)
    for arm in made:
        out[arm.setting].append(arm)
    return dict(sorted(out.items()))


def _parts(made: Sequence[Arm]) -> list[list[Arm]]:
    """Arms that may share a block: one variant, and one setting per environment."""
    members = by_setting(made)
    per_env: dict[tuple[str, str], list[Setting]] = defaultdict(list)
    for setting in members:
        per_env[setting.variant, setting.env].append(setting)
    joint: dict[str, list[Arm]] = defaultdict(list)
    alone = []
    for (variant, _), settings in per_env.items():
        if len(settings) == 1:
            joint[variant] += members[settings[0]]
        else:
            alone += [members[s] for s in settings]
    return [*(joint[v] for v in sorted(joint)), *alone]


def _layouts(part: Sequence[Arm]) -> dict[Setting, Layout]:
    out = {}
    for setting, members in by_setting(part).items():
        present = set(members[0].task_groups)
        order = [g for g in members[0].evaluations[0].group_order if g in present]
        out[setting] = Layout.of(setting.env, order)
    return out


def _row_key(arm: Arm) -> tuple[str, str]:
    return arm.backbone, arm.label


def _row_order(key: tuple[str, str]) -> tuple[str, int, str]:
    """Backbone, then the papers' order of methods, then the name."""
    backbone, label = key
    order = presentation()["order"]["methods"]
    method = label.partition(" (")[0]
    return backbone, order.index(method) if method in order else len(order), label


def _block(part: Sequence[Arm]) -> Block:
    layouts = _layouts(part)
    rows: dict[tuple[str, str], list[Arm]] = defaultdict(list)
    for arm in part:
        rows[_row_key(arm)].append(arm)
    settings = list(layouts)
    heading = describe(settings[0], part[0].success.shape[1]) if len(settings) == 1 else settings[0].variant
    columns = tuple(c for layout in layouts.values() for c in layout.columns)
    made = tuple(_row(rows[key], layouts) for key in sorted(rows, key=_row_order))
    return mark_best(Block(heading, LABELS, columns, made, notes(part)))


def _row(members: Sequence[Arm], layouts: dict[Setting, Layout]) -> Row:
    cells: dict[str, Cell] = {}
    for arm in members:
        cells.update(layouts[arm.setting].cells(arm))
    counts = sorted({arm.seeds for arm in members})
    ranked = not any(arm.not_ranked for arm in members)
    label = members[0].label + ("" if ranked else " †")
    return Row((label, members[0].backbone, "/".join(map(str, counts)), "measured"), cells, ranked)


def notes(part: Sequence[Arm]) -> tuple[str, ...]:
    """What a reader must know to believe the block."""
    out = []
    for setting, members in by_setting(part).items():
        n = members[0].success.shape[1]
        out.append(describe(setting, n) + ".")
        out.append(_power_note(members, n))
    single = sorted({f"{a.label}/{a.backbone}" for a in part if a.seeds < 2})
    if single:
        out.append(f"{stats.ONE_SEED} ({', '.join(single)}).")
    out += [_error_note(part), _budget_note(part)]
    for arm in part:
        if arm.not_ranked:
            out.append(f"† {arm.label}/{arm.backbone} is not ranked: {'; '.join(arm.not_ranked)}.")
    out.append(
        "Micro is the mean over episodes, macro the unweighted mean of the groups; success only when the "
        "task's own condition held (score 1 where a score is given). 95 % intervals: Wilson over tasks for "
        "one seed and one play per task, else bootstrap over seeds, tasks and repeats."
    )
    return tuple(dict.fromkeys(n for n in out if n))


def _power_note(members: Sequence[Arm], n: int) -> str:
    effect = stats.minimum_detectable_effect(n)
    return (
        f"Minimum detectable difference between two rows on {n} tasks (80 % power, 5 % level, unpaired, rate "
        f"0.5): {100 * (effect or 0):.1f} points."
    )


def _error_note(part: Sequence[Arm]) -> str:
    broken = []
    episodes = sum(e.result.total.played for a in part for e in a.evaluations)
    for arm in part:
        totals = [e.result.total for e in arm.evaluations]
        errors, played = sum(t.errors for t in totals), sum(t.played for t in totals)
        if errors:
            solved, n = sum(t.successes for t in totals), sum(t.n for t in totals)
            without = f"{100 * solved / (played - errors):.1f}" if played > errors else "none left"
            broken.append(
                f"{arm.label}/{arm.backbone} {errors} of {played} (errors as failures "
                f"{100 * solved / n:.1f}, excluded {without})"
            )
    return f"Infrastructure errors: {'; '.join(broken) or f'none in {episodes} episodes'}."


def _budget_note(part: Sequence[Arm]) -> str:
    budgets = sorted(
        {int(e.run.config.get("train", {}).get("updates", 0)) for a in part for e in a.evaluations}
    )
    return f"Training budgets differ: {', '.join(map(str, budgets))} updates." if len(budgets) > 1 else ""


def _ablation_block(part: Sequence[Arm]) -> Block:
    """Table 1's block with a column ``Δ`` behind each environment."""
    block, layouts = _block(part), _layouts(part)
    base: dict[tuple[Setting, str, str], Arm] = {}
    for arm in sorted(part, key=lambda a: (len(a.label), a.label)):
        base.setdefault(_family(arm), arm)
    columns, deltas = [], {}
    for setting, layout in layouts.items():
        head = headline(layout)
        delta = Column(f"{layout.key}.delta", f"Δ {head.title}", head.group, interval=True, compared=False)
        columns += [*layout.columns, delta]
        for arm in by_setting(part)[setting]:
            deltas.setdefault(_row_key(arm), {})[delta.key] = _delta(arm, base[_family(arm)])
    keys = sorted({_row_key(a) for a in part}, key=_row_order)
    rows = tuple(
        replace(row, cells={**row.cells, **deltas[key]}) for key, row in zip(keys, block.rows, strict=True)
    )
    return replace(block, columns=tuple(columns), rows=rows)


def _family(arm: Arm) -> tuple[Setting, str, str]:
    return arm.setting, arm.evaluations[0].method, arm.backbone


def _delta(arm: Arm, base: Arm) -> Cell:
    """Difference of micro means with its paired bootstrap interval."""
    if arm is base:
        return Cell(text="0")
    a, b = arm.success, base.success
    interval = stats.percentile_interval(stats.bootstrap_difference(a, b))
    seeds = min(arm.seeds, base.seeds)
    value = float(np.nanmean(a) - np.nanmean(b))
    return Cell(value, n=a.shape[1], seeds=seeds, interval=interval, runs=arm.runs + base.runs)


def _fractions(found: Sequence[Evaluation]) -> list[Arm]:
    """Arms told apart by data fraction alone, named without it."""
    by_fraction: dict[float, list[Evaluation]] = defaultdict(list)
    for e in found:
        by_fraction[_fraction(e)].append(e)
    return [a for f in sorted(by_fraction) for a in arms(by_fraction[f])]


def _fraction(evaluation: Evaluation) -> float:
    return float(evaluation.run.config.get("train", {}).get("data_fraction", 1.0))


def _fraction_block(setting: Setting, part: Sequence[Arm]) -> Block:
    layout = next(iter(_layouts(part).values()))
    head = headline(layout)
    shares = sorted({_fraction(a.evaluations[0]) for a in part})
    columns = tuple(Column(f"{s:g}", f"{100 * s:g} %", head.group, interval=True) for s in shares)
    rows: dict[tuple[str, str], list[Arm]] = defaultdict(list)
    for arm in part:
        rows[_row_key(arm)].append(arm)
    made = []
    for key in sorted(rows, key=_row_order):
        row = _row(rows[key], {setting: layout})
        cells = {f"{_fraction(a.evaluations[0]):g}": layout.cells(a)[head.key] for a in rows[key]}
        made.append(replace(row, cells=cells))
    heading = f"{head.title}: {describe(setting, part[0].success.shape[1])}"
    return mark_best(Block(heading, LABELS, columns, tuple(made), notes(part)))
