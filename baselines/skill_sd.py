"""Skill-SD (arXiv 2604.10674; methods page 2.3): GRPO plus an importance-weighted k3 pull to the teacher.

L = L_GRPO + coefficient * token mean of rho * k3, rho = exp(lp - lp_old) with gradient, and k3 between student
and the pre-update policy that reads the bank skill. Default coefficient: all scripts' 0.001. The original
writes per-trajectory skills with an external model; the bank follows the published comparison (SDAR code).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from seedbench.train.advantages import GroupAdvantage
from seedbench.train.losses import Loss, LossBatch, PolicyObjective, aggregate, clean, teacher_k3
from seedbench.train.method import Analyst, WarmUp
from seedbench.types import Episode, Skill, Task


@dataclass(frozen=True)
class SkillSd:
    """``coefficient`` stays constant (warm-down -1 in the released scripts)."""

    name: ClassVar[str] = "skill_sd"
    learns: ClassVar[bool] = True
    starred: ClassVar[bool] = False
    advantage: GroupAdvantage = GroupAdvantage()
    objective: PolicyObjective = PolicyObjective()
    warm_up: WarmUp | None = None
    coefficient: float = 0.001

    def loss(self, batch: LossBatch) -> Loss:
        base = self.objective(batch)
        if self.coefficient == 0 or batch.logp_teacher is None:
            return base
        logp = clean(batch.logp, batch.mask)
        per_token = teacher_k3(logp, batch.logp_old, batch.logp_teacher, batch.mask)
        term = aggregate(per_token, batch.mask, batch.totals)
        return Loss(base.value + self.coefficient * term, base.terms | {"distil": float(term.detach())})

    def acting(self, task: Task, analyst: Analyst) -> Skill | None:
        return None

    def teaching(self, episodes: Sequence[Episode], analyst: Analyst) -> list[Skill | None] | None:
        if self.coefficient == 0:
            return None
        return [analyst.bank(e.task.group) for e in episodes]


METHOD = SkillSd
