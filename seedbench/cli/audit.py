"""``seedbench audit`` and ``seedbench diagnose``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from seedbench.errors import ConfigError, LeakFound


def audit(
    targets: Annotated[
        list[Path] | None, typer.Argument(help="run folders, folders of runs, or the word 'tables'")
    ] = None,
    canary: Annotated[
        str, typer.Option(help="plant marks in this environment instead of reading a run")
    ] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("-o", "--set", help="with --canary: env.options.variant=... (repeatable)"),
    ] = None,
    tasks: Annotated[int, typer.Option(min=2, help="with --canary: number of panel tasks to play")] = 12,
    reenact: Annotated[
        bool, typer.Option(help="also let the final checkpoint act again (loads the model)")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the verdicts as JSON")] = False,
) -> None:
    """Prove that a run acted on ordinary history only. Exits with 3 when a check fails.

    'seedbench audit tables' checks printed tables against each other instead.
    """
    if targets == [Path("tables")] and not canary:
        from seedbench.cli.report import audit_tables

        audit_tables()
        return
    if bool(canary) == bool(targets):
        raise ConfigError("Name run folders to audit, or an environment with --canary, not both.")
    if canary:
        reports = [_canary(canary, settings or [], tasks)]
    else:
        from seedbench.audit.runs import audit_run
        from seedbench.reports.verdict import run_folders

        reports = [audit_run(f, reenact=reenact) for t in targets or [] for f in run_folders(t)]
    if as_json:
        typer.echo(json.dumps([r.to_dict() for r in reports], indent=1))
    else:
        for report in reports:
            typer.echo("\n".join(report.lines()))
    failed = [f"{r.subject}: {', '.join(r.failed)}" for r in reports if not r.ok]
    if failed:
        raise LeakFound("Failed checks. " + "; ".join(failed))


def _canary(name: str, settings: list[str], count: int):  # type: ignore[no-untyped-def]
    from seedbench.audit.canary import audit_environment
    from seedbench.config import EnvSection, merge, overrides, validated
    from seedbench.runner import prepare

    own = overrides(settings).get("env", {})
    section: EnvSection = validated(EnvSection, merge({"name": name}, own), "environment")
    setting = prepare(section)
    step = max(1, len(setting.panel_tasks) // count)
    return audit_environment(setting.env, setting.panel_tasks[::step][:count])


def diagnose(
    run: Annotated[Path, typer.Argument(help="run folder with a training log and a checkpoint")],
    out: Annotated[Path | None, typer.Option(help="where to write; default: RUN/diagnosis")] = None,
    episodes: Annotated[
        int, typer.Option(min=8, help="training episodes looked at, spread over updates")
    ] = 128,
    seed: Annotated[int, typer.Option(min=0, help="for the random controls")] = 0,
) -> None:
    """Do the skills deserve belief: support, faithfulness, form, gate, signal. JSON, figures, a verdict."""
    from seedbench.diagnose.run import diagnose_run

    folder = out or run / "diagnosis"
    typer.echo(diagnose_run(run, folder, episodes, seed))
    typer.echo(f"written to {folder}")
