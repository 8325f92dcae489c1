"""What an update cost and what it looked like: the lines of ``costs.jsonl`` and ``metrics.jsonl``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from seedbench.store import RunStore
from seedbench.train.backbone import Backbone
from seedbench.train.batch import Rows
from seedbench.types import Episode, Skill

#: The "update" of what happens before the first one (the warm-up).
BEFORE = -1


class Costs:
    """Writes one line per stage: seconds, tokens, estimated FLOPs."""

    def __init__(self, store: RunStore, update: int) -> None:
        self._store, self._update = store, update

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[[int, float], None]]:
        spent = [0, 0.0]

        def cost(tokens: int, flops: float) -> None:
            spent[:] = [tokens, flops]

        began = time.perf_counter()
        yield cost
        seconds = time.perf_counter() - began
        self._store.append_cost(self._update, name, seconds, int(spent[0]), spent[1])

    @contextmanager
    def metered(self, name: str, backbone: Backbone, backward: bool = False) -> Iterator[None]:
        """A stage whose tokens are those that pass through ``backbone`` meanwhile."""
        before = backbone.meter.tokens
        with self.stage(name) as cost:
            yield
            tokens = backbone.meter.tokens - before
            cost(tokens, backbone.flops(tokens, backward))


def summary(
    episodes: Sequence[Episode], rows: Rows, skills: Sequence[Skill | None] | None
) -> dict[str, float]:
    """Numbers of one update: rollouts, advantages, and how far teacher and student disagree."""
    turns = [t for e in episodes for t in e.turns]
    scored = [e for e in episodes if e.success is not None]
    out = {
        "success": mean([float(bool(e.success)) for e in scored]),
        "score": mean([e.score or 0.0 for e in scored]),
        "steps": mean([len(e.turns) for e in episodes]),
        "invalid": mean([float(not t.valid) for t in turns]),
        "errors": len(episodes) - len(scored),
        "zero_std_groups": rows.result.zero_std_fraction if rows.result else 0.0,
        "decided_tokens": sum(map(len, rows.advantage)),
    }
    if skills is not None and rows.teacher is not None:
        gaps = [
            t - o
            for i, taught in enumerate(rows.taught)
            if taught
            for t, o in zip(rows.teacher[i], rows.old[i], strict=True)
        ]
        center = mean(gaps)
        out |= {
            "skills_valid": mean([float(s is not None) for s in skills]),
            "teacher_gap": center,
            "teacher_gap_std": math.sqrt(mean([(g - center) ** 2 for g in gaps])),
            "teacher_gap_above_0.1": mean([float(g > 0.1) for g in gaps]),
        }
    return out


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
