"""Stage 1 of SEED: hindsight-skill SFT on annotated trajectories (methods page 2.6).

The untuned policy plays, an annotator writes a skill for each finished episode, well-formed ones are kept,
and the policy learns to write them. The result is actor, analyzer and KL reference of Stage 2.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import torch

from seedbench.contracts import Environment
from seedbench.engines.local import LocalEngine
from seedbench.rollout import Job, derive_seed
from seedbench.train.annotators import annotator_named
from seedbench.train.backbone import Backbone
from seedbench.train.batch import minibatches_of
from seedbench.train.method import WarmUp
from seedbench.train.skills import parse_analysis, to_analysis
from seedbench.types import Episode, Skill, Task


def collect(
    env: Environment, backbone: Backbone, tasks: Sequence[Task], plan: WarmUp, seed: int, engine: LocalEngine,
    block: int,
) -> list[Episode]:  # fmt: skip
    """``plan.tasks`` tasks, spread evenly over the reporting groups, ``plan.repeats`` episodes of each."""
    by_group: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda t: derive_seed("warm-up", seed, t.id)):
        by_group.setdefault(task.public.group, []).append(task)
    chosen: list[Task] = []
    while len(chosen) < min(plan.tasks, len(tasks)):
        for group in sorted(by_group):
            if by_group[group] and len(chosen) < plan.tasks:
                chosen.append(by_group[group].pop())
    jobs = [
        Job(t, derive_seed(seed, "warm-up", t.id, r), derive_seed(seed, "warm-up", t.id), r)
        for t in chosen
        for r in range(plan.repeats)
    ]
    return engine.play(env, backbone.actor(plan.temperature), jobs, block)


def warm_up(
    env: Environment, backbone: Backbone, tasks: Sequence[Task], plan: WarmUp, seed: int, engine: LocalEngine,
    block: int, report: Callable[[dict], None],
) -> dict:  # fmt: skip
    """Collect, annotate, learn. Returns the record: counts, loss per epoch, parse rate before and after; ``tokens``
    went through the model in all, ``trained_tokens`` of them with gradients."""
    before_all = backbone.meter.tokens
    played = collect(env, backbone, tasks, plan, seed, engine, block)
    episodes = [e for e in played if e.success is not None and e.turns]
    annotate = annotator_named(plan.annotator, env)
    pairs = [(e, s) for e, s in zip(episodes, annotate(episodes), strict=True) if s is not None]
    order = list(range(len(pairs)))
    random.Random(f"holdout/{seed}").shuffle(order)
    held = [pairs[i] for i in order[: max(1, round(plan.holdout * len(pairs)))]]
    train = [pairs[i] for i in order[len(held) :]]
    record = {
        "episodes": len(episodes),
        "annotated": len(pairs),
        "annotator": plan.annotator,
        "before": _writing(backbone, env, held),
        "epochs": [],
        "trained_tokens": 0,
    }
    optimizer = torch.optim.AdamW(backbone.parameters(), plan.learning_rate, weight_decay=0.0)
    for epoch in range(plan.epochs):
        before = backbone.meter.tokens
        loss = _epoch(backbone, env, train, optimizer, plan.batch, f"{seed}/{epoch}")
        record["epochs"].append(round(loss, 5))
        record["trained_tokens"] += backbone.meter.tokens - before
        report({"warm_up": epoch + 1, "of": plan.epochs, "loss": loss})
    record["after"] = _writing(backbone, env, held)
    record["tokens"] = (
        sum(x.length for x in backbone.samples(played, env)) + backbone.meter.tokens - before_all
    )
    return record


def _epoch(
    backbone: Backbone, env: Environment, pairs: Sequence[tuple[Episode, Skill]],
    optimizer: torch.optim.Optimizer, batch: int, seed: str,
) -> float:  # fmt: skip
    """One pass; returns the mean NLL per answer token (nats)."""
    total, tokens = 0.0, 0
    for part in minibatches_of(len(pairs), batch, seed):
        nll, n = backbone.analysis_nll(
            [pairs[i][0] for i in part], [to_analysis(pairs[i][1]) for i in part], env
        )
        optimizer.zero_grad(set_to_none=True)
        (nll / n).backward()
        torch.nn.utils.clip_grad_norm_(list(backbone.parameters()), 1.0)
        optimizer.step()
        total, tokens = total + float(nll.detach()), tokens + n
    return total / max(tokens, 1)


def _writing(backbone: Backbone, env: Environment, pairs: Sequence[tuple[Episode, Skill]]) -> dict:
    """How well the policy writes skills on held-out trajectories."""
    texts = backbone.analyse([e for e, _ in pairs], env)
    found = [parse_analysis(t, "self") for t in texts]
    parsed = [s for s in found if s is not None]
    exact = sum(s is not None and s.text == w.text for s, (_, w) in zip(found, pairs, strict=True))
    n = max(len(pairs), 1)
    return {"n": len(pairs), "parsed": len(parsed) / n, "as_annotated": exact / n}
