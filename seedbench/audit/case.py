"""A run as the checks see it: its records, and what of its circumstances can be had on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from seedbench.audit.rebuild import Rebuilder, rebuilder_for, tokenizer_folders
from seedbench.config import EnvSection, make_environment
from seedbench.contracts import Environment
from seedbench.errors import SeedbenchError
from seedbench.store import Run, Stream
from seedbench.types import Episode, Task


@dataclass(slots=True)
class Case:
    """``env`` is None, and ``no_env`` says why, where the environment cannot be built here."""

    run: Run
    env: Environment | None = None
    no_env: str = ""
    rebuilder: Rebuilder | None = None
    no_rebuilder: str = ""
    streams: list[Stream] = field(default_factory=list)
    _episodes: dict[str, list[Episode]] = field(default_factory=dict)
    _tasks: dict[str, Task] = field(default_factory=dict)

    @classmethod
    def open(cls, run: Run, env: Environment | None = None) -> Case:
        """``env`` replaces the one that the run's configuration names."""
        case = cls(run, env)
        if env is None:
            try:
                section = run.config["env"]
                case.env = make_environment(
                    EnvSection(name=section["name"], options=section.get("options", {}))
                )
            except (SeedbenchError, KeyError) as error:
                case.no_env = f"The environment cannot be built here: {error}"
        backbone = run.config.get("backbone", {})
        case.rebuilder = rebuilder_for(backbone, tokenizer_folders(run.path, run.config))
        if case.rebuilder is None:
            case.no_rebuilder = (
                f"backbone '{backbone.get('name', '')}' is unknown, or its tokenizer is not on this machine."
            )
        case.streams = [s for s in run.streams() if s.phase == "eval"]
        return case

    @property
    def model(self) -> Mapping[str, Any]:
        return self.run.manifest.get("model", {})

    @property
    def policy(self) -> str:
        return str(self.run.manifest.get("policy", {}).get("name", ""))

    @property
    def trained(self) -> bool:
        return bool(self.run.manifest.get("policy", {}).get("trained"))

    @property
    def feeds_no_model(self) -> bool:
        """A scripted policy: the manifest names no weights, and no turn has the hash of a prompt."""
        if self.trained or self.model.get("sha256"):
            return False
        return not any(t.prompt_sha256 for _, e in self.evaluated() for t in e.turns)

    def episodes(self, stream: str) -> list[Episode]:
        if stream not in self._episodes:
            self._episodes[stream] = self.run.episodes(stream)
        return self._episodes[stream]

    def evaluated(self) -> Iterator[tuple[Stream, Episode]]:
        """Every evaluation episode, those with declared skills included."""
        for stream in self.streams:
            for episode in self.episodes(stream.name):
                yield stream, episode

    def panel_ids(self) -> set[str]:
        panels = self.run.manifest.get("panels", {})
        return {i for name, panel in panels.items() if name != "train" for i in panel.get("ids", ())}

    def training_ids(self) -> set[str]:
        return set(self.run.manifest.get("panels", {}).get("train", {}).get("ids", ()))

    def task(self, task_id: str) -> Task | None:
        """The task with its hidden half, as the environment has it."""
        if not self._tasks and self.env is not None:
            self._tasks = {
                t.id: t for split, n in self.env.splits().items() if n for t in self.env.tasks(split)
            }
        return self._tasks.get(task_id)
