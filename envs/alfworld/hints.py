"""What a skill text says, in the vocabulary :mod:`.hindsight` writes, and which task it is for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from seedbench.envs.alfworld.game import Goal
from seedbench.envs.alfworld.memory import type_of

_ENTITY = r"[a-z]+ \d+"
_SOURCE = re.compile(rf"({_ENTITY}) (?:was )?in ({_ENTITY})")
_ABSENT = re.compile(rf"([a-z]+) was not in ({_ENTITY}(?: , {_ENTITY})*)")
_TREAT = re.compile(rf"(clean|heat|cool) it with ({_ENTITY})")
_TARGET = re.compile(rf"put (it|both) in ({_ENTITY})")
_LAMP = re.compile(rf"use ({_ENTITY}) at ({_ENTITY})")


@dataclass(frozen=True, slots=True)
class Hints:
    """``sources``: receptacles said to hold the object, in order.

    ``absent``: type -> receptacles without it.
    """

    sources: tuple[str, ...] = ()
    absent: dict[str, frozenset[str]] | None = None
    device: str | None = None
    target: str | None = None
    lamp_at: str | None = None

    def lacks(self, thing_type: str) -> frozenset[str]:
        return (self.absent or {}).get(thing_type, frozenset())


NO_HINTS = Hints()


def read_hints(text: str, goal: Goal) -> Hints | None:
    """The hints of a skill that is about ``goal``; ``None`` if it is about another task or says nothing."""
    sources = _SOURCE.findall(text)
    absent = {t: frozenset(places.split(" , ")) for t, places in _ABSENT.findall(text)}
    treat, target, lamp = _TREAT.search(text), _TARGET.search(text), _LAMP.search(text)
    if any(type_of(o) != goal.object_type for o, _ in sources):
        return None
    if not sources and goal.object_type not in absent:
        return None
    kind = _kind(treat, target, lamp)
    if kind is not None and kind != goal.kind:
        return None
    if target and type_of(target.group(2)) != goal.place_type:
        return None
    return Hints(
        sources=tuple(r for _, r in sources),
        absent=absent,
        device=treat.group(2) if treat else None,
        target=target.group(2) if target else None,
        lamp_at=lamp.group(2) if lamp else None,
    )


def _kind(
    treat: re.Match[str] | None, target: re.Match[str] | None, lamp: re.Match[str] | None
) -> str | None:
    """The kind of goal a skill is for, as far as it tells."""
    if treat:
        return treat.group(1)
    if lamp:
        return "look"
    if target:
        return "two" if target.group(1) == "both" else "place"
    return None
