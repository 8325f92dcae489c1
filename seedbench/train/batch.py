"""From episodes to optimiser steps: which rows train, in which mini-batches, cut into which micro-batches."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from seedbench.errors import ConfigError
from seedbench.train.advantages import AdvantageResult, step_scores
from seedbench.train.backbone import Backbone, Sample
from seedbench.train.losses import OVERFLOW, LossBatch, Totals
from seedbench.train.method import Method
from seedbench.types import Episode, Skill


@dataclass(slots=True)
class Rows:
    """Everything one update trains on. Per-row lists run parallel to ``samples``."""

    samples: list[Sample]
    advantage: list[list[float]]  # one number per decided token
    taught: list[bool]
    old: list[list[float]]
    reference: list[list[float]] | None = None
    teacher: list[list[float]] | None = None
    result: AdvantageResult | None = field(default=None)

    def __len__(self) -> int:
        return len(self.samples)


def make_rows(
    samples: list[Sample],
    episodes: Sequence[Episode],
    skills: Sequence[Skill | None] | None,
    method: Method,
    invalid_penalty: float,
    mask_truncated: bool = False,
) -> Rows:
    """Place group advantages on decided tokens. Steps without a decided token are out of all statistics
    (BR-003), and so are episodes lost to infrastructure errors (BR-013). ``mask_truncated`` leaves out rows that
    hold nothing but completions cut at the token limit; their steps stay in the statistics (BR-025)."""
    decided: list[set[int]] = [set() for _ in episodes]
    for s in samples:
        decided[s.episode].update(s.turns)
    scores: list[list[float] | None] = []
    for e, steps in zip(episodes, decided, strict=True):
        every = step_scores(e.reward, [t.valid for t in e.turns], invalid_penalty)
        scores.append(None if e.success is None else [every[i] for i in sorted(steps)])
    result = method.advantage(scores, [e.task.id for e in episodes])
    if episodes and len({e.task.id for e in episodes}) == len(episodes):
        raise ConfigError("Every group holds a single episode (BR-006): set train.group to 2 or more.")
    by_step = [
        dict(zip(sorted(steps), values, strict=False))
        for steps, values in zip(decided, result.values, strict=True)
    ]
    kept = [
        s
        for s in samples
        if by_step[s.episode]
        and not (mask_truncated and all(episodes[s.episode].turns[t].truncated for t in s.turns))
    ]
    return Rows(
        kept,
        [[by_step[s.episode][t] for t in s.turns] for s in kept],
        [skills is not None and skills[s.episode] is not None for s in kept],
        [list(s.old) for s in kept],
        result=result,
    )


def cap_importance(
    rows: Rows, sampled: Sequence[Sequence[float]], episodes: Sequence[Episode], cap: float
) -> float:
    """Multiply each token's advantage by ``min(cap, exp(old - sampled))``, in place; returns the mean weight.

    ``rows.old`` are recomputed by the trainer, ``sampled`` come from the engine that played. The clipped loss is
    linear in a positive factor of the advantage, so this is truncated importance sampling of its gradient.
    Raises :class:`ConfigError` for a turn without a log-probability (BR-031).
    """
    for s in rows.samples:
        bare = [t for t in s.turns if episodes[s.episode].turns[t].logprob is None]
        if bare:
            raise ConfigError(
                f"train.importance_cap needs the log-probability of every sampled turn; turn {bare[0]} of task "
                f"'{episodes[s.episode].task.id}' has no 'logprob'. Use an engine that gives them, or set the cap to 0."
            )
    weights = [
        [min(cap, math.exp(min(o - s, OVERFLOW))) for o, s in zip(old, before, strict=True)]
        for old, before in zip(rows.old, sampled, strict=True)
    ]
    rows.advantage = [
        [a * w for a, w in zip(values, row, strict=True)]
        for values, row in zip(rows.advantage, weights, strict=True)
    ]
    flat = [w for row in weights for w in row]
    return math.fsum(flat) / max(len(flat), 1)


def trainable(rows: Rows, method: Method) -> list[int]:
    """Rows that can move a weight: all of them under KL or entropy terms, else those with a signal."""
    if method.objective.kl or method.objective.entropy:
        return list(range(len(rows)))
    return [i for i in range(len(rows)) if rows.taught[i] or any(rows.advantage[i])]


def minibatches(rows: Rows, index: Sequence[int], count: int, seed: str) -> list[list[int]]:
    """``count`` shuffled mini-batches of nearly equal size; the order depends on ``seed`` alone."""
    order = list(index)
    random.Random(seed).shuffle(order)
    return [order[c::count] for c in range(count) if order[c::count]]


def minibatches_of(count: int, size: int, seed: str) -> Iterator[list[int]]:
    """Shuffled batches of ``size`` indices below ``count``; the last one may be smaller, none is dropped."""
    order = list(range(count))
    random.Random(seed).shuffle(order)
    for i in range(0, count, size):
        yield order[i : i + size]


def micro_batches(lengths: Sequence[int], index: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Rows of similar length together, each micro-batch within ``budget`` padded tokens (one row at least)."""
    batch: list[int] = []
    for i in sorted(index, key=lambda i: (lengths[i], i)):
        if batch and (len(batch) + 1) * lengths[i] > budget:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def totals(rows: Rows, index: Sequence[int]) -> Totals:
    counts = [len(rows.advantage[i]) for i in index]
    taught = sum(n for i, n in zip(index, counts, strict=True) if rows.taught[i])
    return Totals(sum(counts), len(counts), taught)


def loss_batch(backbone: Backbone, rows: Rows, batch: Sequence[int], total: Totals, update: int) -> LossBatch:
    """Forward pass with gradients over one micro-batch."""
    scores = backbone.score([rows.samples[i] for i in batch])
    width = scores.logp.shape[1]

    def padded(values: list[list[float]] | None) -> Tensor | None:
        if values is None:
            return None
        return torch.tensor(
            [values[i] + [0.0] * (width - len(values[i])) for i in batch],
            dtype=scores.logp.dtype,
            device=scores.logp.device,
        )

    return LossBatch(
        logp=scores.logp,
        entropy=scores.entropy,
        mask=scores.mask,
        logp_old=padded(rows.old),  # type: ignore[arg-type]
        advantage=padded(rows.advantage),  # type: ignore[arg-type]
        totals=total,
        update=update,
        logp_ref=padded(rows.reference),
        logp_teacher=padded(rows.teacher),
        taught=torch.tensor([rows.taught[i] for i in batch], device=scores.logp.device),
    )


@torch.no_grad()
def score_rows(
    backbone: Backbone,
    rows: Rows,
    index: Sequence[int],
    budget: int,
    skills: Sequence[str | None] | None = None,
) -> list[list[float]]:
    """Log-probabilities of rows ``index`` without gradients; rows not asked for keep their old ones.

    ``skills`` (one per row) puts a teacher's block into the prompt. Independent of how rows are batched
    (BR-020): every row is read back by its own length.
    """
    out = [list(o) for o in rows.old]
    lengths = [s.length for s in rows.samples]
    for batch in micro_batches(lengths, index, budget):
        chosen = [skills[i] for i in batch] if skills is not None else None
        logp = backbone.score([rows.samples[i] for i in batch], chosen).logp.float().tolist()
        for i, values in zip(batch, logp, strict=True):
            out[i] = values[: len(rows.old[i])]
    return out
