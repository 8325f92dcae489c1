"""``seedbench study plan|run|status|report|pack``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seedbench.cli.report import echo

if TYPE_CHECKING:
    from rich.table import Table

    from seedbench.study.execute import Event
    from seedbench.study.folder import Standing, StudyFolder

study = typer.Typer(
    help="Many runs from one declarative file. Shipped: table1, table2, table6, table7.", no_args_is_help=True
)

Source = Annotated[
    str, typer.Argument(help="a shipped study, a TOML file, or the folder of a study", show_default=False)
]
Scale = Annotated[str, typer.Option(help="quick, cpu or paper (default: quick)")]
Smoke = Annotated[
    bool, typer.Option("--smoke", help="one update, two tasks, short panels: only to see that it runs")
]
Env = Annotated[list[str] | None, typer.Option(help="only this environment (repeatable)")]
Backbone = Annotated[list[str] | None, typer.Option(help="this backbone instead (repeatable)")]
Seeds = Annotated[int | None, typer.Option(min=1, help="this number of training seeds instead")]
Settings = Annotated[
    list[str] | None, typer.Option("-o", "--set", help="a setting of every run, e.g. -o train.updates=5")
]
Out = Annotated[Path, typer.Option("--out", help="folder that holds the folders of studies")]
Jobs = Annotated[int, typer.Option(min=0, help="runs side by side, one core each; 0: one per core")]


@study.command("plan")
def plan_command(
    source: Source, scale: Scale = "", smoke: Smoke = False, env: Env = None, backbone: Backbone = None,
    seeds: Seeds = None, settings: Settings = None, out: Out = Path("studies"), jobs: Jobs = 0,
    measured: Annotated[
        list[Path] | None, typer.Option(help="folders with earlier runs, for the estimates")
    ] = None,
) -> None:  # fmt: skip
    """Print the runs, and what they will take: measured where runs of a kind exist, else stated."""
    from seedbench.study.estimate import Ledger, wall_seconds

    folder = _open(source, scale, smoke, env, backbone, seeds, settings, out)
    ledger = Ledger([out, Path("runs"), folder.path, *(measured or [])])
    estimates, owed = [], []
    standings = folder.standings()
    rows = []
    for s in standings:
        estimate = ledger.estimate(s.run)
        estimates.append(estimate)
        if s.state != "finished":
            owed.append(estimate)
        cells = [_duration(estimate.seconds), f"{estimate.tokens / 1e6:.2f}", estimate.basis]
        rows.append([*_identity(s.run), s.state, *cells])
    _print(
        _table(
            ["Arm", "Environment", "Backbone", "Data", "Seed", "State", "Time", "Tokens (M)", "Basis"], rows
        )
    )
    bases = Counter(e.basis.partition(" ")[0] for e in owed)
    width = jobs or _cores()
    echo(
        f"{folder.study.name}, scale {folder.study.scale}: {len(owed)} of {len(standings)} runs owed, about "
        f"{_duration(wall_seconds(owed, width))} on {width} processes and {sum(e.tokens for e in owed) / 1e6:.1f} M "
        f"tokens ({', '.join(f'{n} {basis}' for basis, n in sorted(bases.items())) or 'nothing to do'})."
    )
    echo(f"study folder: {folder.path}")


@study.command("run")
def run_command(
    source: Source, scale: Scale = "", smoke: Smoke = False, env: Env = None, backbone: Backbone = None,
    seeds: Seeds = None, settings: Settings = None, out: Out = Path("studies"), jobs: Jobs = 0,
) -> None:  # fmt: skip
    """Execute what is owed. Finished runs are not repeated; stopped and failed ones continue."""
    from seedbench.study.execute import execute

    folder = _open(source, scale, smoke, env, backbone, seeds, settings, out)
    owed = len(folder.owed())
    echo(f"{folder.study.name}: {owed} of {len(folder.runs)} runs owed; study folder: {folder.path}")
    failed = execute(folder, jobs or _cores(), _announce) if owed else []
    if failed:
        reasons = Counter(folder.failure(run).read_text("utf-8") for run in failed)
        for reason, count in reasons.most_common():
            echo(f"{count} failed: {reason}")
        echo("The same command tries failed runs again.")
        raise typer.Exit(1)
    echo(f"All runs are finished. Tables and figures: seedbench study report {folder.path}")


@study.command("status")
def status_command(
    source: Source, scale: Scale = "", smoke: Smoke = False, env: Env = None, backbone: Backbone = None,
    seeds: Seeds = None, settings: Settings = None, out: Out = Path("studies"),
    watch: Annotated[bool, typer.Option("--watch", help="stay, until nothing runs any more")] = False,
) -> None:  # fmt: skip
    """Show how far the runs are."""
    folder = _open(source, scale, smoke, env, backbone, seeds, settings, out)
    if watch and folder.active():
        _watch(folder)
    standings = folder.standings()
    _print(_progress(standings))
    for s in standings:
        if s.message:
            echo(f"{s.run.name}: {s.message}")
    echo(_counts(standings))


@study.command("report")
def report_command(
    source: Source, scale: Scale = "", smoke: Smoke = False, env: Env = None, backbone: Backbone = None,
    seeds: Seeds = None, settings: Settings = None, out: Out = Path("studies"),
) -> None:  # fmt: skip
    """Write tables, figures and costs of the finished runs, and print the main table."""
    from seedbench.study.report import report
    from seedbench.tables import render

    folder = _open(source, scale, smoke, env, backbone, seeds, settings, out)
    table, written, note = report(folder)
    echo(render(table, "terminal"))
    echo(_counts(folder.standings()))
    if note:
        echo(note)
    echo(f"wrote {len(written)} files: {written[0].parent}")


@study.command("pack")
def pack_command(
    source: Source,
    target: Annotated[Path, typer.Argument(help="a new folder", show_default=False)],
    scale: Scale = "", smoke: Smoke = False, env: Env = None, backbone: Backbone = None,
    seeds: Seeds = None, settings: Settings = None, out: Out = Path("studies"),
    training: Annotated[
        list[str] | None,
        typer.Option(help="also keep this arm's training episodes of the first seed (repeatable)"),
    ] = None,
) -> None:  # fmt: skip
    """Copy a finished study's records, compressed and without checkpoints, and its report: for publication."""
    from seedbench.study.share import pack_study

    folder = _open(source, scale, smoke, env, backbone, seeds, settings, out)
    copy = pack_study(folder, target, training or [])
    size = sum(p.stat().st_size for p in copy.path.rglob("*") if p.is_file())
    echo(f"packed {len(copy.runs)} runs: {copy.path} ({size / 1e6:.1f} MB)")


def _open(
    source: str, scale: str, smoke: bool, env: Sequence[str] | None, backbone: Sequence[str] | None,
    seeds: int | None, settings: Sequence[str] | None, out: Path,
) -> StudyFolder:  # fmt: skip
    """The study asked for, and its folder: the given one, or ``<out>/<name>-<scale>``."""
    from seedbench.config import overrides
    from seedbench.study.folder import StudyFolder
    from seedbench.study.model import RECORD, load

    changes: dict[str, Any] = {}
    changes |= {"environments": tuple(env)} if env else {}
    changes |= {"backbones": tuple(backbone)} if backbone else {}
    changes |= {"seeds": tuple(range(seeds))} if seeds else {}
    changes |= {"settings": overrides(list(settings))} if settings else {}
    made = load(source, scale, smoke, changes)
    if (Path(source) / RECORD).is_file():
        return StudyFolder(made, Path(source))
    return StudyFolder(made, out / f"{made.name}-{'smoke' if made.smoke else made.scale}")


def _identity(run: Any) -> list[str]:
    config = run.config
    variant = config.env.options.get("variant", "mini")
    share = f"{100 * config.train.data_fraction:g} %"
    return [run.arm, f"{config.env.name} {variant}", config.backbone.name, share, str(config.seed)]


def _announce(event: Event) -> None:
    config, rate = event.run.config, f" in {_duration(event.seconds)}" if event.seconds else ""
    echo(
        f"[{event.number}/{event.total}] {event.kind}{rate}: {event.run.arm}, {config.env.name}, "
        f"{config.backbone.name}, data {100 * config.train.data_fraction:g} %, seed {config.seed}"
    )
    if event.message:
        echo(f"      {event.message}")


def _progress(standings: Sequence[Standing]) -> Table:
    rows = []
    for s in standings:
        updates = f"{s.update}/{s.run.config.train.updates}"
        success = "" if s.success is None else f"{s.success:.3f}"
        rows.append(
            [*_identity(s.run), s.state, updates, success, _duration(s.seconds), f"{s.tokens / 1e6:.2f}"]
        )
    heads = [
        "Arm",
        "Environment",
        "Backbone",
        "Data",
        "Seed",
        "State",
        "Updates",
        "Success",
        "Spent",
        "Tokens (M)",
    ]
    return _table(heads, rows)


def _watch(folder: StudyFolder) -> None:
    """Redraw every second; on something that is no terminal, only the last state is printed."""
    from rich.console import Console, Group
    from rich.live import Live

    console = Console()
    if not console.is_terminal:
        while folder.active():
            time.sleep(1.0)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while folder.active():
            standings = folder.standings()
            going = [s for s in standings if s.state in ("running", "failed")]
            live.update(Group(_progress(going), _counts(standings)), refresh=True)
            time.sleep(1.0)


def _counts(standings: Sequence[Standing]) -> str:
    states = Counter(s.state for s in standings)
    order = ("finished", "running", "stopped", "failed", "owed")
    parts = ", ".join(f"{states[s]} {s}" for s in order if states[s])
    return f"{len(standings)} runs: {parts}; {_duration(sum(s.seconds for s in standings))} of computing."


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _print(table: Table) -> None:
    """Whole lines, however narrow the terminal: a shortened name of a run helps nobody."""
    from rich.console import Console

    console = Console(width=200, no_color=True, highlight=False, markup=False)
    with console.capture() as text:
        console.print(table)
    echo("\n".join(line.rstrip() for line in text.get().splitlines()))


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _cores() -> int:
    from seedbench.engines.local import cores

    return cores()
