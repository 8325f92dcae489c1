"""RLSD (arXiv 2604.03128; methods page 2.4): token advantages reweighted by the teacher gap.

A' = A * ((1 - s) + s * clip(exp(sign(A) * (lpT - lp_old)), 1 +- clip)); s falls linearly from ``strength`` to
0 over ``warm_down`` updates (scripts: 100; paper: 50), after which it is GRPO. No extra loss term.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from seedbench.train.advantages import GroupAdvantage
from seedbench.train.losses import Loss, LossBatch, PolicyObjective, reweighted_advantage
from seedbench.train.method import Analyst, WarmUp
from seedbench.types import Episode, Skill, Task


@dataclass(frozen=True)
class Rlsd:
    """The sign of an advantage never changes."""

    name: ClassVar[str] = "rlsd"
    learns: ClassVar[bool] = True
    starred: ClassVar[bool] = False
    advantage: GroupAdvantage = GroupAdvantage()
    objective: PolicyObjective = PolicyObjective()
    warm_up: WarmUp | None = None
    strength: float = 0.5
    warm_down: int = 100
    clip: float = 0.2

    def strength_at(self, update: int) -> float:
        return self.strength * max(0.0, 1 - update / self.warm_down)

    def loss(self, batch: LossBatch) -> Loss:
        strength = self.strength_at(batch.update)
        if strength == 0 or batch.logp_teacher is None:
            return self.objective(batch)
        return self.objective(
            batch,
            reweighted_advantage(
                batch.advantage, batch.logp_teacher, batch.logp_old, batch.mask, strength, self.clip
            ),
        )

    def acting(self, task: Task, analyst: Analyst) -> Skill | None:
        return None

    def teaching(self, episodes: Sequence[Episode], analyst: Analyst) -> list[Skill | None] | None:
        if self.strength == 0:
            return None
        return [analyst.bank(e.task.group) for e in episodes]


METHOD = Rlsd
