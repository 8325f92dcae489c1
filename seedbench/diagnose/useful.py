"""Which actions the oracle calls useful: those that shorten the way to the goal.

The distance of a state is the number of actions the oracle takes from it until the episode ends well. An
action is *useful* when it lowers the distance, *harmful* when it raises it, which includes the last action
that could still have been in time, and *idle* otherwise (also where there was no way before). States are
reached by playing the recorded actions again.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from seedbench.contracts import Environment, Session
from seedbench.rollout import derive_seed
from seedbench.types import Episode, Task

Label = Literal["useful", "idle", "harmful"]


@dataclass(frozen=True, slots=True)
class Judge:
    """``run_seed`` and ``update`` give the world seed that training used."""

    env: Environment
    task: Task
    run_seed: int
    update: int

    def labels(self, episode: Episode) -> list[Label]:
        """One label per recorded action."""
        said = [t.completion for t in episode.turns]
        far = [self.distance(said[:k]) for k in range(len(said) + 1)]
        return [_label(a, b) for a, b in itertools.pairwise(far)]

    def label(self, completions: Sequence[str], action: str) -> Label:
        """Of one further action after ``completions``."""
        return _label(self.distance(completions), self.distance([*completions, self.env.wrap(action)]))

    def best(self, completions: Sequence[str]) -> str:
        """The oracle's next action after ``completions``."""
        session, over = self._at(completions)
        try:
            return "" if over else session.oracle()
        finally:
            session.close()

    def distance(self, completions: Sequence[str]) -> float:
        """Oracle actions left after ``completions``: 0 after a success, infinite when there is no way."""
        session, over = self._at(completions)
        try:
            for steps in range(self.env.spec.max_steps + 1):
                if over:
                    return float(steps) if session.outcome().success else float("inf")
                result = session.step(self.env.parse(self.env.wrap(session.oracle())))
                over = result.terminated or result.truncated
            return float("inf")
        finally:
            session.close()

    def _at(self, completions: Sequence[str]) -> tuple[Session, bool]:
        session, over = self.env.session(), False
        session.reset(self.task, derive_seed(self.run_seed, "world", self.update, self.task.id))
        for text in completions:
            result = session.step(self.env.parse(text))
            over = result.terminated or result.truncated
        return session, over


def _label(before: float, after: float) -> Label:
    return "useful" if after < before else "harmful" if after > before else "idle"
