"""Commands that read run folders: table, show, verdict, figures, leaderboard, and the audit of papers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from seedbench.errors import ConfigError

Runs = Annotated[
    list[Path], typer.Argument(help="Run folders, or folders that contain runs.", show_default=False)
]
Format = Annotated[str, typer.Option("--format", "-f", help="terminal, markdown, html, latex, csv or json.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write to this file instead of printing.")
]
Reported = Annotated[
    bool, typer.Option("--with-reported", help="Add the numbers papers report, marked as such.")
]
Board = Annotated[Path, typer.Argument(help="Folder of the leaderboard.", show_default=False)]


def table(
    which: Annotated[str, typer.Argument(help="1, 2, 6, 7, 'tests' or 'costs'.", show_default=False)],
    runs: Runs,
    with_reported: Reported = False,
    reference: Annotated[str, typer.Option(help="tests: only comparisons with this row.")] = "",
    form: Format = "terminal",
    output: Output = None,
) -> None:
    """Print a table from run folders: 1 methods, 2 ablations, 6 data shares, 7 seen and unseen, paired
    tests, costs."""
    from seedbench.reports.builders import BUILDERS
    from seedbench.reports.compare import paired_table
    from seedbench.reports.costs import cost_table

    folders = _folders(runs)
    if reference and which != "tests":
        raise ConfigError("--reference belongs to 'seedbench table tests'.")
    if which in BUILDERS:
        made = BUILDERS[which](folders, with_reported)
    elif which == "tests":
        made = paired_table(folders, reference)
    elif which == "costs":
        made = cost_table(folders)
    else:
        raise ConfigError(f"There is no table '{which}'. Known: {', '.join(BUILDERS)}, tests, costs.")
    _write(made, form, output)


def show(
    run: Annotated[Path, typer.Argument(help="Run folder.", show_default=False)],
    episode: Annotated[str, typer.Argument(help="Task id, a part of it, or #3 for the third episode.")],
    stream: Annotated[str, typer.Option(help="train, eval-u0008, eval-final ... (default: final).")] = "",
    repeat: Annotated[int, typer.Option(help="Which play of the task.", min=0)] = 0,
    update: Annotated[int | None, typer.Option(help="Which update, for the stream 'train'.", min=0)] = None,
) -> None:
    """Print one episode: what was seen, said and done, how it ended, and its skill."""
    from seedbench.reports.trajectory import describe_episode, find_episode
    from seedbench.store import Run

    echo(describe_episode(find_episode(Run(run), episode, stream, repeat, update)))


def verdict(
    a: Annotated[
        Path, typer.Argument(help="Run folder, or a folder with one run per seed.", show_default=False)
    ],
    b: Annotated[Path, typer.Argument(help="What A is compared with.", show_default=False)],
    form: Format = "terminal",
) -> None:
    """Say whether A improves on B reproducibly, at what cost, and whether to stop."""
    from seedbench.reports.verdict import verdict as judge
    from seedbench.tables import render

    result = judge(a, b)
    if form == "json":
        echo(render(result.table, form))
        return
    echo(result.paragraph)
    echo("\n" + render(result.table, form))


def figures(
    runs: Runs,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the SVG files.")] = Path(
        "figures"
    ),
) -> None:
    """Draw learning curves, data efficiency and cost against score as SVG."""
    from seedbench.figures import draw_all

    for path in draw_all(_folders(runs), output):
        echo(str(path))


leaderboard = typer.Typer(
    help="Build, extend or verify a leaderboard of run folders.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)


@leaderboard.command("build")
def leaderboard_build(board: Board, with_reported: Reported = False, form: Format = "terminal") -> None:
    """Write index.html and README.md from the entries, and print the ranking."""
    from seedbench.leaderboard import build

    _write(build(board, with_reported), form, None)


@leaderboard.command("add")
def leaderboard_add(board: Board, runs: Runs) -> None:
    """Verify runs and take them in; a run that does not hold is refused with the reason."""
    from seedbench.audit.runs import proof
    from seedbench.leaderboard import add

    for folder in _folders(runs):
        check = add(board, folder, [proof])
        echo(f"added {check.run_id}: {_rates(check.rates)}" + "".join(f"; {o}" for o in check.open))


@leaderboard.command("verify")
def leaderboard_verify(runs: Runs) -> None:
    """Recompute the score of runs or entries; check panels, protocol, hashes and the deployment audit."""
    from seedbench.audit.runs import proof
    from seedbench.leaderboard import verify

    bad = 0
    for folder in _folders(runs):
        check = verify(folder, [proof])
        bad += bool(check.refused)
        word = "refused" if check.refused else "ok"
        reasons = "".join(f"\n  {reason}" for reason in (*check.refused, *check.open))
        echo(f"{word} {folder} ({check.run_id}): {_rates(check.rates)}{reasons}")
    if bad:
        raise typer.Exit(3)


def audit_tables(
    source: Annotated[
        Path | None, typer.Argument(help="CSV file or folder (default: the numbers seedbench ships).")
    ] = None,
    form: Format = "terminal",
    output: Output = None,
) -> None:
    """Check published tables against themselves and each other."""
    from seedbench.audit.published import audit_tables as check
    from seedbench.audit.published import findings_table
    from seedbench.reports.reported import load

    _write(findings_table(check(load(source))), form, output)


def echo(text: str) -> None:
    """Print in the terminal's encoding; what it cannot show becomes a question mark, not a crash."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    typer.echo(text.rstrip("\n").encode(encoding, "replace").decode(encoding))


def _write(made: object, form: str, output: Path | None) -> None:
    from seedbench.jsonl import write_bytes
    from seedbench.tables import render

    text = render(made, form)  # type: ignore[arg-type]
    if output is None:
        echo(text)
    else:
        write_bytes(output, text.encode())
        echo(f"wrote {output}")


def _folders(paths: Sequence[Path]) -> list[Path]:
    from seedbench.reports.verdict import run_folders

    return [folder for path in paths for folder in run_folders(path)]


def _rates(rates: dict[str, float]) -> str:
    return ", ".join(f"{name} {100 * rate:.1f}" for name, rate in sorted(rates.items())) or "no score"
