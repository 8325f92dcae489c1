"""GRPO+OPSD (methods page 2.5).

``gate`` names the variant: ``half`` is what the published rows ran (SDAR with beta 0: every sampled token
weighs 0.5, plain self-imitation); ``gap`` weighs by the signed teacher gap, as the text describes.
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
class GrpoOpsd:
    """GRPO plus self-distillation without a sigmoid gate."""

    name: ClassVar[str] = "grpo_opsd"
    learns: ClassVar[bool] = True
    starred: ClassVar[bool] = False
    advantage: GroupAdvantage = GroupAdvantage()
    objective: PolicyObjective = PolicyObjective()
    warm_up: WarmUp | None = None
    coefficient: float = 0.01
    beta: float = 5.0
    gate: Gate = "half"

    def loss(self, batch: LossBatch) -> Loss:
        return add_distillation(self.objective(batch), batch, self.coefficient, self.gate, self.beta)

    def acting(self, task: Task, analyst: Analyst) -> Skill | None:
        return None

    def teaching(self, episodes: Sequence[Episode], analyst: Analyst) -> list[Skill | None] | None:
        if self.coefficient == 0:
            return None
        return [analyst.bank(e.task.group) for e in episodes]


METHOD = GrpoOpsd
