"""Where games come from: one interface for generated and official ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from seedbench.envs.alfworld import mini
from seedbench.envs.alfworld.game import Game, compile_game
from seedbench.envs.alfworld.pddl import problem_text

from seedbench.types import HiddenTask, PublicTask, Task

#: Compiled games kept ready; about 40 kB each.
CACHED_GAMES = 256


class GameSource(Protocol):
    """Splits, tasks in id order, and the game of a task (compiled when first asked for, then shared)."""

    def splits(self) -> Mapping[str, int]: ...

    def tasks(self, split: str) -> Sequence[Task]: ...

    def game(self, task: Task) -> Game: ...

    def files(self, task: Task) -> Mapping[str, str]:
        """For the reference engine: ``task``, ``pddl_problem``; ``pddl_domain``, ``grammar`` if known."""
        ...

    def details(self) -> Mapping[str, str]:
        """What a result row must name about the games."""
        ...


class MiniSource:
    """Generated games. A task's id is ``<split>/<number>``; its hidden half is ``(split, number)``."""

    def __init__(self, size: str) -> None:
        self.size = size
        self._compiled = lru_cache(CACHED_GAMES)(self._compile)
        self._tasks = lru_cache(None)(self._list)

    def splits(self) -> Mapping[str, int]:
        return mini.SPLITS

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks(split)

    def game(self, task: Task) -> Game:
        return self._compiled(*task.hidden.payload)

    def files(self, task: Task) -> Mapping[str, str]:
        split, number = task.hidden.payload
        description = mini.generate(split, self.size, number)
        return {"task": description.task, "pddl_problem": problem_text(description)}

    def details(self) -> Mapping[str, str]:
        return {"generator": mini.GENERATOR, "size": self.size}

    def _list(self, split: str) -> tuple[Task, ...]:
        return tuple(
            Task(PublicTask(f"{split}/{n:05d}", split, mini.family_of(n)), HiddenTask((split, n)))
            for n in range(mini.SPLITS[split])
        )

    def _compile(self, split: str, number: int) -> Game:
        return compile_game(mini.generate(split, self.size, number), f"{split}/{number}")
