"""What ordinary history says: the task, the receptacles, what was seen where, what is held.

Reads the text alone (both text versions), never the game. Used by the demonstrator and the annotator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from seedbench.envs.alfworld.game import Goal

from seedbench.types import History

_TASKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?:look at|examine) (?:the |a |some )?(\w+) (?:under|with) the (\w+)"), "look"),
    (re.compile(r"put two (\w+) (?:in|on) (\w+)"), "two"),
    (re.compile(r"find two (\w+) and put them (?:in|on) (\w+)"), "two"),
    (re.compile(r"put a clean (\w+) (?:in|on) (\w+)"), "clean"),
    (re.compile(r"clean some (\w+) and put it (?:in|on) (\w+)"), "clean"),
    (re.compile(r"put a hot (\w+) (?:in|on) (\w+)"), "heat"),
    (re.compile(r"heat some (\w+) and put it (?:in|on) (\w+)"), "heat"),
    (re.compile(r"put a cool (\w+) (?:in|on) (\w+)"), "cool"),
    (re.compile(r"cool some (\w+) and put it (?:in|on) (\w+)"), "cool"),
    (re.compile(r"put (?:a|some) (\w+) (?:in|on) (\w+)"), "place"),
)


def read_task(instruction: str) -> Goal | None:
    """The goal a task sentence states, by ALFWorld's fourteen sentence forms; ``None`` for other text."""
    for pattern, kind in _TASKS:
        found = pattern.search(instruction)
        if found:
            return Goal(kind, found.group(1), found.group(2))  # type: ignore[arg-type]
    return None


_ENTITY = r"[a-z]+ \d+"
_ARRIVE = re.compile(r"You arrive at ")
_SEEN = re.compile(rf"(?:On the ({_ENTITY})|The ({_ENTITY}) is open\. In it), you see ([^.]*)\.")
_CLOSED = re.compile(rf"The ({_ENTITY}) is closed\.")
_LISTED = re.compile(rf"\ba ({_ENTITY})")
_GO = re.compile(rf"go to ({_ENTITY})")
_TAKE = re.compile(rf"You pick up the ({_ENTITY}) from the ({_ENTITY})\.")
_PUT = re.compile(rf"You (?:put|move) the ({_ENTITY}) (?:in/on|to) the ({_ENTITY})\.")
_TREAT = re.compile(rf"You (clean|heat|cool) the ({_ENTITY}) using the ({_ENTITY})\.")
_USE = re.compile(rf"You turn on the ({_ENTITY})\.")


def type_of(entity: str) -> str:
    """``"apple 1"`` -> ``"apple"``."""
    return entity.rsplit(" ", 1)[0]


@dataclass(slots=True)
class Memory:
    """Beliefs after some turns. ``contents`` holds receptacles looked into, with what they hold now."""

    goal: Goal | None
    receptacles: list[str] = field(default_factory=list)
    at: str | None = None
    contents: dict[str, list[str]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    held: str | None = None
    state: dict[str, str] = field(default_factory=dict)  # object -> "clean" | "heat" | "cool", the last one
    used: set[str] = field(default_factory=set)  # lamps turned on
    lamp_at: dict[str, str] = field(default_factory=dict)
    first_seen: dict[str, str] = field(default_factory=dict)  # object -> receptacle
    found_empty: list[str] = field(default_factory=list)  # receptacles that held no goal object, in order
    puts: list[tuple[str, str]] = field(default_factory=list)  # (object, receptacle), in order
    treatments: list[tuple[str, str, str]] = field(default_factory=list)  # (verb, object, receptacle)

    @classmethod
    def of(cls, history: History) -> Memory:
        texts = [turn.observation.text for turn in history.past] + [history.observation.text]
        memory = cls(read_task(history.instruction), _LISTED.findall(texts[0].partition("Your task")[0]))
        for turn, after in zip(history.past, texts[1:], strict=True):
            memory.update(turn.action, after)
        return memory

    def update(self, action: str, text: str) -> None:
        """Take in the observation that followed an action."""
        if _ARRIVE.match(text) and (went := _GO.fullmatch(action.strip())):
            self.at = went.group(1)
        for found in _CLOSED.finditer(text):
            self.closed.add(found.group(1))
        for found in _SEEN.finditer(text):
            self._saw(found.group(1) or found.group(2), _LISTED.findall(found.group(3)))
        if found := _TAKE.match(text):
            self.held = found.group(1)
            self.first_seen.setdefault(*found.groups())
            self._remove(*found.groups())
        elif found := _PUT.match(text):
            self.held = None
            self.contents.setdefault(found.group(2), []).append(found.group(1))
            self.puts.append((found.group(1), found.group(2)))
        elif found := _TREAT.match(text):
            verb, thing, device = found.groups()
            self.state[thing] = verb
            self.treatments.append((verb, thing, device))
        elif found := _USE.match(text):
            self.used.add(found.group(1))
        if text.startswith("You close the "):
            self.closed.add(text.removeprefix("You close the ").removesuffix("."))

    def _saw(self, receptacle: str, things: list[str]) -> None:
        self.closed.discard(receptacle)
        if receptacle not in self.contents and not any(self._wanted(t) for t in things):
            self.found_empty.append(receptacle)
        self.contents[receptacle] = things
        for thing in things:
            self.first_seen.setdefault(thing, receptacle)

    def _remove(self, thing: str, receptacle: str) -> None:
        held_there = self.contents.get(receptacle, [])
        if thing in held_there:
            held_there.remove(thing)

    def _wanted(self, thing: str) -> bool:
        return self.goal is not None and type_of(thing) == self.goal.object_type

    def where(self, thing: str) -> str | None:
        """The receptacle a thing was last known to lie in."""
        return next((r for r, things in self.contents.items() if thing in things), None)

    def of_type(self, kind: str) -> list[str]:
        """Receptacles of a type, by number."""
        found = [r for r in self.receptacles if type_of(r) == kind]
        return sorted(found, key=lambda r: int(r.rsplit(" ", 1)[1]))
