"""SEED: self-evolving on-policy distillation (arXiv 2607.14777; methods page 2.6).

Stage 1 teaches the policy to write hindsight skills. In Stage 2 the current checkpoint acts on ordinary
history, then analyses its own finished episodes; the same sampled tokens are scored once more with the skill
in the prompt, and the gap decides how strongly each token is imitated::

    L = L_GRPO + coefficient * mean over M of g * (lpT - lp),   g = stop_gradient(sigmoid(beta * (lpT - lp)))

M: tokens of trajectories with a valid skill; lpT: pre-update weights, no gradient. At deployment nothing of
this remains. Simplification against the released code: none in the maths; lpT is computed once per update
with the pre-update weights, as the code does (the paper writes the current policy).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from seedbench.prompt import SkillPosition
from seedbench.train.advantages import GroupAdvantage
from seedbench.train.losses import Gate, Loss, LossBatch, PolicyObjective, add_distillation
from seedbench.train.method import Analyst, WarmUp
from seedbench.types import Episode, Skill, Task


@dataclass(frozen=True)
class Seed:
    """``skill_source``: who writes the teacher's skill; ``outcomes``: which episodes get one; ``content``
    replaces the text by another trajectory's (``shuffled``) or by random words, as controls;
    ``skill_position``: where chat models read it (:mod:`seedbench.prompt`; the tiny model has one place)."""

    name: ClassVar[str] = "seed"
    learns: ClassVar[bool] = True
    starred: ClassVar[bool] = False
    advantage: GroupAdvantage = GroupAdvantage()
    objective: PolicyObjective = PolicyObjective()
    warm_up: WarmUp | None = WarmUp()
    coefficient: float = 0.01
    beta: float = 5.0
    gate: Gate = "sigmoid"
    skill_source: Literal["current", "frozen", "bank"] = "current"
    outcomes: Literal["all", "success", "failure"] = "all"
    content: Literal["own", "shuffled", "random"] = "own"
    skill_position: SkillPosition = "after-task"

    def loss(self, batch: LossBatch) -> Loss:
        return add_distillation(self.objective(batch), batch, self.coefficient, self.gate, self.beta, "opd")

    def acting(self, task: Task, analyst: Analyst) -> Skill | None:
        return None

    def teaching(self, episodes: Sequence[Episode], analyst: Analyst) -> list[Skill | None] | None:
        if self.coefficient == 0:
            return None
        if self.skill_source == "bank":
            skills: list[Skill | None] = [analyst.bank(e.task.group) for e in episodes]
        else:
            write = analyst.current if self.skill_source == "current" else analyst.frozen
            skills = write(episodes)
        wanted = {"all": (True, False), "success": (True,), "failure": (False,)}[self.outcomes]
        skills = [s if e.success in wanted else None for s, e in zip(skills, episodes, strict=True)]
        return _replaced(skills, self.content, episodes)


def _replaced(skills: list[Skill | None], content: str, episodes: Sequence[Episode]) -> list[Skill | None]:
    """The controls: the same number of skills with the link to their trajectory cut."""
    if content == "own":
        return skills
    held = [i for i, s in enumerate(skills) if s is not None]
    stream = random.Random("/".join(str(e.seed) for e in episodes))
    if content == "shuffled":
        # a rotation by a random amount: no trajectory keeps its own skill when there are two or more
        turn = stream.randrange(1, len(held)) if len(held) > 1 else 0
        moved = {held[k]: skills[held[(k + turn) % len(held)]] for k in range(len(held))}
        return [moved.get(i) for i in range(len(skills))]
    words = sorted({w for s in skills if s for w in s.text.split()})
    return [
        s and Skill(s.summary, " ".join(stream.choice(words) for _ in s.text.split()), "random")
        for s in skills
    ]


METHOD = Seed
