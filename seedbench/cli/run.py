"""``seedbench run`` and ``seedbench eval``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Options = Annotated[
    list[str] | None, typer.Option("-o", "--set", help="a setting, e.g. -o train.updates=5 (repeatable)")
]
Out = Annotated[Path, typer.Option("--out", help="folder that holds run folders")]
Workers = Annotated[int, typer.Option(min=0, help="processes that play episodes; 0: one per core")]


def run(
    method: Annotated[str, typer.Option(help="see 'seedbench info'")] = "seed",
    backbone: Annotated[str, typer.Option(help="tiny, a named model, or hf:<path or id>")] = "tiny",
    env: Annotated[
        str, typer.Option(help="one environment; default: every one (a full row of Table 1)")
    ] = "",
    scale: Annotated[str, typer.Option(help="quick, cpu or paper; default: quick for tiny, else paper")] = "",
    seed: Annotated[int, typer.Option(min=0, help="first training seed")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="number of training seeds")] = 1,
    config: Annotated[Path | None, typer.Option(help="TOML file with settings")] = None,
    settings: Options = None,
    out: Out = Path("runs"),
    workers: Workers = 0,
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="continue a run that exists, or refuse to touch it")
    ] = True,
    policy: Annotated[
        str, typer.Option(help="evaluate this policy without training (random, oracle ...)")
    ] = "",
) -> None:
    """Train and evaluate. Stopped runs resume when the same command is given again."""
    from seedbench.cli.evaluate import evaluate
    from seedbench.cli.progress import Display
    from seedbench.config import merge, overrides, read_toml
    from seedbench.registry import ENVIRONMENTS
    from seedbench.reports.builders import table1
    from seedbench.runner import resolve, run_name, train
    from seedbench.tables import render

    if policy:
        evaluate(env=env, policy=policy, settings=settings, out=out, workers=workers, seed=seed)
        return
    own: dict[str, Any] = read_toml(config) if config else {}
    own = merge(own, overrides(settings or []))
    configs = [
        resolve(name, method, backbone, scale, s, own)
        for name in ([env] if env else ENVIRONMENTS.names())
        for s in range(seed, seed + seeds)
    ]
    folders = []
    for number, resolved in enumerate(configs, 1):
        folder = out / run_name(resolved)
        with Display(resolved, folder, number, len(configs)) as display:
            folders.append(train(resolved, folder, workers or _cores(), display.report, resume))
    typer.echo("")
    typer.echo(render(table1(folders), "terminal"))
    for folder in folders:
        typer.echo(f"run folder: {folder}")


def _cores() -> int:
    from seedbench.engines.local import cores

    return cores()
