"""``seedbench pretrain`` and ``seedbench export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def pretrain(
    model: Annotated[str, typer.Argument(help="tiny")] = "tiny",
    env: Annotated[str, typer.Option(help="environment")] = "alfworld",
    out: Annotated[Path | None, typer.Option(help="folder; default: where 'run' looks for it")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("-o", "--set", help="a recipe setting, e.g. -o world_steps=10")
    ] = None,
) -> None:
    """Make the tiny model of an environment and measure it (at most half an hour on two cores)."""
    from seedbench.config import overrides
    from seedbench.errors import ConfigError
    from seedbench.policies.backbones import tiny_folder
    from seedbench.policies.tiny.making import make

    if model != "tiny":
        raise ConfigError(f"Only 'tiny' is made here, not '{model}'.")
    folder = out or tiny_folder(env)
    record = make(env, folder, {"seed": seed, **overrides(settings or [])}, lambda m: typer.echo(str(m), err=True))
    typer.echo(f"{folder}: {record['measured']}")


def export(
    run: Annotated[Path, typer.Argument(help="run folder")],
    out: Annotated[Path, typer.Argument(help="new folder")],
) -> None:
    """Write the newest checkpoint of a run as a Hugging Face folder.

    The model loads with AutoModelForCausalLM; load a tiny tokenizer with PreTrainedTokenizerFast, since
    AutoTokenizer puts Qwen2's own in its place.
    """
    import shutil

    from seedbench.errors import DataMissing, RunConflict
    from seedbench.train.checkpoint import Checkpoints

    found = Checkpoints(run / "checkpoints").latest()
    if found is None:
        raise DataMissing(f"{run} has no checkpoint yet.")
    if out.exists():
        raise RunConflict(f"{out} exists. Name a new folder.")
    shutil.copytree(found[1], out, ignore=shutil.ignore_patterns("optimizer.pt", "files.json"))
    typer.echo(f"{out}: weights after {found[0]} updates")
