"""The mutable half of a game: one running episode, text and admissible commands as TextWorld gives them.

String-identical to TextWorld 1.7.0 with ALFWorld's grammar, in both text versions. Its oddities are kept:

* ``look`` in the middle of the room sees nothing; the opening text lists the receptacles.
* An object can be examined only while held (a stray comma in ``alfred.pddl`` disables the other case).
* ``go to`` a receptacle that shares the present location is not admissible.
* ``use`` always turns on; slicing works on things inside closed receptacles; articles are always "a".
* Heating, cooling and cleaning do not need an open door.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seedbench.envs.alfworld.game import Game

NOTHING = "Nothing happens."
WELCOME = "-= Welcome to TextWorld, ALFRED! =-"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a text version words things. ``put`` and ``put_done`` are formats of object and receptacle."""

    version: str
    put: str
    put_done: str
    arrive_at_receptacle: bool  # "You arrive at cabinet 1." instead of "You arrive at loc 12."
    has_help: bool


#: 2.1.1: alfworld up to 0.3.5. 2.1.2: alfworld 0.4, made from 2.1.1 by its ``patch_tw-pddl.py``.
DIALECTS: dict[str, Dialect] = {
    "2.1.1": Dialect("2.1.1", "put {} in/on {}", "You put the {} in/on the {}.", False, False),
    "2.1.2": Dialect("2.1.2", "move {} to {}", "You move the {} to the {}.", True, True),
}

_HELP_ROWS = (
    ("look", "look around your current location"),
    ("inventory", "check your current inventory"),
    ("go to (receptacle)", "move to a receptacle"),
    ("open (receptacle)", "open a receptacle"),
    ("close (receptacle)", "close a receptacle"),
    ("take (object) from (receptacle)", "take an object from a receptacle"),
    ("move (object) to (receptacle)", "place an object in or on a receptacle"),
    ("examine (something)", "examine a receptacle or an object"),
    ("use (object)", "use an object"),
    ("heat (object) with (receptacle)", "heat an object using a receptacle"),
    ("clean (object) with (receptacle)", "clean an object using a receptacle"),
    ("cool (object) with (receptacle)", "cool an object using a receptacle"),
    ("slice (object) with (object)", "slice an object using a sharp object"),
)


def _help_text() -> str:
    # The column is 34 wide; the renamed "move" row was left unpadded by ALFWorld's patch.
    rows = (
        f"  {left + ':' + '  ' if left.startswith('move') else (left + ':').ljust(34)}{right}\n"
        for left, right in _HELP_ROWS
    )
    return "Available commands:\n" + "".join(rows)


HELP = _help_text()


def listing(items: list[str]) -> str:
    """TextWorld's enumeration: ``nothing`` | ``a`` | ``a, and b`` | ``a, b, and c``."""
    if not items:
        return "nothing"
    if len(items) == 1:
        return items[0]
    return ", ".join(items[:-1]) + ", and " + items[-1]


_Handler = tuple[Callable[..., str], tuple[int, ...]]


class World:
    """One episode of one game.

    ``commands`` is the sorted tuple of admissible commands, ``won`` the game's own condition.
    """

    def __init__(self, game: Game, dialect: Dialect) -> None:
        self.game, self.dialect = game, dialect
        self._travel = [(f"go to {name}", r) for r, name in enumerate(game.receptacles)]
        self._destination = dict(self._travel)
        self._travel.sort()
        self._travel_from: dict[int, list[str]] = {}
        self.reset()

    def reset(self) -> str:
        """Back to the first state. Returns the opening text, which ends with the task sentence."""
        game = self.game
        self.place = game.start
        self.held: int | None = None
        self.contents = [set(s) for s in game.contents]
        self.lying_at = [set(s) for s in game.lying_at]
        self.taken_from: set[tuple[int, int]] = set()  # (object, receptacle) TextWorld knows to be false now
        self.opened, self.toggled, self.sliced = set(game.opened), set(game.toggled), set(game.sliced)
        self.clean, self.hot, self.cool = set(game.clean), set(game.hot), set(game.cool)
        self._changed()
        if game.receptacles_at[self.place]:
            seen = self._look()
        else:
            everything = listing([f"a {name}" for name in game.receptacles])
            seen = f"You are in the middle of a room. Looking quickly around you, you see {everything}."
        return f"{WELCOME}\n\n{seen}\n\nYour task is to: {game.task}"

    def step(self, command: str) -> str:
        """Execute a command. One that is not admissible changes nothing and says "Nothing happens."."""
        command = command.strip()
        receptacle = self._destination.get(command)
        if receptacle is not None and self.game.place_of[receptacle] != self.place:
            return self._go(receptacle)
        handler = self._local.get(command)
        if handler is None:
            return NOTHING
        return handler[0](*handler[1])

    @property
    def commands(self) -> tuple[str, ...]:
        if self._commands is None:
            travel = self._travel_from.get(self.place)
            if travel is None:
                place_of = self.game.place_of
                travel = [c for c, r in self._travel if place_of[r] != self.place]
                self._travel_from[self.place] = travel
            self._commands = tuple(sorted([*travel, *self._local]))
        return self._commands

    def _changed(self) -> None:
        self._commands: tuple[str, ...] | None = None
        self._local = self._local_commands()
        self.won = self._goal_holds()

    def _local_commands(self) -> dict[str, _Handler]:
        """Every admissible command but ``go to``."""
        game, held = self.game, self.held
        local: dict[str, _Handler] = {"inventory": (self._inventory, ()), "look": (self._look, ())}
        if self.dialect.has_help:
            local["help"] = (self._help, ())
        if held is not None:
            local[f"examine {game.objects[held]}"] = (self._examine_object, (held,))
        for r in game.receptacles_at[self.place]:
            self._receptacle_commands(local, r)
        if held in game.knives:
            for o in self.lying_at[self.place] & game.sliceable:
                local[f"slice {game.objects[o]} with {game.objects[held]}"] = (self._slice, (o, held))
        return local

    def _receptacle_commands(self, local: dict[str, _Handler], r: int) -> None:
        game, held, name = self.game, self.held, self.game.receptacles[r]
        local[f"examine {name}"] = (self._examine_receptacle, (r,))
        reachable = True
        if r in game.openable:
            reachable = r in self.opened
            local[f"close {name}" if reachable else f"open {name}"] = (
                self._close if reachable else self._open,
                (r,),
            )
        for o in self.contents[r]:
            if reachable and held is None and o in game.pickupable:
                local[f"take {game.objects[o]} from {name}"] = (self._take, (o, r))
            if o in game.toggleable:
                local[f"use {game.objects[o]}"] = (self._use, (o,))
        if held is None:
            return
        thing = game.objects[held]
        if reachable and held in game.accepts[r]:
            local[self.dialect.put.format(thing, name)] = (self._put, (held, r))
        if r in game.sinks and held in game.cleanable:
            local[f"clean {thing} with {name}"] = (self._clean, (held, r))
        if r in game.microwaves and held in game.heatable:
            local[f"heat {thing} with {name}"] = (self._heat, (held, r))
        if r in game.fridges and held in game.coolable:
            local[f"cool {thing} with {name}"] = (self._cool, (held, r))

    def _goal_holds(self) -> bool:
        game, kind = self.game, self.game.goal.kind
        if kind == "look":
            if self.held not in game.goal_objects:
                return False
            lit = game.goal_lamps & self.toggled
            return any(lit & self.contents[r] for r in game.receptacles_at[self.place])
        good = game.goal_objects
        if kind == "clean":
            good = good & self.clean
        elif kind == "heat":
            good = good & self.hot
        elif kind == "cool":
            good = good & self.cool
        need = 2 if kind == "two" else 1
        return any(len(good & self.contents[r]) >= need for r in game.goal_receptacles)

    # --- actions that change the state ---

    def _go(self, r: int) -> str:
        self.place = self.game.place_of[r]
        self._changed()
        at = self.game.receptacles[r] if self.dialect.arrive_at_receptacle else self.game.places[self.place]
        return f"You arrive at {at}. {self._examine_receptacle(r)}"

    def _open(self, r: int) -> str:
        self.opened.add(r)
        self._changed()
        return f"You open the {self.game.receptacles[r]}. {self._examine_receptacle(r)}"

    def _close(self, r: int) -> str:
        self.opened.discard(r)
        self._changed()
        return f"You close the {self.game.receptacles[r]}."

    def _take(self, o: int, r: int) -> str:
        self.contents[r].discard(o)
        self.lying_at[self.place].discard(o)
        self.taken_from.add((o, r))
        self.held = o
        self._changed()
        return f"You pick up the {self.game.objects[o]} from the {self.game.receptacles[r]}."

    def _put(self, o: int, r: int) -> str:
        self.contents[r].add(o)
        self.lying_at[self.place].add(o)
        self.taken_from.discard((o, r))
        self.held = None
        self._changed()
        return self.dialect.put_done.format(self.game.objects[o], self.game.receptacles[r])

    def _clean(self, o: int, r: int) -> str:
        self.clean.add(o)
        self._changed()
        return f"You clean the {self.game.objects[o]} using the {self.game.receptacles[r]}."

    def _heat(self, o: int, r: int) -> str:
        self.hot.add(o)
        self.cool.discard(o)
        self._changed()
        return f"You heat the {self.game.objects[o]} using the {self.game.receptacles[r]}."

    def _cool(self, o: int, r: int) -> str:
        self.cool.add(o)
        self.hot.discard(o)
        self._changed()
        return f"You cool the {self.game.objects[o]} using the {self.game.receptacles[r]}."

    def _use(self, o: int) -> str:
        self.toggled.add(o)
        self._changed()
        return f"You turn on the {self.game.objects[o]}."

    def _slice(self, o: int, knife: int) -> str:
        self.sliced.add(o)
        self._changed()
        return f"You sliced the {self.game.objects[o]} with the {self.game.objects[knife]}."

    # --- actions that only tell ---

    def _help(self) -> str:
        return HELP

    def _inventory(self) -> str:
        if self.held is None:
            return "You are not carrying anything."
        return f"You are carrying: a {self.game.objects[self.held]}."

    def _look(self) -> str:
        game = self.game
        here = game.receptacles_at[self.place]
        if not here:
            return "You are in the middle of a room. Looking quickly around you, you see nothing."
        beside = [
            f"a {game.objects[o]}"
            for o in (sorted(self.lying_at[self.place]) if self.taken_from else ())
            for r in here
            if (o, r) in self.taken_from
        ]
        facing = listing([game.receptacles[r] for r in here])
        return f"You are facing the {facing}. Next to it, you see {listing(beside)}."

    def _examine_receptacle(self, r: int) -> str:
        game, name = self.game, self.game.receptacles[r]
        if r in game.openable and r not in self.opened:
            return f"The {name} is closed."
        seen = listing([f"a {game.objects[o]}" for o in sorted(self.contents[r])])
        if r in game.openable:
            return f"The {name} is open. In it, you see {seen}."
        return f"On the {name}, you see {seen}."

    def _examine_object(self, o: int) -> str:
        game, name = self.game, self.game.objects[o]
        if o in game.containers:
            inner = listing([f"a {game.objects[i]}" for i in game.inside.get(o, ())])
            return f"This is a normal {name}. In it, you see {inner}."
        words = []
        if o in self.hot:
            words.append("hot")
        elif o in self.cool:
            words.append("cool")
        if o in self.clean:
            words.append("clean")
        if words == ["cool"] and o not in self.sliced:
            words = ["cold"]
        state = " and ".join(words)
        if o in self.sliced and (words or o in game.sliceable):
            return f"This is a {state + ' ' if state else ''}sliced {name}."
        if words:
            return f"This is a {state} {name}."
        if o in game.toggleable and o in self.toggled:
            return f"This {name} is on."
        return f"There's nothing special about {name}."
