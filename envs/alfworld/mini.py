"""ALFWorld-mini: generated, solvable games in the six families, any number by seed, no files needed.

A game is a pure function of (split, size, number). It is written as facts and played by the same engine as
the official games; :mod:`.pddl` can write it as a genuine ``game.tw-pddl``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from seedbench.envs.alfworld import rooms
from seedbench.envs.alfworld.game import FAMILIES, KIND_OF_FAMILY, Description, Fact, Goal, Kind
from seedbench.envs.alfworld.rooms import Layout

#: Change this when the same number would give another game: it is part of every fingerprint.
GENERATOR = "mini-1"
SPLITS: Mapping[str, int] = {"mini-train": 4000, "mini-seen": 140, "mini-unseen": 134}


@dataclass(frozen=True, slots=True)
class Size:
    """``factor`` multiplies receptacles that come in rows; ``objects`` is the range of their number."""

    factor: Mapping[str, int]
    objects: tuple[int, int]
    shared_places: float  # share of drawers and cabinets that share the place of the one before


SIZES: Mapping[str, Size] = {
    "small": Size({}, (8, 13), 0.0),
    "medium": Size({"Cabinet": 2, "Drawer": 2, "Shelf": 2}, (14, 20), 0.1),
    "large": Size({"Cabinet": 4, "Drawer": 4, "Shelf": 3, "CounterTop": 2, "StoveBurner": 2}, (22, 34), 0.2),
}

_MOST_ALIKE = 3  # objects of one type, besides the goal's
_SENTENCES: Mapping[Kind, tuple[str, ...]] = {
    "place": ("put a {o} in {r}.", "put some {o} on {r}."),
    "look": ("look at {o} under the {r}.", "examine the {o} with the {r}."),
    "clean": ("put a clean {o} in {r}.", "clean some {o} and put it in {r}."),
    "heat": ("put a hot {o} in {r}.", "heat some {o} and put it in {r}."),
    "cool": ("put a cool {o} in {r}.", "cool some {o} and put it in {r}."),
    "two": ("put two {o} in {r}.", "find two {o} and put them in {r}."),
}


def family_of(number: int) -> str:
    """Families take turns, so that every run of six consecutive tasks holds each of them once."""
    return FAMILIES[number % len(FAMILIES)]


def generate(split: str, size: str, number: int) -> Description:
    """The game ``number`` of a split. The same arguments give the same game on every machine."""
    rng = random.Random(f"{GENERATOR}/{split}/{size}/{number}")
    kind = KIND_OF_FAMILY[family_of(number)]
    layouts = rooms.HELD_OUT_LAYOUTS if split == "mini-unseen" else rooms.TRAIN_LAYOUTS
    room = rng.choice(rooms.ROOMS_FOR[kind])
    layout = rng.choice([x for x in layouts if x.kind == room and _options(x, kind)])
    return _Builder(rng, layout, kind, SIZES[size]).build()


def _options(layout: Layout, kind: Kind) -> list[tuple[str, str]]:
    """``(object type, receptacle type)`` pairs of goals that can be set in a room; lamp type for ``look``."""
    present = layout.receptacles
    spawn = rooms.SPAWN[layout.kind]
    if kind == "look":
        return [(o, rooms.LAMP) for o in spawn if any(r in present for r in rooms.LAMP_STANDS)]
    works_on, device = rooms.TRANSFORMS.get(kind, (frozenset(spawn), ""))
    options = []
    for o, where in spawn.items():
        found = [r for r in where.split() if r in present]
        if o in works_on and (not device or device in present) and len(found) > 1:
            options += [(o, r) for r in found if r != device]
    return options


class _Builder:
    """Places receptacles and objects of one game and writes the facts."""

    def __init__(self, rng: random.Random, layout: Layout, kind: Kind, size: Size) -> None:
        self.rng, self.layout, self.kind, self.size = rng, layout, kind, size
        self.spawn = {o: where.split() for o, where in rooms.SPAWN[layout.kind].items()}
        self.receptacles = [
            (_identifier(r, i), r)
            for r, n in layout.receptacles.items()
            for i in range(n * size.factor.get(r, 1))
        ]
        self.object_type, self.goal_type = rng.choice(_options(layout, kind))
        self.placed: list[tuple[str, int]] = []  # (object type, receptacle index)

    def build(self) -> Description:
        self._place_goal_objects()
        self._place_others()
        sentence = self.rng.choice(_SENTENCES[self.kind])
        goal = Goal(self.kind, self.object_type.lower(), self.goal_type.lower())
        task = sentence.format(o=goal.object_type, r=goal.place_type)
        return Description(tuple(self._facts()), goal, task)

    def _candidates(self, object_type: str) -> list[int]:
        """Receptacles where an object may lie; the goal's objects never start in the goal's receptacle."""
        forbidden = self.goal_type if object_type == self.object_type else ""
        return [
            i for i, (_, r) in enumerate(self.receptacles) if r in self.spawn[object_type] and r != forbidden
        ]

    def _place_goal_objects(self) -> None:
        number = 2 if self.kind == "two" else 1
        number += self.rng.random() < 0.2
        for _ in range(number):
            self.placed.append((self.object_type, self.rng.choice(self._candidates(self.object_type))))
        if self.kind == "look":
            stands = [i for i, (_, r) in enumerate(self.receptacles) if r in rooms.LAMP_STANDS]
            self.placed.append((rooms.LAMP, self.rng.choice(stands)))

    def _place_others(self) -> None:
        others = [o for o in self.spawn if o != self.object_type and self._candidates(o)]
        instances = {o: 0 for o in others}
        most = len(self.placed) + _MOST_ALIKE * len(others)
        wanted = min(most, self.rng.randint(*self.size.objects))
        while len(self.placed) < wanted:
            o = self.rng.choice(others)
            if instances[o] < _MOST_ALIKE:
                instances[o] += 1
                self.placed.append((o, self.rng.choice(self._candidates(o))))

    def _places(self) -> list[int]:
        """Place number of each receptacle; 0 is where the agent starts."""
        places, number = [], 0
        for i, (_, r) in enumerate(self.receptacles):
            row = i > 0 and r in ("Drawer", "Cabinet") and self.receptacles[i - 1][1] == r
            if not (row and self.rng.random() < self.size.shared_places):
                number += 1
            places.append(number)
        return places

    def _facts(self) -> list[Fact]:
        places = [f"loc_bar_{p:02d}" for p in self._places()]
        facts: list[Fact] = [("atlocation", ("agent1", "loc_bar_00"))]
        for (name, r), place in zip(self.receptacles, places, strict=True):
            facts += [("receptacletype", (name, f"{r.lower()}type")), ("receptacleatlocation", (name, place))]
            if r in rooms.OPENABLE:
                facts.append(("openable", (name,)))
        present = {r for _, r in self.receptacles}
        types = {o for o, _ in self.placed}
        for o in sorted(types - {rooms.LAMP}):
            facts += [
                ("cancontain", (f"{r.lower()}type", f"{o.lower()}type"))
                for r in self.spawn[o]
                if r in present
            ]
        count: dict[str, int] = {}
        for o, i in self.placed:
            count[o] = count.get(o, 0) + 1
            name = f"{o.lower()}_bar_{count[o]:02d}"
            facts += [
                ("objecttype", (name, f"{o.lower()}type")),
                ("inreceptacle", (name, self.receptacles[i][0])),
                ("objectatlocation", (name, places[i])),
            ]
            facts += [(p, (name,)) for p in _properties(o)]
        return facts


def _identifier(receptacle_type: str, number: int) -> str:
    """PDDL identifier; ALFWorld names a basin after its fixture: ``sink_bar_..._bar_sinkbasin``."""
    low = receptacle_type.lower()
    if low.endswith("basin"):
        return f"{low.removesuffix('basin')}_bar_{number:02d}_bar_{low}"
    return f"{low}_bar_{number:02d}"


def _properties(object_type: str) -> list[str]:
    if object_type == rooms.LAMP:
        return ["toggleable"]
    table = {
        "cleanable": rooms.CLEANABLE,
        "heatable": rooms.HEATABLE,
        "coolable": rooms.COOLABLE,
        "sliceable": rooms.SLICEABLE,
        "isreceptacleobject": rooms.CONTAINERS,
    }
    return ["pickupable", *(p for p, members in table.items() if object_type in members)]
