"""What a person watches while a run trains: one bar, and one line for each evaluation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from seedbench.config import RunConfig


class Display:
    """Context manager; :meth:`report` takes the trainer's metrics. Plain lines when not on a terminal."""

    def __init__(self, config: RunConfig, folder: Path, number: int, total: int) -> None:
        self.config, self.updates = config, config.train.updates
        self.console = Console(file=sys.stderr)
        title = (
            f"{config.method.name} on {config.env.name}, backbone {config.backbone.name}, seed {config.seed}"
        )
        self.console.print(f"[{number}/{total}] {title}", markup=False, highlight=False)
        self.console.print(f"      {folder}", markup=False, highlight=False)
        self.progress = Progress(
            TextColumn("      updates"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=self.console, transient=True,
            disable=not self.console.is_terminal,
        )  # fmt: skip
        self.bar = self.progress.add_task("", total=self.updates, note="")

    def __enter__(self) -> Display:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def report(self, metrics: dict[str, Any]) -> None:
        if "evaluation" in metrics:
            how = " with skills" if "+skills" in metrics["evaluation"] else ""
            rate, episodes = metrics["success"], metrics["episodes"]
            line = f"update {metrics['update']:>4}{how}: success {rate:.3f} on {episodes} episodes"
            self.console.print(f"      {line}", markup=False, highlight=False)
            self.progress.update(self.bar, completed=metrics["update"])
        elif "warm_up" in metrics:
            line = f"warm-up epoch {metrics['warm_up']} of {metrics['of']}: loss {metrics['loss']:.3f}"
            self.console.print(f"      {line}", markup=False, highlight=False)
        else:
            note = f"training success {metrics['success']:.2f}"
            if "teacher_gap_std" in metrics:
                note += f", teacher gap {metrics['teacher_gap']:+.3f} +- {metrics['teacher_gap_std']:.2f}"
            self.progress.update(self.bar, completed=metrics["update"] + 1, note=note)
