"""A leaderboard of run folders. A submission is a run folder; nothing is believed that can be recomputed.

Layout of a board::

    board/entries/<run id>/     packed run records (:mod:`seedbench.packing`)
    board/entries/<run id>/entry.json   what was true when it was added: file hashes and success rate
    board/index.html, board/README.md   made by :func:`build`

Ranks come with tie groups: a row shares the rank of the best row that no test separates it from
(:func:`seedbench.reports.compare.tie_groups`). Every setting (environment, protocol, panel, decoding) is a
list of its own.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seedbench import stats
from seedbench.errors import ConfigError, DataMissing, SeedbenchError
from seedbench.jsonl import read_json, storage, write_bytes, write_json
from seedbench.packing import pack
from seedbench.panel import find_panel
from seedbench.reports import reported
from seedbench.reports.builders import LABELS, by_setting, notes
from seedbench.reports.collect import Arm, arms, collect, evaluate
from seedbench.reports.compare import tie_groups
from seedbench.reports.layout import describe
from seedbench.reports.spending import training
from seedbench.store import Run, config_sha256
from seedbench.tables import Block, Cell, Column, Row, Table, render

#: A proof about a run: reasons to refuse it, empty when it passes.
Proof = Callable[[Run], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Check:
    """What :func:`verify` found. ``refused`` empty: it may be added. ``open``: what could not be told."""

    run_id: str
    rates: dict[str, float]
    refused: tuple[str, ...]
    open: tuple[str, ...]


def verify(path: str | Path, proofs: Sequence[Proof] = ()) -> Check:
    """Recompute a submission's score from its episodes and check what it says about itself.

    ``proofs`` are further checks (the deployment audit). A folder that is no run raises
    :class:`~seedbench.errors.DataMissing`; everything else becomes a reason.
    """
    run = Run(path)
    refused, unknown = _configuration(run), []
    rates: dict[str, float] = {}
    finals = [s for s in run.streams() if s.phase == "eval" and s.label == "final"]
    refused += [] if finals else ["there is no final evaluation"]
    for stream in finals:
        try:
            result = evaluate(run, stream).result
        except SeedbenchError as error:
            refused.append(str(error))
            continue
        if result.total.played < result.total.n:
            refused.append(f"{stream.name} covers {result.coverage} tasks of its panel")
        rates[stream.name] = result.micro or 0.0
    refused += _overlap(run)
    wrong, unknown = _environment(run)
    refused += wrong
    for proof in proofs:
        try:
            refused += proof(run)
        except SeedbenchError as error:
            unknown.append(f"a proof could not be made here: {error}")
    if (run.path / "entry.json").is_file():
        refused += _entry(run, rates)
    return Check(run.id, rates, tuple(refused), tuple(unknown))


def _configuration(run: Run) -> list[str]:
    out = []
    if run.manifest.get("config_sha256") != config_sha256(run.config):
        out.append("config.json is not the configuration the manifest was written for")
    if run.status.get("state") != "finished":
        out.append(f"the run is '{run.status.get('state')}', not finished")
    return out


def _overlap(run: Run) -> list[str]:
    panels = run.manifest.get("panels", {})
    train = set(panels.get("train", {}).get("ids", ()))
    both = sorted(train & {i for name, p in panels.items() if name != "train" for i in p["ids"]})
    return [f"{len(both)} evaluated tasks are training tasks, e.g. '{both[0]}'"] if both else []


def _environment(run: Run) -> tuple[list[str], list[str]]:
    """Compare data, protocol and panels with the environment installed here: (wrong, could not be told)."""
    from seedbench.config import EnvSection, make_environment, validated

    try:
        section = validated(EnvSection, run.config["env"], "environment")
        env = make_environment(section)
        panels = {n: find_panel(env, p["name"]) for n, p in run.manifest["panels"].items() if n != "train"}
    except SeedbenchError as error:
        return [], [f"the environment could not be rebuilt here: {error}"]
    out = []
    if env.spec.fingerprint != run.manifest["env"]["fingerprint"]:
        out.append(f"data or protocol of '{env.spec.name}' differ from the ones installed here")
    for name, panel in panels.items():
        if panel.sha256 != run.manifest["panels"][name]["sha256"]:
            out.append(f"panel '{panel.name}' is not the official one")
    return out, []


def _entry(run: Run, rates: dict[str, float]) -> list[str]:
    """A board's entry must still be what was added."""
    kept = read_json(run.path / "entry.json")
    out = [
        f"the file {n} was changed after submission"
        for n, h in kept["files"].items()
        if _hash(run.path / n) != h
    ]
    if kept["rates"] != rates:
        out.append("its recorded success rate is not what its episodes give")
    return out


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def add(board: str | Path, path: str | Path, proofs: Sequence[Proof] = ()) -> Check:
    """Verify a run and take it into the board. Raises :class:`ConfigError` with the reasons when refused."""
    check, board = verify(path, proofs), Path(board)
    if check.refused:
        raise ConfigError(f"'{path}' is refused: {'; '.join(check.refused)}.")
    target = board / "entries" / check.run_id
    if target.exists():
        raise ConfigError(f"'{board}' already holds run {check.run_id}: the same configuration and seed.")
    finals = [s.name for s in Run(path).streams() if s.phase == "eval" and s.label == "final"]
    part = target.with_name(f".{check.run_id}.part")
    with storage(board, "write"):
        shutil.rmtree(part, ignore_errors=True)
        pack(path, part, finals)
        files = sorted(p.relative_to(part).as_posix() for p in part.rglob("*") if p.is_file())
        entry = {"run": check.run_id, "rates": check.rates, "files": {n: _hash(part / n) for n in files}}
        write_json(part / "entry.json", entry)
        part.rename(target)  # an entry is there whole or not at all
    return check


def entries(board: str | Path) -> list[Path]:
    """Entry folders of a board, sorted. Raises :class:`DataMissing` for a folder that is none."""
    folder = Path(board) / "entries"
    if not folder.is_dir():
        raise DataMissing(
            f"'{board}' is no leaderboard: it has no 'entries'. Start one with 'leaderboard add'."
        )
    return sorted(p for p in folder.iterdir() if p.name[0] != "." and (p / "entry.json").is_file())


def build(board: str | Path, with_reported: bool = False) -> Table:
    """Write ``index.html`` and ``README.md`` from the entries; returns the table."""
    from seedbench.leaderboard_page import page

    table = leaderboard_table(entries(board), with_reported)
    write_bytes(Path(board) / "index.html", page(table).encode())
    write_bytes(Path(board) / "README.md", render(table, "markdown").encode())
    return table


def leaderboard_table(runs: Sequence[str | Path], with_reported: bool = False) -> Table:
    """One block per setting: rank, success, and what the training cost."""
    found, left_out = collect(runs)
    blocks = [_block(members) for members in by_setting(arms(found)).values()]
    if with_reported:
        blocks += reported.table1_blocks()
    return Table("leaderboard", "Leaderboard", tuple(blocks), tuple(left_out))


def _block(members: Sequence[Arm]) -> Block:
    columns = (
        Column("rank", "Rank", unit="number", decimals=0, compared=False),
        Column("success", "Success", interval=True),
        Column("macro", "Macro"),
        Column("score", "Score"),
        Column("tokens", "Train tokens (k)", unit="number", compared=False),
        Column("seconds", "Train s", unit="number", compared=False),
        Column("flops", "TFLOP", unit="number", decimals=3, compared=False),
        Column("code", "Code", unit="text", compared=False),
    )
    rows = tuple(_row(rank, arm) for rank, arm in tie_groups(members))
    ties = (
        "Rows of one rank are not separated by a paired test (Holm over all pairs; bootstrap over seeds and "
        f"tasks). No rank: {stats.ONE_SEED}, or † not rankable."
    )
    heading = describe(members[0].setting, members[0].success.shape[1])
    return Block(heading, LABELS, columns, rows, (*notes(members), ties))


def _row(rank: int | None, arm: Arm) -> Row:
    values = arm.success
    spent = [training(e.run) for e in arm.evaluations]
    macros = [e.result.macro for e in arm.evaluations]

    def cell(value: float | None, **more: Any) -> Cell:
        return Cell(value, n=values.shape[1], seeds=arm.seeds, runs=arm.runs, **more)

    cells = {
        "rank": cell(rank),
        "success": cell(float(np.nanmean(values)), interval=stats.rate_interval(values)),
        "macro": cell(float(np.mean([m for m in macros if m is not None])) if any(macros) else None),
        "score": cell(float(np.nanmean(arm.score))),
        "tokens": cell(float(np.mean([s.tokens for s in spent])) / 1e3),
        "seconds": cell(float(np.mean([s.seconds for s in spent]))),
        "flops": cell(float(np.mean([s.flops for s in spent])) / 1e12),
        "code": Cell(text=_code(arm), runs=arm.runs),
    }
    label = arm.label + ("" if not arm.not_ranked else " †")
    return Row((label, arm.backbone, str(arm.seeds), "measured"), cells, rank is not None)


def _code(arm: Arm) -> str:
    """Commits that made the runs; ``+`` marks uncommitted changes."""
    states = [e.run.manifest.get("git") for e in arm.evaluations]
    return ", ".join(
        dict.fromkeys(s["sha"][:8] + ("+" if s["dirty"] else "") if s else "release" for s in states)
    )
