"""``seedbench info``, ``seedbench data`` and ``seedbench panel``."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Annotated

import typer

panel = typer.Typer(help="Task panels.", no_args_is_help=True)
data = typer.Typer(help="Real data: where it is looked for, and fetching it.")


@panel.callback()
def _panels() -> None:
    """Task panels."""


def info(
    kind: Annotated[str, typer.Argument(help="env or method; empty: everything")] = "",
    name: Annotated[str, typer.Argument(help="one environment or method: its options")] = "",
) -> None:
    """List environments, methods and backbones, or the options of one of them."""
    from seedbench.errors import UnknownName
    from seedbench.registry import ENVIRONMENTS, METHODS

    if kind not in ("", "env", "method"):
        raise UnknownName(f"'{kind}' is neither 'env' nor 'method'.")
    if kind == "env" and name:
        for field, spec in ENVIRONMENTS.get(name).options.model_fields.items():
            default = spec.get_default(call_default_factory=True)
            typer.echo(f"  env.options.{field:<16} {spec.annotation}  default {default!r}")
        return
    if kind == "method" and name:
        method = METHODS.get(name)
        typer.echo((method.__doc__ or "").strip() + "\n")
        for f in dataclasses.fields(method):
            typer.echo(f"  method.options.{f.name:<16} {f.type}  default {f.default!r}")
        return
    from seedbench.policies.backbones import known
    from seedbench.scales import SCALES

    if kind in ("", "env"):
        typer.echo("environments: " + ", ".join(ENVIRONMENTS.names()))
    if kind in ("", "method"):
        typer.echo("methods:      " + ", ".join(METHODS.names()))
    if not kind:
        typer.echo("backbones:    " + ", ".join(known()))
        typer.echo("scales:       " + ", ".join(SCALES))


@data.callback(invoke_without_command=True)
def _data(context: typer.Context) -> None:
    """Where each environment looks for real data, and what it finds there."""
    if context.invoked_subcommand:
        return
    from seedbench.errors import SeedbenchError
    from seedbench.registry import ENVIRONMENTS

    for name in ENVIRONMENTS.names():
        kind = ENVIRONMENTS.get(name)
        variable = f"{name.upper()}_DATA"
        typer.echo(f"{name}: {variable} = {os.environ.get(variable, '(not set)')}")
        for variant in kind.default_splits:
            try:
                env = kind.make(kind.options(variant=variant))
                for split in set(kind.default_splits[variant]) & set(env.splits()):
                    env.tasks(split)  # reads the files
                sizes = ", ".join(f"{split} {n:,}" for split, n in env.splits().items())
                typer.echo(f"  {variant}: {sizes}")
            except SeedbenchError as error:
                typer.echo(f"  {variant}: not here. {error}")


@data.command("get")
def data_get(
    env: Annotated[str, typer.Argument(help="environment")],
    folder: Annotated[Path | None, typer.Option(help="default: where the environment looks")] = None,
) -> None:
    """Fetch an environment's official files. The only command that uses the network by itself."""
    from seedbench.download import get
    from seedbench.registry import ENVIRONMENTS

    place = get(ENVIRONMENTS.get(env), folder, typer.echo)
    typer.echo(f"unpacked to {place}")


@panel.command("show")
def panel_show(
    env: Annotated[str, typer.Argument(help="environment")],
    name: Annotated[str, typer.Argument(help="panel; default: the variant's")] = "",
    settings: Annotated[
        list[str] | None, typer.Option("-o", "--set", help="e.g. -o env.options.variant=mini")
    ] = None,
    ids: Annotated[bool, typer.Option(help="print the ids too")] = False,
) -> None:
    """Counts, hash and overlap with training of a panel."""
    from seedbench.config import EnvSection, merge, overrides
    from seedbench.panel import group_counts
    from seedbench.runner import prepare

    own = merge({"env": {"name": env, "panel": name}}, overrides(settings or []))
    setting = prepare(EnvSection(**own["env"]))
    typer.echo(f"panel {setting.panel.name}: {len(setting.panel.ids)} places, sha256 {setting.panel.sha256}")
    typer.echo(f"training split {setting.split}: {len(setting.tasks):,} tasks, none shared with the panel")
    for group, count in group_counts(t for t, _ in setting.entries).items():
        typer.echo(f"  {group:<36} {count}")
    overlap = getattr(setting.env, "overlap", None)  # for environments whose tasks share more than an id
    for line in overlap(setting.panel.name) if overlap else ():
        typer.echo(f"  {line}")
    for line in setting.panel.ids if ids else ():
        typer.echo(line)
