"""Pure loss terms over (B, T) tensors of decided tokens. No state, no randomness, no model.

``mask`` (B, T, bool) marks real tokens; values at masked places may be anything, NaN and infinity included,
and reach neither loss nor gradient. Every term is a *sum divided by a total that the caller fixes for the
whole mini-batch*, so a loss does not depend on how the mini-batch is split into micro-batches.

Section numbers refer to the methods page in ``docs/methods.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

Aggregation = Literal["token-mean", "seq-mean-token-mean"]
#: Log-ratios above this are beyond every clip that follows; capped before exp, whose infinity would make the
#: gradient 0 * inf = NaN (BR-015).
OVERFLOW = 20.0


@dataclass(frozen=True, slots=True)
class Totals:
    """Denominators of one mini-batch: real tokens, rows with a real token, tokens of taught trajectories."""

    tokens: int
    rows: int
    taught_tokens: int = 0


@dataclass(frozen=True, slots=True)
class LossBatch:
    """One micro-batch. All tensors (B, T) except ``taught`` (B,). Only ``logp`` and ``entropy`` carry gradients.

    ``logp_ref`` and ``logp_teacher`` are None when no method asked for them; ``taught`` marks rows whose
    trajectory has a valid skill; ``update`` counts from 0.
    """

    logp: Tensor
    entropy: Tensor
    mask: Tensor
    logp_old: Tensor
    advantage: Tensor
    totals: Totals
    update: int = 0
    logp_ref: Tensor | None = None
    logp_teacher: Tensor | None = None
    taught: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """``value`` to differentiate, and detached numbers to log (already divided by their totals)."""

    value: Tensor
    terms: dict[str, float] = field(default_factory=dict)


def clean(x: Tensor, mask: Tensor) -> Tensor:
    """``x`` with masked places set to 0 before any arithmetic (0 * inf would be NaN: BR-015)."""
    return torch.where(mask, x, torch.zeros_like(x))


def aggregate(values: Tensor, mask: Tensor, totals: Totals, how: Aggregation = "token-mean") -> Tensor:
    """Sum of ``values`` over real tokens / number of tokens, or mean over rows of each row's mean (BR-007)."""
    values = clean(values, mask)
    if how == "token-mean":
        return values.sum() / max(totals.tokens, 1)
    per_row = values.sum(-1) / mask.sum(-1).clamp(min=1)
    return per_row.sum() / max(totals.rows, 1)


def clipped_policy_loss(
    logp: Tensor, logp_old: Tensor, advantage: Tensor, mask: Tensor, clip: float = 0.2, dual: float = 3.0
) -> Tensor:
    """Per-token PPO loss with dual clip (1.4): ``max(-A r, -A clip(r))``, capped at ``-A dual`` for A < 0."""
    ratio = torch.exp(clean(logp - logp_old, mask).clamp(max=OVERFLOW))
    a = clean(advantage, mask)
    loss = torch.maximum(-a * ratio, -a * ratio.clamp(1 - clip, 1 + clip))
    return torch.where(a < 0, torch.minimum(loss, -a * dual), loss)


def kl_k3(logp: Tensor, logp_ref: Tensor, mask: Tensor) -> Tensor:
    """Per-token k3 estimate of KL(current || reference), >= 0, clamped to 10 (1.5).

    Samples come from the current policy; with d = ref - current it is exp(d) - d - 1 (BR-009).
    """
    d = clean(logp_ref.detach() - logp, mask).clamp(max=OVERFLOW)
    return (torch.exp(d) - d - 1).clamp(-10, 10)


def teacher_k3(logp: Tensor, logp_old: Tensor, logp_teacher: Tensor, mask: Tensor) -> Tensor:
    """Per-token Skill-SD term (2.3): importance ratio (with gradient) times k3 between student and teacher."""
    ell = clean(logp - logp_teacher.detach(), mask)
    k3 = torch.exp((-ell).clamp(max=20)) - 1 + ell
    return torch.exp(clean(logp - logp_old, mask).clamp(max=10)) * k3


Gate = Literal["sigmoid", "half", "ones", "gap"]


def gate(logp: Tensor, logp_teacher: Tensor, mask: Tensor, beta: float, kind: Gate = "sigmoid") -> Tensor:
    """Detached per-token weight (2.5): sigmoid(beta * (teacher - student)); the constant 0.5 or 1; or the gap
    itself, which changes sign (the reverse-KL gradient of on-policy distillation, BR-016)."""
    gap = clean(logp_teacher - logp, mask).detach()
    if kind == "sigmoid":
        return torch.sigmoid(beta * gap)
    if kind == "gap":
        return gap
    return torch.full_like(gap, 0.5 if kind == "half" else 1.0)


def gated_imitation(logp: Tensor, logp_teacher: Tensor, weight: Tensor, mask: Tensor) -> Tensor:
    """Per-token SDAR/SEED term (2.5, 2.6): weight * (teacher - student).

    Its gradient with respect to ``logp`` is ``-weight``: sampled tokens are only ever pushed up.
    """
    return weight.detach() * clean(logp_teacher.detach() - logp, mask)


def distillation(batch: LossBatch, kind: Gate, beta: float) -> tuple[Tensor, Tensor]:
    """Token mean over taught trajectories of ``gate * (teacher - student)``, and of the gate; 0 if none is.

    The denominator counts the taught tokens of the whole mini-batch.
    """
    if batch.logp_teacher is None or batch.taught is None:
        zero = batch.logp.new_zeros(())
        return zero, zero
    mask = batch.mask & batch.taught[:, None]
    logp = clean(batch.logp, mask)
    weight = gate(logp, batch.logp_teacher, mask, beta, kind)
    over = Totals(batch.totals.taught_tokens, batch.totals.rows)
    return aggregate(gated_imitation(logp, batch.logp_teacher, weight, mask), mask, over), aggregate(
        weight, mask, over
    )


def add_distillation(
    base: Loss, batch: LossBatch, coefficient: float, kind: Gate, beta: float, name: str = "distil"
) -> Loss:
    """``base`` plus ``coefficient`` times :func:`distillation`, logged as ``name`` and ``gate``.

    Coefficient 0 returns ``base`` itself, bit for bit.
    """
    if coefficient == 0:
        return base
    term, weight = distillation(batch, kind, beta)
    return Loss(
        base.value + coefficient * term, base.terms | {name: float(term.detach()), "gate": float(weight)}
    )


def reweighted_advantage(
    advantage: Tensor,
    logp_teacher: Tensor,
    logp_old: Tensor,
    mask: Tensor,
    strength: float,
    clip: float = 0.2,
) -> Tensor:
    """RLSD (2.4): A * ((1 - s) + s * clip(exp(sign(A) * (teacher - old)), 1 +- clip)). Never flips a sign."""
    a = clean(advantage, mask)
    if strength == 0.0:
        return a  # bit for bit the plain advantage
    gap = clean(logp_teacher - logp_old, mask).detach()
    weight = torch.exp(torch.sign(a) * gap).clamp(1 - clip, 1 + clip)
    return a * ((1 - strength) + strength * weight)


@dataclass(frozen=True, slots=True)
class PolicyObjective:
    """The part every method shares (1.6): L = pg * clipped loss + kl * KL(ref) - entropy * H."""

    pg: float = 1.0
    clip: float = 0.2
    dual: float = 3.0
    kl: float = 0.01
    entropy: float = 0.001
    aggregation: Aggregation = "token-mean"

    def __call__(self, batch: LossBatch, advantage: Tensor | None = None) -> Loss:
        """Terms ``pg``, ``kl``, ``entropy``. ``advantage`` replaces the batch's own (RLSD)."""
        a = batch.advantage if advantage is None else advantage
        logp = clean(batch.logp, batch.mask)
        per_token = clipped_policy_loss(logp, batch.logp_old, a, batch.mask, self.clip, self.dual)
        pg = aggregate(per_token, batch.mask, batch.totals, self.aggregation)
        entropy = aggregate(batch.entropy, batch.mask, batch.totals, self.aggregation)
        value = self.pg * pg - self.entropy * entropy
        terms = {"pg": float(pg.detach()), "entropy": float(entropy.detach())}
        if self.kl and batch.logp_ref is not None:
            per_token = kl_k3(logp, batch.logp_ref, batch.mask)
            kl = aggregate(per_token, batch.mask, batch.totals, self.aggregation)
            value = value + self.kl * kl
            terms["kl"] = float(kl.detach())
        return Loss(value, terms)
