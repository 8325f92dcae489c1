"""The immutable half of a game: compiled once, shared by every episode that plays it.

A game comes from PDDL facts (official files, :func:`parse_problem`) or from the generator (:mod:`.mini`).
Things are numbered in the order of their PDDL identifiers, because TextWorld lists things in that order.
Source of the semantics: ALFWorld's ``alfred.pddl`` and ``alfred.twl2``, checked against TextWorld 1.7.0.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from seedbench.errors import DataCorrupt

#: The six task families in the order of the published tables; also ALFWorld's ``task_type`` names.
FAMILIES: tuple[str, ...] = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
Kind = Literal["place", "look", "clean", "heat", "cool", "two"]
KINDS: tuple[Kind, ...] = ("place", "look", "clean", "heat", "cool", "two")
#: family name -> kind of goal
KIND_OF_FAMILY: dict[str, Kind] = dict(zip(FAMILIES, KINDS, strict=True))

Fact = tuple[str, tuple[str, ...]]  # lower-case predicate, lower-case arguments


@dataclass(frozen=True, slots=True)
class Goal:
    """What must hold. For ``look`` the second type is the lamp's, else the receptacle's (``"apple"``)."""

    kind: Kind
    object_type: str
    place_type: str


@dataclass(frozen=True, slots=True)
class Description:
    """A game as facts: what the compiler reads and the generator writes."""

    facts: tuple[Fact, ...]
    goal: Goal
    task: str  # the sentence after "Your task is to: "


@dataclass(frozen=True, slots=True)
class Game:
    """Compiled game. Objects, receptacles and places are small integers; sets hold such integers.

    A *place* is a PDDL location; several receptacles may share one.
    """

    task: str
    goal: Goal
    objects: tuple[str, ...]  # names, "apple 1"
    object_types: tuple[str, ...]
    receptacles: tuple[str, ...]
    receptacle_types: tuple[str, ...]
    places: tuple[str, ...]  # names, "loc 12": text version 2.1.1 shows them
    place_of: tuple[int, ...]  # receptacle -> place
    receptacles_at: tuple[tuple[int, ...], ...]  # place -> receptacles
    accepts: tuple[frozenset[int], ...]  # receptacle -> objects it may hold
    start: int  # place
    # constant properties
    openable: frozenset[int]  # receptacles
    pickupable: frozenset[int]  # objects, as all below
    cleanable: frozenset[int]
    heatable: frozenset[int]
    coolable: frozenset[int]
    toggleable: frozenset[int]
    sliceable: frozenset[int]
    containers: frozenset[int]
    knives: frozenset[int]
    inside: dict[int, tuple[int, ...]]  # container object -> objects in it
    sinks: frozenset[int]  # receptacles, as the next two
    microwaves: frozenset[int]
    fridges: frozenset[int]
    goal_objects: frozenset[int]
    goal_receptacles: tuple[int, ...]  # empty for look
    goal_lamps: frozenset[int]  # empty except for look
    # initial state
    contents: tuple[frozenset[int], ...]  # receptacle -> objects
    lying_at: tuple[frozenset[int], ...]  # place -> objects
    opened: frozenset[int]
    clean: frozenset[int]
    hot: frozenset[int]
    cool: frozenset[int]
    toggled: frozenset[int]
    sliced: frozenset[int]


_FACT = re.compile(r"\(([a-z]+) ([^()]+)\)")
_OBJECT_TYPE = re.compile(r"\(objecttype \?\w+ (\w+)type\)")
_RECEPTACLE_TYPE = re.compile(r"\(receptacletype \?\w+ (\w+)type\)")
_TASK = re.compile(r'"rhs": "Your task is to: ([^"]*)"')
_FLAG_OF_KIND = {"clean": "isclean", "heat": "ishot", "cool": "iscool"}


def parse_problem(problem: str, task: str, where: str = "game") -> Description:
    """Read a PDDL problem as ALFWorld writes it. Raises :class:`DataCorrupt` naming ``where``."""
    text = problem.lower()
    init, goal = text.find("(:init"), text.find("(:goal")
    if init < 0 or goal < init:
        raise DataCorrupt(
            f"{where}: the PDDL problem has no (:init ...) or (:goal ...) part. Download it again."
        )
    facts = tuple((m.group(1), tuple(m.group(2).split())) for m in _FACT.finditer(text, init, goal))
    return Description(facts, _parse_goal(text[goal:], where), task)


def task_sentence(grammar: str, where: str = "game") -> str:
    """The task sentence inside a game's text grammar."""
    found = _TASK.search(grammar)
    if not found:
        raise DataCorrupt(f"{where}: the grammar holds no task sentence. Download the file again.")
    return found.group(1)


def _parse_goal(text: str, where: str) -> Goal:
    objects = _OBJECT_TYPE.findall(text)
    receptacles = _RECEPTACLE_TYPE.findall(text)
    if "istoggled" in text and len(objects) == 2:
        return Goal("look", objects[1], objects[0])
    if objects and receptacles:
        if "?o2" in text:
            return Goal("two", objects[0], receptacles[0])
        for kind, flag in _FLAG_OF_KIND.items():
            if flag in text:
                return Goal(kind, objects[0], receptacles[0])
        return Goal("place", objects[0], receptacles[0])
    raise DataCorrupt(f"{where}: the goal has none of the six known shapes.")


def _names(identifiers: Iterable[str]) -> dict[str, str]:
    """TextWorld's demangled names: ``drawer_bar_...`` -> ``drawer 3``, counted down in identifier order."""
    bases = {}
    for identifier in sorted(identifiers):
        head, bar, _ = identifier.partition("_bar_")
        bases[identifier] = (head + ("basin" if "basin" in identifier else "")) if bar else ""
    left = Counter(bases.values())
    names = {}
    for identifier, base in bases.items():
        if base:
            names[identifier] = f"{base} {left[base]}"
            left[base] -= 1
        else:
            names[identifier] = identifier + " "
    return names


class _Table:
    """Facts by predicate, and the numbering of things."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.by_predicate: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for predicate, arguments in facts:
            self.by_predicate[predicate].append(arguments)
        self.names = _names({a for _, arguments in facts for a in arguments})
        rows = self.by_predicate
        self.receptacles = sorted({r for r, _ in rows["receptacleatlocation"]})
        self.objects = sorted(
            {o for o, _ in rows["objecttype"]}
            | {o for o, _ in rows["inreceptacle"]}
            | {o for o, _ in rows["objectatlocation"]}
        )
        self.places = sorted(
            {p for _, p in rows["receptacleatlocation"]}
            | {p for _, p in rows["objectatlocation"]}
            | {p for _, p in rows["atlocation"]}
        )
        self.receptacle = {r: i for i, r in enumerate(self.receptacles)}
        self.object = {o: i for i, o in enumerate(self.objects)}
        self.place = {p: i for i, p in enumerate(self.places)}

    def flag(self, predicate: str) -> frozenset[int]:
        """Numbers of the things with a one-place fact."""
        number = self.receptacle if predicate in ("openable", "opened") else self.object
        return frozenset(number[a[0]] for a in self.by_predicate[predicate] if a[0] in number)

    def groups(
        self, predicate: str, of: dict[str, int], within: dict[str, int]
    ) -> tuple[frozenset[int], ...]:
        """``predicate(x, y)`` as one set of ``x`` per ``y``."""
        out: list[set[int]] = [set() for _ in within]
        for x, y in self.by_predicate[predicate]:
            if x in of and y in within:
                out[within[y]].add(of[x])
        return tuple(frozenset(s) for s in out)


def compile_game(description: Description, where: str = "game") -> Game:
    """Compile facts. Raises :class:`DataCorrupt` when a fact needed to play is absent."""
    table = _Table(description.facts)
    rows, goal = table.by_predicate, description.goal
    if not rows["atlocation"] or not table.receptacles:
        raise DataCorrupt(f"{where}: no start location or no receptacles among the facts.")
    object_types = dict(reversed(rows["objecttype"]))
    receptacle_types = dict(reversed(rows["receptacletype"]))
    holds: dict[str, set[str]] = defaultdict(set)
    for receptacle_type, object_type in rows["cancontain"]:
        holds[receptacle_type].add(object_type)
    of_type: dict[str, set[int]] = defaultdict(set)
    for o, t in rows["objecttype"]:
        of_type[t].add(table.object[o])
    in_type: dict[str, set[int]] = defaultdict(set)
    for r, t in rows["receptacletype"]:
        if r in table.receptacle:
            in_type[t].add(table.receptacle[r])
    accepted = {t: frozenset().union(*(of_type[o] for o in inside)) for t, inside in holds.items()}
    place_of = [0] * len(table.receptacles)
    for r, p in rows["receptacleatlocation"]:
        place_of[table.receptacle[r]] = table.place[p]
    receptacles_at = table.groups("receptacleatlocation", table.receptacle, table.place)
    inside_sets = table.groups("inreceptacleobject", table.object, table.object)
    flags = {
        name: table.flag(name)
        for name in ("pickupable", "cleanable", "heatable", "coolable", "toggleable", "sliceable")
    }
    wanted = frozenset(of_type[goal.object_type + "type"])
    capability = {"clean": "cleanable", "heat": "heatable", "cool": "coolable"}.get(goal.kind)
    lamps = (
        frozenset(of_type[goal.place_type + "type"]) & flags["toggleable"]
        if goal.kind == "look"
        else frozenset()
    )
    return Game(
        task=description.task,
        goal=goal,
        objects=tuple(table.names[o] for o in table.objects),
        object_types=tuple(object_types.get(o, "").removesuffix("type") for o in table.objects),
        receptacles=tuple(table.names[r] for r in table.receptacles),
        receptacle_types=tuple(receptacle_types.get(r, "").removesuffix("type") for r in table.receptacles),
        places=tuple(table.names[p] for p in table.places),
        place_of=tuple(place_of),
        receptacles_at=tuple(tuple(sorted(s)) for s in receptacles_at),
        accepts=tuple(accepted.get(receptacle_types.get(r, ""), frozenset()) for r in table.receptacles),
        start=table.place[rows["atlocation"][0][1]],
        openable=table.flag("openable"),
        containers=table.flag("isreceptacleobject"),
        knives=frozenset(of_type["knifetype"] | of_type["butterknifetype"]),
        inside={o: tuple(sorted(s)) for o, s in enumerate(inside_sets) if s},
        sinks=frozenset(in_type["sinkbasintype"] | in_type["sinktype"]),
        microwaves=frozenset(in_type["microwavetype"]),
        fridges=frozenset(in_type["fridgetype"]),
        goal_objects=wanted & flags[capability] if capability else wanted,
        goal_receptacles=() if goal.kind == "look" else tuple(sorted(in_type[goal.place_type + "type"])),
        goal_lamps=lamps,
        contents=table.groups("inreceptacle", table.object, table.receptacle),
        lying_at=table.groups("objectatlocation", table.object, table.place),
        opened=table.flag("opened"),
        clean=table.flag("isclean"),
        hot=table.flag("ishot"),
        cool=table.flag("iscool"),
        toggled=table.flag("istoggled"),
        sliced=table.flag("issliced"),
        **flags,
    )
