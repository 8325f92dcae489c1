"""Group-relative advantages (methods page 1.2 and 1.3). Groups are plays of the same task."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal

EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class GroupAdvantage:
    """A = (s - mean of group) / (std of group + 1e-6), std with n - 1.

    ``over``: statistics over all step samples of a group (the released code: long episodes weigh more) or
    over trajectories (the paper's formula). ``scale``: ``group`` std, ``batch`` std, or ``none`` (mean only:
    SEED's WebShop scripts).
    """

    over: Literal["steps", "trajectories"] = "steps"
    scale: Literal["group", "batch", "none"] = "group"

    def __call__(
        self, scores: Sequence[Sequence[float] | None], groups: Sequence[Hashable]
    ) -> AdvantageResult:
        """``scores[i]``: one score per step of trajectory i (None: unscored, out of the loss, BR-013);
        ``groups[i]``: its group key, the task (BR-006). Returns one advantage per step, same shape."""
        return _advantages(scores, groups, self.over, self.scale)


@dataclass(frozen=True, slots=True)
class AdvantageResult:
    values: list[list[float]]
    zero_std_fraction: float  # share of groups without any signal
    unscored: int
    singletons: int = field(default=0)


def step_scores(reward: float, valid: Sequence[bool], penalty: float) -> list[float]:
    """Score of each step sample (1.2): the episode's reward, less ``penalty`` where the action was invalid."""
    return [reward - (0.0 if ok else penalty) for ok in valid]


def _stats(values: list[float]) -> tuple[float, float]:
    """Mean and unbiased std; a single value gives (0, 1), as the released code does."""
    if len(values) == 1:
        return 0.0, 1.0
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def _advantages(
    scores: Sequence[Sequence[float] | None], groups: Sequence[Hashable], over: str, scale: str
) -> AdvantageResult:
    pools: dict[Hashable, list[float]] = {}
    sizes: dict[Hashable, int] = {}
    for score, group in zip(scores, groups, strict=True):
        if score:
            pools.setdefault(group, []).extend(score if over == "steps" else score[-1:])
            sizes[group] = sizes.get(group, 0) + 1
    stats = {g: _stats(v) for g, v in pools.items()}
    everything = [v for pool in pools.values() for v in pool]
    batch_std = _stats(everything)[1] if len(everything) > 1 else 1.0
    values = []
    for score, group in zip(scores, groups, strict=True):
        if not score:
            values.append([])
            continue
        mean, std = stats[group]
        divisor = {"group": std + EPSILON, "batch": batch_std + EPSILON, "none": 1.0}[scale]
        # equal scores give exactly 0, whatever rounding did to their mean
        flat = len(pools[group]) > 1 and min(pools[group]) == max(pools[group])
        values.append([0.0 if flat else (s - mean) / divisor for s in score])
    flat_groups = sum(min(v) == max(v) for v in pools.values())
    return AdvantageResult(
        values,
        flat_groups / max(len(pools), 1),
        sum(not s for s in scores),
        sum(n == 1 for n in sizes.values()),
    )
