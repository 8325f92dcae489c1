"""From ordinary history to the token ids the tiny model reads. Pure functions; the audit calls the same ones.

A transcript grows only at its end, so a running episode never encodes its history twice::

    <bos> [<skill> ... </skill>] first observation <act> action <end> <obs> observation <act> action <end> ...

and the hindsight question is the same transcript closed by its outcome::

    ... <obs> last observation <won>|<lost> <hindsight> {"episode_summary": "...", "episode_skill": "..."} <end>
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from seedbench.policies.tiny.tokenizer import (
    ACT,
    BOS,
    END,
    HINDSIGHT,
    LOST,
    OBS,
    SKILL,
    SKILL_END,
    WON,
    TinyTokenizer,
)
from seedbench.types import Episode, History, Observation


@dataclass(slots=True)
class TurnTrace:
    """Tokens of one turn. ``positions`` index ``action``; ``allowed`` are the candidate ids at each of them.

    Only these positions were decided by the model; between them the candidates left no choice.
    """

    prompt: tuple[int, ...]
    action: tuple[int, ...]
    positions: tuple[int, ...]
    allowed: tuple[tuple[int, ...], ...]
    logprobs: tuple[float, ...] = field(default=())
    temperature: float = 1.0


def opening(tok: TinyTokenizer, instruction: str, first: Observation) -> tuple[int, ...]:
    """Tokens before the first action, without ``<bos>`` and skill."""
    text = first.text if instruction in first.text else f"{instruction} {first.text}"
    return (*tok.encode(text), ACT)


def continuation(tok: TinyTokenizer, observation: Observation) -> tuple[int, ...]:
    return (OBS, *tok.encode(observation.text), ACT)


def skill_block(tok: TinyTokenizer, skill: str | None) -> tuple[int, ...]:
    """The privileged block that follows ``<bos>`` in a teacher's prompt; empty without a skill."""
    return () if skill is None else (SKILL, *tok.encode(skill), SKILL_END)


def prompt_ids(tok: TinyTokenizer, history: History, skill: str | None = None) -> tuple[int, ...]:
    """Everything the model has read when it chooses action number ``history.step``."""
    observations = [t.observation for t in history.past] + [history.observation]
    ids = [BOS, *skill_block(tok, skill), *opening(tok, history.instruction, observations[0])]
    for past, seen in zip(history.past, observations[1:], strict=True):
        ids += [*tok.encode(past.action), END, *continuation(tok, seen)]
    return tuple(ids)


def hindsight_ids(tok: TinyTokenizer, episode: Episode) -> tuple[int, ...]:
    """The question put to the model after an episode: what happened, did it succeed, what to keep."""
    ids = prompt_ids(tok, episode.history())[:-1]
    return (*ids, WON if episode.success else LOST, HINDSIGHT)


def decisions(
    action: Sequence[int], candidates: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Where ``action`` was a real choice among ``candidates`` (token lists), and between which tokens."""
    positions, allowed, left = [], [], list(candidates)
    for t, token in enumerate(action):
        options = sorted({c[t] for c in left if len(c) > t})
        if len(options) > 1:
            positions.append(t)
            allowed.append(tuple(options))
        left = [c for c in left if len(c) > t and c[t] == token]
    return tuple(positions), tuple(allowed)
