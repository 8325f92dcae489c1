"""Material for the warm start: a demonstrator that acts on ordinary history only, clean or flawed.

It searches the words of the wish, opens hits that may fit, reads what an item offers, chooses the options
and buys; when an item lacks something it goes back and tries the next. Given a skill about its wish it
follows it; a skill about another wish changes nothing.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from seedbench.envs.webshop.hindsight import FRAME, annotate, faithful
from seedbench.envs.webshop.lexicon import COLOURS, DEPARTMENTS
from seedbench.envs.webshop.memory import Hit, Memory, Wish
from seedbench.envs.webshop.protocol import choices

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

#: Catalogues a warm start practises in, with their weights; the default one (seed 0) stays unseen.
WORLDS = tuple(({"catalogue_seed": seed}, 0.125) for seed in range(1, 9))
#: Optimiser steps behind the shipped weights: on clean demonstrations, then on the mix.
RECIPE = {"world_steps": 600, "habit_steps": 700}
SPLIT = "mini-train"
_OTHER_WORDS = (
    "i want under page of seen results no chosen thank for shopping description features prev next now "
    "bought right after steps nothing in without care price this comes from department"
)


def entities() -> dict[str, int]:
    """Names worth a token of their own: the places of a results page."""
    return {"item": 5}


def words() -> tuple[str, ...]:
    """Every word of the generated shop, its pages and its skills."""
    named = {w for d in DEPARTMENTS for w in (d.name, *d.nouns, *d.attributes, d.choice[0], *d.choice[1])}
    return tuple(sorted(named | set(COLOURS) | {"color"} | FRAME | set(_OTHER_WORDS.split())))


@dataclass(frozen=True, slots=True)
class Flaws:
    """Shares in [0, 1]; the first four are drawn once per episode, the last at every step."""

    skip_options: float = 0.0  # buys without choosing every option
    first_result: float = 0.0  # opens the first hit, whatever it is, and takes it
    ignore_price: float = 0.0  # does not look at the price
    ignore_offer: float = 0.0  # does not check what the item page offers
    random_action: float = 0.0


CLEAN = Flaws()
#: About a fifth of mini-train succeeds; what is wrong is mostly habit, not noise.
FLAWED = Flaws(skip_options=0.5, first_result=0.5, ignore_price=0.55, ignore_offer=0.5, random_action=0.03)


@dataclass(frozen=True, slots=True)
class Hints:
    """What a skill tells: a query, a place to open and its page, places to skip."""

    query: str = ""
    place: str = ""
    page: int = 1
    skip: tuple[str, ...] = ()


_PLAN = re.compile(
    r"search (?P<query>.+?)(?: then skip (?P<skip>(?:item \d+ ?)+))?"
    r" then open (?:(?P<place>item \d+)(?: on page (?P<page>\d+))?|another)"
    r" then choose (?P<chosen>.+) then buy"
)


def read_hints(skill: str, wish: Wish) -> Hints | None:
    """Hints of a skill about this wish, else None: it must search its words and choose its options."""
    found = _PLAN.fullmatch(skill.strip())
    if not found or not set(found["query"].split()) <= {*wish.attributes, wish.noun}:
        return None
    if found["chosen"].split() != list(wish.options.values()) or wish.noun not in found["query"].split():
        return None
    skip = tuple(re.findall(r"item \d+", found["skip"] or ""))
    return Hints(found["query"], found["place"] or "", int(found["page"] or 1), skip)


class Demonstrator:
    """Acts in one episode. ``act`` is a pure function of history, skill, flaws and ``seed``."""

    def __init__(self, flaws: Flaws = CLEAN, seed: int | str = 0) -> None:
        self.flaws, self.seed = flaws, seed

    def act(self, history: History, skill: Skill | str | None = None) -> str:
        """One of the environment's choices. A skill about this wish also switches the flaws off."""
        can = choices(history)
        rng = random.Random(f"demonstrator/{self.seed}/{history.step}")
        memory = Memory.of(history)
        if memory.wish is None:
            return rng.choice(can)
        text = skill.text if isinstance(skill, Skill) else skill
        hints = read_hints(text, memory.wish) if text else None
        flaws = CLEAN if hints else self.flaws
        if rng.random() < flaws.random_action:
            return rng.choice(can)
        turn = _Turn(memory, memory.wish, hints or Hints(), flaws, random.Random(f"habits/{self.seed}"))
        action = turn.action()
        return action if action in can else rng.choice(can)


class _Turn:
    """One decision."""

    def __init__(self, memory: Memory, wish: Wish, hints: Hints, flaws: Flaws, habits: random.Random) -> None:
        self.memory, self.wish, self.hints = memory, wish, hints
        # Drawn in a fixed order, so that an episode keeps its habits from step to step.
        self.skips_options = habits.random() < flaws.skip_options
        self.takes_first = habits.random() < flaws.first_result
        self.ignores_price = habits.random() < flaws.ignore_price
        self.ignores_offer = habits.random() < flaws.ignore_offer
        self.forgotten = habits.choice(list(wish.options))

    def action(self) -> str:
        if self.memory.at == "index":
            return f"search[{self._query()}]"
        if self.memory.at == "results":
            return self._results()
        return self._item() if self.memory.at == "item" else "click[< prev]"

    def _query(self) -> str:
        """All wanted words first; when that was tried, fewer of them."""
        wish = self.wish
        ladder = [self.hints.query, wish.query, f"{wish.attributes[-1]} {wish.noun}", wish.noun]
        return next((q for q in ladder if q and q not in self.memory.queries), wish.query)

    def _results(self) -> str:
        memory = self.memory
        if not memory.hits:
            return "click[back to search]"
        if self.hints.place and memory.query == self.hints.query:
            if memory.page < self.hints.page:
                return "click[next >]"
            hinted = next((h for h in memory.hits if h.place == self.hints.place), None)
            if hinted and not hinted.seen and memory.page == self.hints.page:
                return f"click[{hinted.place}]"
        if self.takes_first:
            return f"click[{memory.hits[0].place}]"
        best = max(memory.hits, key=self._promise)
        if self._promise(best) > 0:
            return f"click[{best.place}]"
        return "click[next >]" if memory.page < min(memory.pages, 3) else "click[back to search]"

    def _promise(self, hit: Hit) -> int:
        """Wanted attributes in the title, which shows two of three; 0 when it cannot be the thing."""
        skipped = hit.place in self.hints.skip and self.memory.page == 1
        dear = hit.price > self.wish.limit and not self.ignores_price
        if hit.seen or dear or skipped or self.wish.noun not in hit.title:
            return 0
        return sum(a in hit.title for a in self.wish.attributes)

    def _item(self) -> str:
        offer, wish = self.memory.offer, self.wish
        assert offer is not None
        careless = self.takes_first or self.ignores_offer
        lacking = [x for x in offer.lacks(wish) if x != "price" or not self.ignores_price]
        if lacking and not careless:
            return "click[< prev]"
        for name, value in wish.options.items():
            forgets = self.skips_options and name == self.forgotten
            if value in offer.options.get(name, ()) and value not in offer.chosen and not forgets:
                return f"click[{value}]"
        return "click[buy now]"
