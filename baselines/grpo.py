"""GRPO (methods page 2.1): group-relative policy optimisation, no skills anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from seedbench.train.advantages import GroupAdvantage
from seedbench.train.losses import Loss, LossBatch, PolicyObjective
from seedbench.train.method import Analyst, WarmUp
from seedbench.types import Episode, Skill, Task


@dataclass(frozen=True)
class Grpo:
    """L = clipped policy loss + kl * KL(reference) - entropy * H."""

    name: ClassVar[str] = "grpo"
    learns: ClassVar[bool] = True
    starred: ClassVar[bool] = False
    advantage: GroupAdvantage = GroupAdvantage()
    objective: PolicyObjective = PolicyObjective()
    warm_up: WarmUp | None = None

    def loss(self, batch: LossBatch) -> Loss:
        return self.objective(batch)

    def acting(self, task: Task, analyst: Analyst) -> Skill | None:
        return None

    def teaching(self, episodes: Sequence[Episode], analyst: Analyst) -> list[Skill | None] | None:
        return None


METHOD = Grpo
