"""Support: does a skill raise the log-probability of useful actions above that of others?

At some states of the recorded episodes the oracle's action and a few other announced ones are scored by the
final checkpoint, under ordinary history and with a skill in the prompt: the episode's own, another
episode's (*shuffled*), or random words. The *gap* of an action is its log-probability with the skill minus
without it, per decided token. AUC is the chance that a useful action has the larger gap at the same state.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, pstdev
from typing import Any

import torch

from seedbench.contracts import Environment
from seedbench.diagnose.material import Item, random_text, shuffled
from seedbench.diagnose.useful import Judge, Label
from seedbench.train.backbone import Backbone, Sample
from seedbench.types import Episode, Turn

CONDITIONS = ("own", "shuffled", "random")


@dataclass(slots=True)
class Candidate:
    """``gap``: condition -> mean over decided tokens of teacher minus student; ``logp``: student's sum."""

    action: str
    label: Label
    logp: float = 0.0
    gap: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class State:
    """One decision of a recorded episode, with candidate actions."""

    item: Item
    step: int
    candidates: list[Candidate]


def states_of(
    env: Environment, item: Item, judge: Judge, per_episode: int, others: int, seed: int
) -> list[State]:
    """Up to ``per_episode`` states with a real choice: the oracle's action and ``others`` more."""
    rng = random.Random(f"states/{seed}/{item.update}/{item.episode.task.id}/{item.episode.repeat}")
    steps = list(range(len(item.episode.turns)))
    rng.shuffle(steps)
    out: list[State] = []
    for step in steps:
        if len(out) == per_episode:
            break
        said = [t.completion for t in item.episode.turns[:step]]
        best, choices = judge.best(said), list(env.choices(item.episode.history(step)))
        if best not in choices or len(choices) < 2:
            continue
        rest = [c for c in choices if c != best]
        chosen = [best, *rng.sample(rest, min(others, len(rest)))]
        made = [Candidate(c, judge.label(said, c)) for c in chosen]
        if made[0].label == "useful" and any(c.label != "useful" for c in made):
            out.append(State(item, step, made))
    return out


def score_states(
    env: Environment, backbone: Backbone, states: Sequence[State], items: Sequence[Item], seed: int
) -> None:
    """Fill in ``logp`` and ``gap`` of every candidate."""
    other = dict(zip(map(id, items), shuffled(items, seed), strict=True))
    noise = dict(zip(map(id, items), random_text(items, seed), strict=True))
    for state in states:
        texts = {
            "own": state.item.skill.text,
            "shuffled": other[id(state.item)],
            "random": noise[id(state.item)],
        }
        episodes = [_tried(env, state, c.action) for c in state.candidates]
        samples = backbone.samples(episodes, env)
        plain = _last_turn(backbone, samples, state, None)
        told = {name: _last_turn(backbone, samples, state, text) for name, text in texts.items()}
        for i, c in enumerate(state.candidates):
            c.logp = math.fsum(plain[i])
            tokens = max(len(plain[i]), 1)
            c.gap = {n: (math.fsum(told[n][i]) - c.logp) / tokens for n in CONDITIONS}


def _tried(env: Environment, state: State, action: str) -> Episode:
    """The episode up to the state, ended by ``action`` instead of what was done."""
    episode = state.item.episode
    last = Turn(episode.turns[state.step].observation, env.wrap(action), action, True)
    return replace(episode, turns=[*episode.turns[: state.step], last], acting_skill=None, hindsight=None)


@torch.no_grad()
def _last_turn(
    backbone: Backbone, samples: Sequence[Sample], state: State, skill: str | None
) -> list[list[float]]:
    """Per candidate, log-probabilities of the tokens decided in its last turn; empty where none was."""
    logp = backbone.score(samples, [skill] * len(samples)).logp.float().tolist() if samples else []
    out: list[list[float]] = [[] for _ in state.candidates]
    for sample, row in zip(samples, logp, strict=True):
        out[sample.episode] += [x for x, turn in zip(row, sample.turns, strict=False) if turn == state.step]
    return out


def auc(states: Sequence[State], condition: str) -> float | None:
    """Share of (useful, other) pairs of one state in which the useful action has the larger gap; ties half."""
    wins: list[float] = []
    for s in states:
        good = [c.gap[condition] for c in s.candidates if c.label == "useful"]
        rest = [c.gap[condition] for c in s.candidates if c.label != "useful"]
        wins += [1.0 if a > b else 0.5 if a == b else 0.0 for a in good for b in rest]
    return fmean(wins) if wins else None


def summary(states: Sequence[State]) -> dict[str, Any]:
    """AUC and mean gaps by condition, and for the own skill by outcome and group."""
    parts: dict[str, list[State]] = {"all": list(states)}
    for s in states:
        parts.setdefault("success" if s.item.episode.success else "failure", []).append(s)
        parts.setdefault(f"group {s.item.episode.task.group}", []).append(s)
    return {
        "states": len(states),
        "conditions": {c: _condition(states, c) for c in CONDITIONS},
        "own_by_part": {name: _condition(part, "own") for name, part in sorted(parts.items())},
    }


def _condition(states: Sequence[State], condition: str) -> dict[str, Any]:
    by_label: dict[str, list[float]] = {"useful": [], "idle": [], "harmful": []}
    for s in states:
        for c in s.candidates:
            by_label[c.label].append(c.gap[condition])
    return {"auc": auc(states, condition), "states": len(states)} | {
        f"gap_{name}": fmean(values) if values else None for name, values in by_label.items()
    }


def within_state(states: Sequence[State], beta: float) -> dict[str, float | None]:
    """How the gate varies with the action at one state: what the auxiliary loss can teach.

    Standard deviation over candidate actions of sigmoid(beta * gap), weighted by the student's own
    probabilities among them; mean over states. A gate that does not vary has zero expected gradient.
    """
    spreads, flat = [], []
    for s in states:
        gates = [1 / (1 + math.exp(-max(-50.0, min(50.0, beta * c.gap["own"])))) for c in s.candidates]
        top = max(c.logp for c in s.candidates)
        weight = [math.exp(c.logp - top) for c in s.candidates]
        mean = math.fsum(w * g for w, g in zip(weight, gates, strict=True)) / math.fsum(weight)
        variance = math.fsum(w * (g - mean) ** 2 for w, g in zip(weight, gates, strict=True)) / math.fsum(
            weight
        )
        spreads.append(math.sqrt(variance))
        flat.append(pstdev(gates))
    return {
        "gate_within_state_std": fmean(spreads) if spreads else None,
        "gate_within_state_std_uniform": fmean(flat) if flat else None,
    }
