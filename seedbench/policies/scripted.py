"""Policies without a model: random, oracle, a fixed list of actions, and a person at the keyboard."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from seedbench.contracts import Session
from seedbench.types import Generation, View


class RandomPolicy:
    """A uniformly random announced action. The floor every trained policy must beat."""

    name, privileged, constrained = "random", False, True

    def __init__(self) -> None:
        self._streams: dict[int, random.Random] = {}

    def act(self, views: Sequence[View]) -> list[Generation]:
        return [Generation(self._stream(v).choice(v.choices)) for v in views]

    def forget(self, slots: Sequence[int]) -> None:
        for s in slots:
            self._streams.pop(s, None)

    def _stream(self, view: View) -> random.Random:
        if view.slot not in self._streams:
            self._streams[view.slot] = random.Random(f"random/{view.seed}")
        return self._streams[view.slot]


class OraclePolicy:
    """Follows the environment's own solution. Reads hidden state: a ceiling, never a result."""

    name, privileged, constrained = "oracle", True, True

    def __init__(self) -> None:
        self._sessions: Mapping[int, Session] = {}

    def attach(self, sessions: Mapping[int, Session]) -> None:
        self._sessions = sessions

    def act(self, views: Sequence[View]) -> list[Generation]:
        return [Generation(self._sessions[v.slot].oracle()) for v in views]

    def forget(self, slots: Sequence[int]) -> None:
        pass


class ScriptPolicy:
    """Says what a function of the view says: replays, demonstrators, tests, human play."""

    privileged = False

    def __init__(self, name: str, say: Callable[[View], str], constrained: bool = True) -> None:
        self.name, self.constrained, self._say = name, constrained, say

    def act(self, views: Sequence[View]) -> list[Generation]:
        return [Generation(self._say(v)) for v in views]

    def forget(self, slots: Sequence[int]) -> None:
        pass
