"""``seedbench verdict A B``: does A improve on B reproducibly, at what cost, and should one stop?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from seedbench import stats
from seedbench.errors import ConfigError
from seedbench.reports.collect import Arm, Evaluation, Setting, arms, collect
from seedbench.reports.compare import MIN_SEEDS, Comparison, compare
from seedbench.reports.layout import describe
from seedbench.reports.spending import training
from seedbench.store import is_good
from seedbench.tables import Block, Cell, Column, Row, Table

GAIN = "go on: reproducible gain"
NO_GAIN = "stop: no reproducible gain"
COST = "stop: cost without gain"
#: A is said to cost more when its training takes over this factor of B's.
COST_FACTOR = 1.05


@dataclass(frozen=True, slots=True)
class Verdict:
    """``decision`` is one of :data:`GAIN`, :data:`NO_GAIN`, :data:`COST`."""

    decision: str
    paragraph: str
    table: Table


def run_folders(path: str | Path) -> list[Path]:
    """The folder itself when it is a run, else the runs below it, sorted."""
    path = Path(path)
    if (path / "config.json").is_file():
        return [path]
    found = sorted(p.parent for p in path.glob("**/config.json") if (p.parent / "manifest.json").is_file())
    if not found:
        raise ConfigError(f"'{path}' holds no run. Give a run folder, or a folder with one run per seed.")
    return found


def verdict(a: str | Path, b: str | Path) -> Verdict:
    """``a`` and ``b``: a run folder each, or a folder with one run per training seed.

    Raises :class:`ConfigError` when a side mixes several arms, or when the sides share no setting.
    """
    side_a, side_b = _sides(a, "A"), _sides(b, "B")
    shared = [s for s in side_a if s in side_b]
    if not shared:
        raise ConfigError(
            f"'{a}' and '{b}' share no evaluation setting (environment, protocol, panel, decoding): "
            "nothing can be compared. Evaluate both under one protocol."
        )
    results = compare([(side_a[s], side_b[s]) for s in shared])
    decisions = [_decide(c) for c in results]
    decision = GAIN if GAIN in decisions else COST if COST in decisions else NO_GAIN
    if len(results) > 1 and len(set(decisions)) > 1:
        parts = "; ".join(f"{c.a.setting.env}: {d}" for c, d in zip(results, decisions, strict=True))
        decision_words = f"{decision} ({parts})"
    else:
        decision_words = decision
    sentences = [_sentence(c) for c in results]
    return Verdict(decision, " ".join([*sentences, f"Verdict: {decision_words}."]), _table(results))


def _sides(path: str | Path, letter: str) -> dict[Setting, Arm]:
    """One arm per setting, named ``A (method)`` or ``B (method)``."""
    made = arms(collect(run_folders(path))[0])
    out: dict[Setting, Arm] = {}
    for arm in made:
        if arm.setting in out:
            raise ConfigError(
                f"'{path}' holds two arms, '{out[arm.setting].label}' and '{arm.label}'. Give one a side."
            )
        out[arm.setting] = replace(arm, label=f"{letter} ({arm.label})")
    return out


def _decide(c: Comparison) -> str:
    if c.separated and c.difference > 0:
        return GAIN
    ratio = _cost_ratio(c.a, c.b)
    return COST if ratio is not None and ratio > COST_FACTOR else NO_GAIN


def _cost_ratio(a: Arm, b: Arm) -> float | None:
    """Training tokens of A over B; seconds where tokens were not recorded; None where neither was."""
    for name in ("tokens", "seconds"):
        x, y = (float(np.mean([getattr(training(e.run), name) for e in arm.evaluations])) for arm in (a, b))
        if x and y:
            return x / y
        if x and name == "tokens":
            return float("inf")
    return None


def _sentence(c: Comparison) -> str:
    n = c.test.n
    effect = 100 * (stats.minimum_detectable_effect(n) or 0.0)
    low, high = (100 * v for v in c.interval)
    text = (
        f"On {c.a.setting.env} ({c.a.setting.variant}, panel {c.a.setting.panel}, {n} tasks) {c.a.label} "
        f"scores {100 * np.nanmean(c.a.success):.1f} and {c.b.label} {100 * np.nanmean(c.b.success):.1f}: "
        f"{100 * c.difference:+.1f} points, 95 % interval [{low:.1f}, {high:.1f}], "
        f"p = {c.test.p:.4f} ({c.test.method}), {c.a.seeds} and {c.b.seeds} training seeds."
    )
    if c.seeds < MIN_SEEDS:
        text += f" {stats.ONE_SEED[0].upper()}{stats.ONE_SEED[1:]}."
    elif not c.separated:
        text += f" Without pairing, a difference below {effect:.1f} points would not have been seen."
    elif c.difference < 0:
        text += f" {c.a.label} is reproducibly worse."
    ratio = _cost_ratio(c.a, c.b)
    if ratio is not None:
        amount = f"{ratio:.2f} times the training cost of" if np.isfinite(ratio) else "training, unlike"
        text += f" {c.a.label} takes {amount} {c.b.label}."
    return text


def _table(results: Sequence[Comparison]) -> Table:
    columns = (
        Column("success", "Success", "Score", interval=True),
        Column("tokens", "Tokens (k)", "Training cost", "number", compared=False),
        Column("seconds", "Seconds", "Training cost", "number", compared=False),
        Column("flops", "TFLOP", "Training cost", "number", 3, compared=False),
        Column("latency", "s/episode", "Evaluation", "number", 3, compared=False),
        Column("new", "Tokens/episode", "Evaluation", "number", compared=False),
        Column("errors", "Broke off", "Evaluation", decimals=2, compared=False),
        Column("invalid", "Invalid turns", "Evaluation", decimals=2, compared=False),
    )
    blocks = []
    for c in results:
        rows = tuple(_row(arm) for arm in (c.a, c.b))
        low, high = (100 * v for v in c.interval)
        note = (
            f"A - B: {100 * c.difference:+.1f} points [{low:.1f}, {high:.1f}], p = {c.test.p:.4f}, "
            f"Holm over {len(results)}: {c.p_holm:.4f}: {c.words}."
        )
        heading = describe(c.a.setting, c.test.n)
        blocks.append(Block(heading, ("Side", "Backbone", "Seeds"), columns, rows, (note,)))
    return Table("verdict", "Verdict", tuple(blocks))


def _row(arm: Arm) -> Row:
    spent = [training(e.run) for e in arm.evaluations]
    values = arm.success
    totals = [e.result.total for e in arm.evaluations]
    played = sum(t.played for t in totals)

    def mean(numbers: Sequence[float | None]) -> Cell:
        known = [n for n in numbers if n is not None]
        return Cell(float(np.mean(known)) if known else None, seeds=arm.seeds, runs=arm.runs)

    cells = {
        "success": Cell(float(np.nanmean(values)), n=values.shape[1], seeds=arm.seeds,
                        interval=stats.rate_interval(values), runs=arm.runs),
        "tokens": mean([s.tokens / 1e3 for s in spent]),
        "seconds": mean([s.seconds for s in spent]),
        "flops": mean([s.flops / 1e12 for s in spent]),
        "latency": mean([_latency(e) for e in arm.evaluations]),
        "new": mean([e.result.new_tokens / max(e.result.total.played, 1) for e in arm.evaluations]),
        "errors": Cell(sum(t.errors for t in totals) / played if played else None, runs=arm.runs),
        "invalid": mean([e.result.invalid_share for e in arm.evaluations]),
    }  # fmt: skip
    return Row((arm.label, arm.backbone, str(arm.seeds)), cells, ranked=False)


def _latency(evaluation: Evaluation) -> float | None:
    """Mean wall-clock seconds of a finished evaluation episode."""
    records = evaluation.run.records(evaluation.stream.name)
    seconds = [float(r["seconds"]) for r in records if is_good(r)]
    return float(np.mean(seconds)) if seconds else None
