"""For the audit: a game whose goal says something else than its task sentence, everything visible kept."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

from seedbench.envs.alfworld.env import AlfWorld
from seedbench.envs.alfworld.game import Game, Goal
from seedbench.envs.alfworld.sources import GameSource

from seedbench.errors import ConfigError
from seedbench.types import Task


class _OneOther:
    """A source that hands out another game for one task."""

    def __init__(self, inner: GameSource, task: Task, game: Game) -> None:
        self._inner, self._id, self._game = inner, task.id, game

    def splits(self) -> Mapping[str, int]:
        return self._inner.splits()

    def tasks(self, split: str) -> Sequence[Task]:
        return self._inner.tasks(split)

    def game(self, task: Task) -> Game:
        return self._game if task.id == self._id else self._inner.game(task)

    def files(self, task: Task) -> Mapping[str, str]:
        return self._inner.files(task)

    def details(self) -> Mapping[str, str]:
        return self._inner.details()


def plant(env: AlfWorld, task: Task, mark: str) -> tuple[AlfWorld, Task]:
    """The goal names ``mark`` as thing and as place; nothing fulfils it."""
    game = env.game(task)
    goal = Goal(game.goal.kind, mark, mark)
    return _with(env, task, replace(game, goal=goal, goal_objects=frozenset())), task


def exchange(env: AlfWorld, task: Task, other: Task) -> tuple[AlfWorld, Task]:
    """The goal of ``other``, among the things of ``task``."""
    game, goal = env.game(task), env.game(other).goal
    wanted = frozenset(i for i, kind in enumerate(game.object_types) if kind == goal.object_type)
    places = tuple(i for i, kind in enumerate(game.receptacle_types) if kind == goal.place_type)
    lamps = frozenset(i for i, kind in enumerate(game.object_types) if kind == goal.place_type)
    look = goal.kind == "look"
    changed = replace(
        game,
        goal=goal,
        goal_objects=wanted,
        goal_receptacles=() if look else places,
        goal_lamps=lamps if look else frozenset(),
    )
    return _with(env, task, changed), task


def _with(env: AlfWorld, task: Task, game: Game) -> AlfWorld:
    if env.options.engine != "native":
        raise ConfigError("Hidden goals can be exchanged in the native engine only: use engine='native'.")
    twin = copy.copy(env)
    twin.source = _OneOther(env.source, task, game)
    return twin
