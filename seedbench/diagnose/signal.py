"""Gate and signal on the recorded actions: what the auxiliary loss of the final checkpoint would push.

The same sampled tokens are scored with and without the episode's own skill. Gate: sigmoid(beta * gap), beta
as the method sets it (5 where it sets none).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Any

import torch

from seedbench.contracts import Environment
from seedbench.diagnose.material import Item
from seedbench.diagnose.useful import Label
from seedbench.train.backbone import Backbone
from seedbench.train.batch import Rows, loss_batch, make_rows, micro_batches, score_rows, totals
from seedbench.train.method import Method

BETA = 5.0
#: A gap that changes a gate of beta 5 by about 0.12.
GAP = 0.1


def scored_rows(
    env: Environment, backbone: Backbone, items: Sequence[Item], budget: int, method: Method | None = None
) -> Rows:
    """Training rows of the items, with log-probabilities of student (as ``old``) and teacher filled in.

    Advantages are those of ``method``, for which ``items`` must hold whole groups, or 0 without one.
    """
    episodes = [i.episode for i in items]
    samples = backbone.samples(episodes, env)
    if method is not None:
        rows = make_rows(samples, episodes, [i.skill for i in items], method, env.spec.invalid_penalty)
    else:
        zeros = [[0.0] * len(s.turns) for s in samples]
        rows = Rows(samples, zeros, [True] * len(samples), [list(s.old) for s in samples])
    everything = list(range(len(rows)))
    rows.old = score_rows(backbone, rows, everything, budget)
    texts = [items[s.episode].skill.text for s in rows.samples]
    rows.teacher = score_rows(backbone, rows, everything, budget, texts)
    return rows


def gate_numbers(
    rows: Rows, items: Sequence[Item], labels: Sequence[Sequence[Label]], beta: float
) -> dict[str, Any]:
    """Distribution of gap and gate over tokens, by update and by what the oracle thinks of the action."""
    gaps: list[float] = []
    by_update: dict[int, list[float]] = {}
    by_label: dict[str, list[float]] = {"useful": [], "idle": [], "harmful": []}
    assert rows.teacher is not None
    for sample, old, teacher in zip(rows.samples, rows.old, rows.teacher, strict=True):
        for turn, a, b in zip(sample.turns, old, teacher, strict=True):
            gap = b - a
            gaps.append(gap)
            by_update.setdefault(items[sample.episode].update, []).append(gap)
            by_label[labels[sample.episode][turn]].append(gap)
    gates = [gate(g, beta) for g in gaps]
    up = [g > 0 for g in gaps]
    useful = sum(g > 0 for g in by_label["useful"])
    harmful = by_label["harmful"]
    return {
        "tokens": len(gaps),
        "beta": beta,
        "gap_mean": fmean(gaps),
        "gap_std": pstdev(gaps),
        "gap_above_0.1": fmean(g > GAP for g in gaps),
        "gate_mean": fmean(gates),
        "gate_std": pstdev(gates),
        "gate_histogram": _histogram(gates),
        "upweighted": fmean(up),
        "upweighted_useful": useful / sum(up) if any(up) else None,
        "harmful_tokens": len(harmful),
        "harmful_rewarded": fmean(gate(g, beta) > 0.5 for g in harmful) if harmful else None,
        "gate_by_label": {k: fmean(gate(g, beta) for g in v) if v else None for k, v in by_label.items()},
        "by_update": [_spread(u, [gate(g, beta) for g in v], v) for u, v in sorted(by_update.items())],
    }


def gate(gap: float, beta: float) -> float:
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, beta * gap))))


def _histogram(gates: Sequence[float], bins: int = 20) -> list[int]:
    out = [0] * bins
    for g in gates:
        out[min(int(g * bins), bins - 1)] += 1
    return out


def _spread(u: int, gates: Sequence[float], gaps: Sequence[float]) -> dict[str, float]:
    order = sorted(gates)
    at = {f"q{q}": order[min(len(order) - 1, q * len(order) // 100)] for q in (10, 50, 90)}
    return {"update": u, "mean": fmean(gates), "gap_mean": fmean(gaps), "gap_std": pstdev(gaps), **at}


def gradient_cosine(backbone: Backbone, rows: Rows, method: Method, budget: int) -> dict[str, float | None]:
    """Cosine between the gradient of the method's auxiliary loss and that of the loss without it, and the
    ratio of their lengths. None where one of them is zero (equal rewards in every group, no skill)."""
    index = list(range(len(rows)))
    total = totals(rows, index)
    lengths = [s.length for s in rows.samples]
    parameters = [p for p in backbone.parameters() if p.requires_grad]
    whole = [torch.zeros_like(p) for p in parameters]
    base = [torch.zeros_like(p) for p in parameters]
    for part in micro_batches(lengths, index, budget):
        batch = loss_batch(backbone, rows, part, total, 0)
        values = (method.loss(batch).value, method.objective(batch).value)
        for value, sums in zip(values, (whole, base), strict=True):
            grads = torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
            for s, g in zip(sums, grads, strict=True):
                if g is not None:
                    s += g
    extra = torch.cat([(w - b).flatten() for w, b in zip(whole, base, strict=True)]).double()
    plain = torch.cat([b.flatten() for b in base]).double()
    one, two = float(extra.norm()), float(plain.norm())
    cosine = float(extra @ plain) / (one * two) if one and two else None
    return {"cosine": cosine, "auxiliary_norm": one, "base_norm": two}
