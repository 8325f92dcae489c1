"""Which columns an environment fills, and the cells of an arm under them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from seedbench import stats
from seedbench.reports.collect import Arm, Setting
from seedbench.tables import Cell, Column

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@cache
def presentation() -> Mapping[str, Any]:
    """``paper_tables.toml``."""
    return tomllib.loads(files("seedbench.reports").joinpath("paper_tables.toml").read_text("utf-8"))


def title(env: str) -> str:
    return str(presentation().get(env, {}).get("title", env))


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of one environment setting; ``key`` prefixes them so that several fit into one block."""

    key: str
    env: str
    groups: tuple[str, ...]
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, env: str, groups: Sequence[str]) -> Layout:
        """``groups`` in reporting order, those of the panel only."""
        entry = presentation().get(env, {})
        over = title(env)
        if entry.get("columns") == "score":
            columns = [
                Column(f"{env}.score", "Score", over, interval=True),
                Column(f"{env}.success", "Succ.", over, interval=True),
            ]
        else:
            names = entry.get("groups", {})
            columns = [Column(f"{env}.{g}", names.get(g, [g])[0], over) for g in groups]
            columns += [
                Column(f"{env}.micro", "Micro", over, interval=True),
                Column(f"{env}.macro", "Macro", over, interval=True),
            ]
        return cls(env, env, tuple(groups), tuple(columns))

    @property
    def scored(self) -> bool:
        """Score and success over the whole panel instead of rates per group."""
        return self.columns[0].key == f"{self.env}.score"

    def cells(self, arm: Arm) -> dict[str, Cell]:
        """One cell per column. Means run over seeds, tasks and repeats; errors and gaps count as failures."""
        success, groups = arm.success, np.asarray(arm.task_groups)
        note = _note(arm)
        if self.scored:
            return {
                f"{self.env}.score": _cell(arm, arm.score, note=note),
                f"{self.env}.success": _cell(arm, success, note=note),
            }
        out = {f"{self.env}.{g}": _cell(arm, success[:, groups == g]) for g in self.groups}
        out[f"{self.env}.micro"] = _cell(arm, success, note=note)
        out[f"{self.env}.macro"] = _cell(arm, success, arm.task_groups, note)
        return out


def headline(layout: Layout) -> Column:
    """The column by which arms are compared and ranked: micro mean, or success."""
    return layout.columns[1] if layout.scored else layout.columns[-2]


def _note(arm: Arm) -> str:
    coverage = {e.result.coverage for e in arm.evaluations if e.result.total.played < e.result.total.n}
    return ", ".join(sorted(coverage))


def _cell(arm: Arm, values: np.ndarray, groups: Sequence[str] | None = None, note: str = "") -> Cell:
    known = values[~np.isnan(values)]
    if known.size == 0:
        return Cell(n=0, seeds=arm.seeds, runs=arm.runs)
    return Cell(
        value=macro_mean(values, groups) if groups is not None else float(known.mean()),
        n=values.shape[1],
        seeds=arm.seeds,
        interval=stats.rate_interval(values, groups),
        runs=arm.runs,
        note=note,
    )


def macro_mean(values: np.ndarray, groups: Sequence[str]) -> float:
    """Unweighted mean of group means of values (seeds, tasks, repeats)."""
    names = np.asarray(groups)
    return float(np.mean([np.nanmean(values[:, names == g]) for g in dict.fromkeys(groups)]))


def describe(setting: Setting, n: int) -> str:
    """A setting in one line, for headings and notes."""
    decoding = ", ".join(f"{k} {v}" for k, v in json.loads(setting.decoding).items())
    steps = json.loads(setting.details).get("steps")
    repeats = f" x {setting.repeats}" if setting.repeats > 1 else ""
    parts = [
        f"{title(setting.env)} {setting.variant}",
        f"protocol {setting.protocol} ({steps} steps)",
        f"split {setting.split}, panel {setting.panel} ({n} tasks{repeats})",
        *([decoding] if decoding else []),
        f"setting {setting.sha256}",
    ]
    return "; ".join(parts)
