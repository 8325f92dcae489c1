"""Vanilla: the backbone as it comes, evaluated on ordinary history (the papers' first row)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from seedbench.train.advantages import GroupAdvantage
from seedbench.train.losses import Loss, LossBatch, PolicyObjective
from seedbench.train.method import Analyst, WarmUp
from seedbench.types import Episode, Skill, Task


@dataclass(frozen=True)
class Vanilla:
    """Learns nothing; the loss is there for the contract."""

    name: ClassVar[str] = "vanilla"
    learns: ClassVar[bool] = False
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


METHOD = Vanilla
