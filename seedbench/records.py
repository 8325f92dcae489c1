"""An episode as one JSON object, and back, without loss. The file format of a run's episodes.

One record (``schema`` 1)::

    {"schema": 1, "phase": "eval", "update": 40,
     "task": {"id": ..., "split": ..., "group": ...}, "seed": 7, "repeat": 0,
     "instruction": ...,
     "turns": [{"obs": ..., "legal": [...], "completion": ..., "action": ..., ...}, ...],
     "last": {"obs": ...}, "status": "completed", "success": true, "score": 1.0, "metrics": {...},
     "error": "", "acting_skill": null, "hindsight": {"summary": ..., "text": ..., "source": ...},
     "seconds": 1.25}

* Fields of a turn that hold their default are left out (``valid`` true, ``reason`` "" ...).
* ``legal`` is absent when the list is the one of the turn before, ``{"-": [...], "+": [...]}`` when it is
  that list without the places under ``-`` and with the ``[place, text]`` pairs under ``+`` put in, and a
  plain list otherwise. The order is restored exactly.
* Text is written as ASCII with ``\\u`` escapes, so a lone surrogate, NUL or emoji survives in any locale
  (BR-106). A surrogate *pair* given as two code units comes back as the one character it encodes.
* A number that JSON lacks is the string ``"NaN"``, ``"Infinity"`` or ``"-Infinity"``.
* Hidden halves of tasks and policy traces have no field here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from seedbench.errors import DataCorrupt
from seedbench.types import Episode, Observation, PublicTask, Skill, Turn

SCHEMA = 1
#: Decimals kept of a log-probability.
LOGPROB_DECIMALS = 6
_TURN_DEFAULTS: dict[str, Any] = {
    "valid": True,
    "reason": "",
    "effect": True,
    "reward": 0.0,
    "prompt_sha256": "",
    "prompt_tokens": 0,
    "new_tokens": 0,
    "logprob": None,
    "truncated": False,
}
Record = dict[str, Any]
#: What tells two episodes of one stream apart: update, task id, repeat.
Key = tuple[int, str, int]


def canonical_json(value: Any) -> str:
    """One line of ASCII JSON, keys sorted, no spaces: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def episode_key(record: Mapping[str, Any]) -> Key:
    return (int(record["update"]), str(record["task"]["id"]), int(record["repeat"]))


def to_record(episode: Episode, phase: str, update: int) -> Record:
    """``phase`` is ``"train"`` or ``"eval"``; ``update`` counts finished updates when it was played."""
    turns, legal = [], ()
    for turn in episode.turns:
        turns.append(_turn_record(turn, legal))
        legal = turn.observation.legal
    return {
        "schema": SCHEMA,
        "phase": phase,
        "update": update,
        "task": {"id": episode.task.id, "split": episode.task.split, "group": episode.task.group},
        "seed": episode.seed,
        "repeat": episode.repeat,
        "instruction": episode.instruction,
        "turns": turns,
        "last": _observation_record(episode.last_observation, legal),
        "status": episode.status,
        "success": None if episode.success is None else bool(episode.success),
        "score": _number(episode.score),
        "metrics": {name: _number(value) for name, value in sorted(episode.metrics.items())},
        "error": episode.error,
        "acting_skill": _skill_record(episode.acting_skill),
        "hindsight": _skill_record(episode.hindsight),
        "seconds": _number(episode.seconds),
    }


def from_record(record: Mapping[str, Any]) -> Episode:
    """Inverse of :func:`to_record`. Raises :class:`DataCorrupt` for another schema or a missing field."""
    if record.get("schema") != SCHEMA:
        raise DataCorrupt(
            f"Episode record has schema {record.get('schema')!r}; this version reads {SCHEMA}. "
            "Read it with the seedbench version named in the run's manifest."
        )
    try:
        return _episode(record)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise DataCorrupt(f"Episode record is malformed ({type(error).__name__}: {error}).") from error


def _episode(record: Mapping[str, Any]) -> Episode:
    turns: list[Turn] = []
    legal: tuple[str, ...] = ()
    for entry in record["turns"]:
        turns.append(_turn(entry, legal))
        legal = turns[-1].observation.legal
    return Episode(
        task=PublicTask(**record["task"]),
        seed=record["seed"],
        repeat=record["repeat"],
        instruction=record["instruction"],
        turns=turns,
        last_observation=_observation(record["last"], legal),
        status=record["status"],
        success=record["success"],
        score=_float(record["score"]),
        metrics={name: _float(value) for name, value in record["metrics"].items()},
        error=record["error"],
        acting_skill=_skill(record["acting_skill"]),
        hindsight=_skill(record["hindsight"]),
        seconds=_float(record["seconds"]),
    )


def _turn_record(turn: Turn, before: Sequence[str]) -> Record:
    out = _observation_record(turn.observation, before)
    out["completion"], out["action"] = turn.completion, turn.action
    for name, default in _TURN_DEFAULTS.items():
        value = getattr(turn, name)
        if name == "logprob" and value is not None and math.isfinite(value):
            value = round(float(value), LOGPROB_DECIMALS)
        if value != default or (value is None) != (default is None):
            out[name] = _number(value) if isinstance(value, float) else value
    return out


def _turn(entry: Mapping[str, Any], before: tuple[str, ...]) -> Turn:
    values = {name: entry.get(name, default) for name, default in _TURN_DEFAULTS.items()}
    values["reward"], values["logprob"] = _float(values["reward"]), _float(values["logprob"])
    return Turn(_observation(entry, before), entry["completion"], entry["action"], **values)


def _observation_record(observation: Observation, before: Sequence[str]) -> Record:
    out: Record = {"obs": observation.text}
    if observation.legal != tuple(before):
        out["legal"] = _delta(before, observation.legal)
    return out


def _observation(entry: Mapping[str, Any], before: tuple[str, ...]) -> Observation:
    legal = entry.get("legal")
    if legal is None:
        return Observation(entry["obs"], before)
    if isinstance(legal, list):
        return Observation(entry["obs"], tuple(legal))
    gone = set(legal["-"])
    now = [text for place, text in enumerate(before) if place not in gone]
    for place, text in legal["+"]:
        now.insert(place, text)
    return Observation(entry["obs"], tuple(now))


def _delta(before: Sequence[str], now: Sequence[str]) -> list[str] | dict[str, list[Any]]:
    """Places taken out and pairs put in, where what both lists share keeps its order; else the list."""
    old, new = set(before), set(now)
    if len(old) == len(before) and len(new) == len(now):
        gone = [place for place, text in enumerate(before) if text not in new]
        come = [[place, text] for place, text in enumerate(now) if text not in old]
        same = [t for t in before if t in new] == [t for t in now if t in old]
        if same and len(gone) + len(come) < len(now):
            return {"-": gone, "+": come}
    return list(now)


def _skill_record(skill: Skill | None) -> Record | None:
    if skill is None:
        return None
    return {"summary": skill.summary, "text": skill.text, "source": skill.source}


def _skill(entry: Mapping[str, str] | None) -> Skill | None:
    return None if entry is None else Skill(**entry)


def _number(value: float | None) -> float | int | str | None:
    if value is None or isinstance(value, int):
        return value
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _float(value: float | str | None) -> Any:
    return float(value) if isinstance(value, str) else value
