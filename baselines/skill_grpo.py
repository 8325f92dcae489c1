"""Skill-GRPO (methods page 2.2): exploration conditioned on a static skill.

The loss is GRPO's, on the skill-conditioned prompt. Tables: "Skill-GRPO" is evaluated on ordinary history,
"Skill-GRPO*" with the skill; both evaluations are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from seedbench.train.advantages import GroupAdvantage
from seedbench.train.losses import Loss, LossBatch, PolicyObjective
from seedbench.train.method import Analyst, WarmUp
from seedbench.types import Episode, Skill, Task


@dataclass(frozen=True)
class SkillGrpo:
    """The bank skill of a task's group stands in every training prompt."""

    name: ClassVar[str] = "skill_grpo"
    learns: ClassVar[bool] = True
    starred: ClassVar[bool] = True
    advantage: GroupAdvantage = GroupAdvantage()
    objective: PolicyObjective = PolicyObjective()
    warm_up: WarmUp | None = None

    def loss(self, batch: LossBatch) -> Loss:
        return self.objective(batch)

    def acting(self, task: Task, analyst: Analyst) -> Skill | None:
        return analyst.bank(task.public.group)

    def teaching(self, episodes: Sequence[Episode], analyst: Analyst) -> list[Skill | None] | None:
        return None


METHOD = SkillGrpo
