"""``seedbench eval``: a finished run, or a scripted policy, on a panel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seedbench.errors import ConfigError


def evaluate(
    run: Annotated[Path | None, typer.Argument(help="finished run folder")] = None,
    with_skills: Annotated[
        bool, typer.Option("--with-skills/--ordinary", help="put the bank skill of each task into its prompt")
    ] = False,
    env: Annotated[str, typer.Option(help="for --policy: the environment")] = "",
    policy: Annotated[
        str, typer.Option(help="random, oracle, one of the environment's own, or openai:<model>")
    ] = "",
    panel: Annotated[str, typer.Option(help="another panel than the run's or the variant's own")] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "-o", "--set", help="for --policy: env.options.variant=..., backbone.options.timeout=..."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="folder that holds run folders")] = Path("runs"),
    workers: Annotated[int, typer.Option(min=0, help="processes; 0: one per core")] = 0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Evaluate a finished run on ordinary history or with skills, a scripted policy, or a model behind an
    OpenAI-compatible server (OPENAI_BASE_URL, OPENAI_API_KEY).

    With RUN, prints what the skills are worth at deployment (a paired test); what is on record is not
    played again.
    """
    from seedbench.engines.local import cores
    from seedbench.tables import render

    if (run is None) == (not policy):
        raise ConfigError("Give a run folder, or --env and --policy.")
    if run is not None:
        from seedbench.evaluate import evaluate_run
        from seedbench.retention import retention_table

        stream = evaluate_run(run, with_skills, panel, workers or cores())
        typer.echo(render(retention_table([run]), "terminal"))
        typer.echo(f"stream {stream} of {run}")
        return
    from seedbench.config import EnvSection, merge, overrides, validated
    from seedbench.evaluate import evaluate_policy
    from seedbench.registry import ENVIRONMENTS
    from seedbench.reports.builders import table1

    folders = []
    for name in [env] if env else ENVIRONMENTS.names():
        own = overrides(settings or [])
        section = validated(
            EnvSection, merge({"name": name, "panel": panel}, own.get("env", {})), "environment"
        )
        options = own.get("backbone", {}).get("options", {})
        folders.append(
            evaluate_policy(section, policy, out, seed, workers=workers or cores(), options=options)
        )
    typer.echo(render(table1(folders), "terminal"))
    for folder in folders:
        typer.echo(f"run folder: {folder}")
