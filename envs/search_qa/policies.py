"""Baselines that need no model: what can be had without searching."""

from __future__ import annotations

import random
from collections.abc import Sequence

from seedbench.envs.search_qa.protocol import act_of

from seedbench.types import Generation, View


class ClosedBook:
    """Never searches: answers at once with a candidate drawn from the question (yes or no where asked)."""

    name, privileged, constrained = "closed-book", False, True

    def act(self, views: Sequence[View]) -> list[Generation]:
        return [Generation(self._answer(v)) for v in views]

    def forget(self, slots: Sequence[int]) -> None:
        """Nothing is remembered."""

    def _answer(self, view: View) -> str:
        answers = [c for c in view.choices if act_of(c)[0] == "answer"]
        return random.Random(f"closed-book/{view.seed}").choice(answers)
