"""The contract of a method: one short file of pure maths and hooks, no inheritance.

A method is a frozen dataclass; its fields are its configuration and land in the run record. The trainer
owns rollouts, tokens, teacher forward passes, micro-batches, optimiser, checkpoints and logs, and asks:

=====================  =================================================================================
``name``               class attribute
``learns``             class attribute: False evaluates the backbone as it comes
``starred``            class attribute: the final evaluation is repeated with bank skills in the prompt (the
                       papers' rows with an asterisk)
``advantage``          a :class:`~seedbench.train.advantages.GroupAdvantage`
``objective``          a :class:`~seedbench.train.losses.PolicyObjective` (its ``kl`` decides on a reference)
``loss(batch)``        :class:`~seedbench.train.losses.LossBatch` -> :class:`~seedbench.train.losses.Loss`
``acting(task)``       skill put into the *training* prompt of a task, or None (Skill-GRPO)
``teaching(episodes)`` one skill per finished episode, or None for "no teacher forward at all"
``warm_up``            a :class:`WarmUp` (Stage-1 SFT) or None
=====================  =================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from seedbench.train.advantages import GroupAdvantage
from seedbench.train.losses import Loss, LossBatch, PolicyObjective
from seedbench.types import Episode, Skill, Task


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Stage 1 of SEED: hindsight-skill SFT. ``annotator``: ``rules`` or ``openai:<model>``.

    ``tasks`` x ``repeats`` episodes are played at ``temperature``, annotated, and learnt for ``epochs``;
    ``holdout`` of them are kept for the parse rate and faithfulness in the record.
    """

    annotator: str = "rules"
    tasks: int = 180
    repeats: int = 8
    temperature: float = 0.4
    epochs: int = 3
    batch: int = 8
    learning_rate: float = 5e-6
    holdout: float = 0.1


class Analyst(Protocol):
    """Writes hindsight skills for finished episodes; None where the answer could not be parsed."""

    def current(self, episodes: Sequence[Episode]) -> list[Skill | None]:
        """By the policy as it is now."""
        ...

    def frozen(self, episodes: Sequence[Episode]) -> list[Skill | None]:
        """By the policy as it was when training began (after the warm-up)."""
        ...

    def bank(self, group: str) -> Skill:
        """The static skill of a task family. Raises when there is none: never the word "None" in a prompt."""
        ...


class Method(Protocol):
    name: ClassVar[str]
    learns: ClassVar[bool]
    starred: ClassVar[bool]
    advantage: GroupAdvantage
    objective: PolicyObjective
    warm_up: WarmUp | None

    def loss(self, batch: LossBatch) -> Loss: ...

    def acting(self, task: Task, analyst: Analyst) -> Skill | None: ...

    def teaching(self, episodes: Sequence[Episode], analyst: Analyst) -> list[Skill | None] | None: ...
