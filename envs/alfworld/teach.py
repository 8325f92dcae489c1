"""Material for the warm start: a demonstrator that acts on ordinary history only, clean or flawed.

It remembers what it saw, searches plausible receptacles first, opens closed ones, treats and places. Given a
skill about its task it follows it, and falls back to search where the skill proves wrong; a skill about
another task changes nothing. No hidden state is read: :class:`.memory.Memory` is made from the texts.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from seedbench.envs.alfworld import rooms
from seedbench.envs.alfworld.hindsight import annotate, faithful
from seedbench.envs.alfworld.hints import NO_HINTS, Hints, read_hints
from seedbench.envs.alfworld.lexicon import entities
from seedbench.envs.alfworld.memory import Memory, type_of

from seedbench.types import History, Skill

__all__ = [
    "CLEAN",
    "FLAWED",
    "SPLIT",
    "WORLDS",
    "Demonstrator",
    "Flaws",
    "annotate",
    "entities",
    "faithful",
    "words",
]

#: Worlds a warm start practises in, with their weights: small rooms, and larger ones like the official ones.
WORLDS = (({"size": "small"}, 0.5), ({"size": "medium"}, 0.25), ({"size": "large"}, 0.25))
#: Optimiser steps behind the shipped weights: on clean demonstrations, then on the mix.
RECIPE = {"world_steps": 1300, "habit_steps": 900}
SPLIT = "mini-train"


def words() -> tuple[str, ...]:
    """Words a tokenizer must know beside those of the demonstrations (none: they hold them all)."""
    return ()


@dataclass(frozen=True, slots=True)
class Flaws:
    """Shares in [0, 1]; the first five are drawn once per episode, the last two at every step."""

    forget_treatment: float = 0.0  # places the object without cleaning, heating or cooling it
    stop_at_one: float = 0.0  # thinks it is done after the first of two objects
    misplace: float = 0.0  # puts the object down where it stands and thinks it is done
    never_open: float = 0.0  # does not look behind closed doors
    blind_search: float = 0.0  # searches in any order
    random_action: float = 0.0
    wander: float = 0.0  # goes somewhere else


CLEAN = Flaws()
#: About three fifths of mini-train succeed within 30 steps; what is wrong is mostly habit, not noise.
FLAWED = Flaws(
    forget_treatment=0.5,
    stop_at_one=0.5,
    never_open=0.2,
    blind_search=0.5,
    random_action=0.06,
    wander=0.04,
)

_DEVICES = {kind: device.lower() for kind, (_, device) in rooms.TRANSFORMS.items()}


def _plausible() -> Mapping[str, frozenset[str]]:
    places: dict[str, set[str]] = {rooms.LAMP.lower(): {r.lower() for r in rooms.LAMP_STANDS}}
    for table in rooms.SPAWN.values():
        for o, where in table.items():
            places.setdefault(o.lower(), set()).update(where.lower().split())
    return {o: frozenset(r) for o, r in places.items()}


_PLAUSIBLE = _plausible()


class Demonstrator:
    """Acts in one episode. ``act`` is a pure function of history, skill, flaws and ``seed``."""

    def __init__(self, flaws: Flaws = CLEAN, seed: int | str = 0) -> None:
        self.flaws, self.seed = flaws, seed

    def act(self, history: History, skill: Skill | str | None = None) -> str:
        """A legal action. A skill about this task also switches the flaws off."""
        legal = tuple(a for a in history.observation.legal if a != "help")
        memory = Memory.of(history)
        if memory.goal is None:
            return "look" if "look" in legal else legal[0]
        text = skill.text if isinstance(skill, Skill) else skill
        hints = read_hints(text, memory.goal) if text else None
        flaws = CLEAN if hints else self.flaws
        rng = random.Random(f"demonstrator/{self.seed}/{history.step}")
        if rng.random() < flaws.random_action:
            return rng.choice(legal)
        if rng.random() < flaws.wander:
            return rng.choice([a for a in legal if a.startswith("go to ")] or list(legal))
        action = _Turn(memory, hints or NO_HINTS, flaws, legal, random.Random(f"habits/{self.seed}")).action()
        return action if action in legal else rng.choice(legal)


class _Turn:
    """One decision. Methods return a command, or ``None`` when they have nothing to do."""

    def __init__(
        self, memory: Memory, hints: Hints, flaws: Flaws, legal: tuple[str, ...], habits: random.Random
    ) -> None:
        self.memory, self.hints, self.legal = memory, hints, frozenset(legal)
        assert memory.goal is not None
        self.goal = memory.goal
        # Drawn in a fixed order, so that an episode keeps its habits from step to step.
        self.forgets = habits.random() < flaws.forget_treatment
        self.stops_at_one = habits.random() < flaws.stop_at_one
        self.misplaces = habits.random() < flaws.misplace
        self.opens = habits.random() >= flaws.never_open
        self.sensible = habits.random() >= flaws.blind_search
        self.order = {r: habits.random() for r in memory.receptacles}

    def action(self) -> str:
        if self.memory.held is None:
            return self._fetch() or self._search(self.goal.object_type) or "look"
        if type_of(self.memory.held) != self.goal.object_type:
            return self._drop()
        if self.misplaces and not self.memory.puts and (here := self._put_here()):
            return here
        return self._treat() or (self._light() if self.goal.kind == "look" else self._deliver())

    def _fetch(self) -> str | None:
        """Towards an object already seen that still has to be moved; ``look`` once it seems all done."""
        delivered = self._delivered()
        if self.misplaces and self.memory.puts:
            return "look"
        if delivered and (self.goal.kind != "two" or self.stops_at_one):
            return "look"
        known = [
            (o, r)
            for r, things in self.memory.contents.items()
            for o in things
            if type_of(o) == self.goal.object_type and o not in delivered
        ]
        known.sort(key=lambda pair: f"take {pair[0]} from {pair[1]}" not in self.legal)
        return self._into(known[0][1], f"take {known[0][0]} from {known[0][1]}") if known else None

    def _delivered(self) -> list[str]:
        """Objects put where they belong, in the state they should have (or that was forgotten)."""
        needs_state = self.goal.kind in _DEVICES and not self.forgets
        return [
            o
            for r, things in self.memory.contents.items()
            if type_of(r) == self.goal.place_type and (self.goal.kind != "two" or r == self._target())
            for o in things
            if type_of(o) == self.goal.object_type
            and (not needs_state or self.memory.state.get(o) == self.goal.kind)
        ]

    def _into(self, receptacle: str, command: str) -> str:
        """Do ``command`` at a receptacle: go there and open it first if need be."""
        if command in self.legal:
            return command
        if f"open {receptacle}" in self.legal:
            return f"open {receptacle}"
        return f"go to {receptacle}"

    def _search(self, thing_type: str) -> str | None:
        """Look into the next receptacle that was not looked into."""
        memory = self.memory
        here = memory.at
        if here and here not in memory.contents and self.opens and f"open {here}" in self.legal:
            return f"open {here}"
        unseen = [
            r
            for r in memory.receptacles
            if r not in memory.contents and (self.opens or r not in memory.closed)
        ]
        if not unseen:
            return None
        first = min(unseen, key=lambda r: self._rank(r, thing_type))
        # A receptacle at the place where we stand cannot be gone to; it can be examined.
        return self._into(first, f"go to {first}") if f"go to {first}" in self.legal else f"examine {first}"

    def _rank(self, receptacle: str, thing_type: str) -> tuple[int, bool, bool, bool, float]:
        hinted = self.hints.sources if thing_type == self.goal.object_type else (self.hints.lamp_at,)
        place = hinted.index(receptacle) if receptacle in hinted else len(hinted)
        unlikely = type_of(receptacle) not in _PLAUSIBLE.get(thing_type, frozenset())
        is_target = type_of(receptacle) == self.goal.place_type
        known_absent = receptacle in self.hints.lacks(thing_type)
        return (
            place,
            known_absent,
            self.sensible and is_target,
            self.sensible and unlikely,
            self.order[receptacle],
        )

    def _put_here(self) -> str | None:
        """The first command that puts down the thing held at this place."""
        held = self.memory.held
        return min((a for a in self.legal if a.startswith((f"move {held} ", f"put {held} "))), default=None)

    def _drop(self) -> str:
        """Put down a thing that is not wanted, here if possible."""
        held = self.memory.held or ""
        if here := self._put_here():
            return here
        if self.memory.at and f"open {self.memory.at}" in self.legal:
            return f"open {self.memory.at}"
        able = [
            r for r in self.memory.receptacles if type_of(r) in _PLAUSIBLE.get(type_of(held), frozenset())
        ]
        away = [r for r in able or self.memory.receptacles if f"go to {r}" in self.legal]
        return f"go to {min(away, key=self.order.__getitem__)}" if away else "look"

    def _treat(self) -> str | None:
        verb, held = self.goal.kind, self.memory.held or ""
        if verb not in _DEVICES or self.forgets or self.memory.state.get(held) == verb:
            return None
        devices = self.memory.of_type(_DEVICES[verb])
        if not devices:
            return None
        device = self.hints.device if self.hints.device in devices else devices[0]
        command = f"{verb} {held} with {device}"
        return command if command in self.legal else f"go to {device}"

    def _light(self) -> str:
        lamps = [o for o in self.memory.first_seen if type_of(o) == self.goal.place_type]
        for lamp in lamps:
            if f"use {lamp}" in self.legal:
                return f"use {lamp}"
        if lamps:
            return f"go to {self.memory.first_seen[lamps[0]]}"
        return self._search(self.goal.place_type) or "look"

    def _target(self) -> str | None:
        """The receptacle to put things in: where one lies already, the hinted one, or the first."""
        targets = self.memory.of_type(self.goal.place_type)
        used = [r for _, r in self.memory.puts if r in targets]
        if used:
            return used[-1]
        if self.hints.target in targets:
            return self.hints.target
        return targets[0] if targets else None

    def _deliver(self) -> str:
        held, target = self.memory.held or "", self._target()
        if target is None:
            return "look"
        for command in (f"move {held} to {target}", f"put {held} in/on {target}"):
            if command in self.legal:
                return command
        return f"open {target}" if f"open {target}" in self.legal else f"go to {target}"
