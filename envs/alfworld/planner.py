"""Oracle: a shortest plan with full knowledge, from any state of a game.

A plan fetches the objects the goal still needs, treats them, and puts them down. The number of ways to choose
object, device and target is small, so all are tried and the shortest command list wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from seedbench.envs.alfworld.engine import World

Plan = list[str]
_DEVICE_VERB = {"clean": "clean", "heat": "heat", "cool": "cool"}


def solve(world: World) -> Plan | None:
    """Shortest list of commands that wins from the present state; ``None`` if there is none.

    Ties are broken by the commands' text, so that the plan is the same in every process.
    """
    if world.won:
        return []
    plans = _look_plans(world) if world.game.goal.kind == "look" else _place_plans(world)
    return min(plans, key=lambda plan: (len(plan), plan), default=None)


class _Walk:
    """Writes commands while keeping track of place and open doors."""

    def __init__(self, world: World) -> None:
        self.world, self.place, self.opened = world, world.place, set(world.opened)
        self.plan: Plan = []

    def go(self, r: int) -> None:
        game = self.world.game
        if game.place_of[r] != self.place:
            self.plan.append(f"go to {game.receptacles[r]}")
            self.place = game.place_of[r]

    def reach_into(self, r: int) -> None:
        self.go(r)
        if r in self.world.game.openable and r not in self.opened:
            self.plan.append(f"open {self.world.game.receptacles[r]}")
            self.opened.add(r)

    def take(self, o: int, r: int) -> None:
        self.reach_into(r)
        self.plan.append(f"take {self.world.game.objects[o]} from {self.world.game.receptacles[r]}")

    def put(self, o: int, r: int) -> None:
        self.reach_into(r)
        game = self.world.game
        self.plan.append(self.world.dialect.put.format(game.objects[o], game.receptacles[r]))

    def treat(self, verb: str, o: int, device: int) -> None:
        self.go(device)
        game = self.world.game
        self.plan.append(f"{verb} {game.objects[o]} with {game.receptacles[device]}")


# A source is (object, receptacle it lies in); None as receptacle means it is in the hands.
_Source = tuple[int, int | None]


def _sources(world: World, wanted: frozenset[int]) -> list[_Source]:
    game = world.game
    lying = [
        (o, r)
        for r, inside in enumerate(world.contents)
        for o in sorted(inside & wanted)
        if o in game.pickupable
    ]
    return ([(world.held, None)] if world.held in wanted else []) + lying


def _starts(world: World, source: _Source) -> Iterator[_Walk]:
    """Walks that end with the source's object in the hands."""
    o, r = source
    if r is None:
        yield _Walk(world)
        return
    for drop in _drops(world, r):
        walk = _Walk(world)
        if drop is not None:
            walk.put(world.held, drop)
        walk.take(o, r)
        yield walk


def _drops(world: World, next_stop: int) -> list[int | None]:
    """Where to leave what the hands hold: here or at the next stop if possible, else anywhere."""
    if world.held is None:
        return [None]
    game = world.game
    able = [r for r in range(len(game.receptacles)) if world.held in game.accepts[r]]
    near = [r for r in able if game.place_of[r] in (world.place, game.place_of[next_stop])]
    return near or able


def _devices(world: World, o: int) -> list[int | None]:
    """Receptacles that give the object the state the goal wants; ``[None]`` if it has it."""
    game = world.game
    kind = game.goal.kind
    if kind not in _DEVICE_VERB:
        return [None]
    done = {"clean": world.clean, "heat": world.hot, "cool": world.cool}[kind]
    if o in done:
        return [None]
    return sorted({"clean": game.sinks, "heat": game.microwaves, "cool": game.fridges}[kind])


def _place_plans(world: World) -> Iterator[Plan]:
    game = world.game
    sources = _sources(world, game.goal_objects)
    for target in game.goal_receptacles:
        there = world.contents[target] & game.goal_objects
        if game.goal.kind == "two" and not there:
            yield from _two_plans(world, sources, target)
            continue
        for source in sources:
            o = source[0]
            if o not in game.accepts[target] or (game.goal.kind == "two" and o in there):
                continue
            for device in _devices(world, o):
                for walk in _starts(world, source):
                    if device is not None:
                        walk.treat(game.goal.kind, o, device)
                    walk.put(o, target)
                    yield walk.plan


def _two_plans(world: World, sources: list[_Source], target: int) -> Iterator[Plan]:
    accepted = [s for s in sources if s[0] in world.game.accepts[target]]
    for first, second in permutations(accepted, 2):
        if second[1] is None or first[0] == second[0]:
            continue
        for walk in _starts(world, first):
            walk.put(first[0], target)
            walk.take(*second)
            walk.put(second[0], target)
            yield walk.plan


def _look_plans(world: World) -> Iterator[Plan]:
    game = world.game
    lamps = [
        (lamp, r) for r, inside in enumerate(world.contents) for lamp in sorted(inside & game.goal_lamps)
    ]
    for source in _sources(world, game.goal_objects):
        for lamp, r in lamps:
            for walk in _starts(world, source):
                walk.go(r)
                if lamp not in world.toggled:
                    walk.plan.append(f"use {game.objects[lamp]}")
                yield walk.plan
