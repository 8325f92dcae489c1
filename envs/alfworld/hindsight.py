"""Hindsight skills by rules: from the visible trajectory and its outcome alone, in a small closed vocabulary.

A success becomes a workflow, a failure what was seen and what to avoid. Every thing named occurs in the
trajectory, which :func:`faithful` measures for any skill.
"""

from __future__ import annotations

import re

from seedbench.envs.alfworld.memory import Memory, type_of

from seedbench.types import Episode, Skill

SOURCE = "rules"
_ENTITY = re.compile(r"\b([a-z]+ \d+)\b")
_MOST_NAMED = 4  # receptacles in a list, so that a skill stays under about 25 words
_DEVICES = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}


def annotate(episode: Episode) -> Skill:
    """Two short sentences: ``summary`` tells what happened, ``text`` what to do (or avoid) next time."""
    memory = Memory.of(episode.history())
    won = bool(episode.success)
    if memory.goal is None:
        return Skill("won" if won else "failed", "do as the task says", SOURCE)
    summary = f"{'won' if won else 'failed'} after {len(episode.turns)} steps"
    return Skill(summary, _workflow(memory) if won else _avoidance(memory), SOURCE)


def _sources(memory: Memory) -> list[tuple[str, str]]:
    """Goal objects seen, with where they were first seen."""
    wanted = memory.goal.object_type if memory.goal else ""
    return [(o, r) for o, r in memory.first_seen.items() if type_of(o) == wanted]


def _workflow(memory: Memory) -> str:
    goal = memory.goal
    assert goal is not None
    first = memory.first_seen
    if goal.kind == "look":
        thing = memory.held or ""
        lamp = next(x for x in sorted(memory.used) if type_of(x) == goal.place_type)
        return f"find {thing} in {first[thing]} , use {lamp} at {first.get(lamp, memory.at)}"
    # In a few official games a thing lies in two receptacles at once: treating it in the hands can win.
    last, target = (memory.held, None) if memory.held else memory.puts[-1]
    if goal.kind == "two" and target:
        others = [o for o in memory.contents[target] if type_of(o) == goal.object_type and o != last]
        found = f"{others[0]} in {first.get(others[0], target)} and " if others else ""
        return f"find {found}{last} in {first[last]} , put both in {target}"
    steps = [f"find {last} in {first[last]}"]
    if goal.kind in _DEVICES:
        # Some official games start with the object treated already: then there is nothing to tell.
        devices = [d for verb, o, d in memory.treatments if (verb, o) == (goal.kind, last)]
        steps += [f"{goal.kind} it with {d}" for d in devices[-1:]]
    return " , ".join([*steps, f"put it in {target}"] if target else steps)


def _avoidance(memory: Memory) -> str:
    goal = memory.goal
    assert goal is not None
    sources = _sources(memory)
    elsewhere = [(o, r) for o, r in sources if type_of(r) != goal.place_type] or sources
    need = 2 if goal.kind == "two" else 1
    parts = [f"{o} was in {r}" for o, r in elsewhere[:need]]
    if len(elsewhere) < need:
        empty = _names(memory.found_empty[: _MOST_NAMED - len(elsewhere)])
        another = "another " if elsewhere else ""
        parts.append(
            f"{another}{goal.object_type} was not in {empty}" if empty else f"no {goal.object_type} was found"
        )
        parts.append("search other places")
    else:
        parts.append(_advice(memory))
    return " ; ".join(parts)


def _advice(memory: Memory) -> str:
    """What would have finished the task, as far as the trajectory names it."""
    goal = memory.goal
    assert goal is not None
    if goal.kind == "look":
        lamp = next((o for o in memory.first_seen if type_of(o) == goal.place_type), None)
        if lamp:
            return f"hold it and use {lamp} at {memory.first_seen[lamp]}"
        empty = _names([r for r in memory.contents if r])
        return f"{goal.place_type} was not in {empty}" if empty else f"no {goal.place_type} was found"
    targets = memory.of_type(goal.place_type)
    put = f"put {'both' if goal.kind == 'two' else 'it'} in {targets[0] if targets else goal.place_type}"
    if goal.kind in _DEVICES:
        devices = memory.of_type(_DEVICES[goal.kind])
        device = devices[0] if devices else _DEVICES[goal.kind]
        return f"{goal.kind} it with {device} before you {put}"
    return put


def _names(receptacles: list[str]) -> str:
    return " , ".join(receptacles[:_MOST_NAMED])


def entities(text: str) -> set[str]:
    """Things named with a number: ``"apple 1"``."""
    return set(_ENTITY.findall(text))


def faithful(skill: Skill, episode: Episode) -> float:
    """Share in [0, 1] of the things a skill names that occur in its trajectory; 1 if it names none."""
    named = entities(f"{skill.text} ; {re.sub(r'after [0-9]+ steps', '', skill.summary)}")
    if not named:
        return 1.0
    seen: set[str] = set()
    for turn in episode.turns:
        seen |= entities(turn.observation.text) | entities(turn.action)
    seen |= entities(episode.last_observation.text)
    return len(named & seen) / len(named)
