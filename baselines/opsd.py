"""OPSD: on-policy self-distillation without a reward term (methods page 2.5, pg coefficient 0).

``gate`` names the variant: ``gap`` is on-policy distillation proper, whose weight changes sign with the
teacher gap; ``sigmoid`` is the variant behind the published rows (SDAR's gate without the policy term).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from seedbench.train.advantages import GroupAdvantage
from seedbench.train.losses import Gate, Loss, LossBatch, PolicyObjective, add_distillation
from seedbench.train.method import Analyst, WarmUp
from seedbench.types import Episode, Skill, Task


@dataclass(frozen=True)
class Opsd:
    """KL and entropy terms stay; only the reward term is gone."""

    name: ClassVar[str] = "opsd"
    learns: ClassVar[bool] = True
    starred: ClassVar[bool] = False
    advantage: GroupAdvantage = GroupAdvantage()
    objective: PolicyObjective = PolicyObjective(pg=0.0)
    warm_up: WarmUp | None = None
    coefficient: float = 0.01
    beta: float = 5.0
    gate: Gate = "sigmoid"

    def loss(self, batch: LossBatch) -> Loss:
        return add_distillation(self.objective(batch), batch, self.coefficient, self.gate, self.beta)

    def acting(self, task: Task, analyst: Analyst) -> Skill | None:
        return None

    def teaching(self, episodes: Sequence[Episode], analyst: Analyst) -> list[Skill | None] | None:
        if self.coefficient == 0:
            return None
        return [analyst.bank(e.task.group) for e in episodes]


METHOD = Opsd
