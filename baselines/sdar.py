"""SDAR (arXiv 2605.15155; methods page 2.5): GRPO plus gated imitation of a skill-reading twin.

L = L_GRPO + coefficient * token mean of g * (lpT - lp), g = stop_gradient(sigmoid(beta * (lpT - lp))). The
teacher is the pre-update policy with the bank skill of the task's group in its prompt; failed episodes are
taught too. Default coefficient: the released scripts' 0.01 (the library default there is 0.1).
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
class Sdar:
    """``gate``: ``sigmoid`` (the paper), or a control."""

    name: ClassVar[str] = "sdar"
    learns: ClassVar[bool] = True
    starred: ClassVar[bool] = False
    advantage: GroupAdvantage = GroupAdvantage()
    objective: PolicyObjective = PolicyObjective()
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


METHOD = Sdar
