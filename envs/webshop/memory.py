"""What ordinary history says in the generated shop: the wish, the pages seen, what an item offers.

Reads the compact texts alone, never the shop. Used by the demonstrator and the annotator. Other texts (the
official shop) are not understood: ``Memory.wish`` is then None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from seedbench.types import History

_WISH = re.compile(r"i want a (.+) (\S+) , (\S+) (\S+) , (\S+) (\S+) , under \$ (\d+)")
_PAGE = re.compile(r"page (\d+) of (\d+)")
_HIT = re.compile(r"(item \d+)( seen)? (.+) \$ (\d+)")
_ITEM = re.compile(r"(.+) \$ (\d+)((?: \S+)*)")
_ACTION = re.compile(r"(search|click)\[(.*)\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Wish:
    """What the instruction asks for. ``limit`` in dollars."""

    attributes: tuple[str, ...]
    noun: str
    options: Mapping[str, str]
    limit: int

    @property
    def query(self) -> str:
        return " ".join([*self.attributes, self.noun])


@dataclass(frozen=True, slots=True)
class Hit:
    """A line of a results page; ``place`` is ``item 1`` ..."""

    place: str
    seen: bool
    title: tuple[str, ...]
    price: int


@dataclass(frozen=True, slots=True)
class Offer:
    """An item page: all attributes it shows, its price, option name -> values."""

    words: frozenset[str]
    price: int
    options: Mapping[str, tuple[str, ...]]
    chosen: frozenset[str]

    def lacks(self, wish: Wish) -> list[str]:
        """Wanted words and options that this item does not have; ``price`` when it is too dear."""
        out = [w for w in (*wish.attributes, wish.noun) if w not in self.words]
        out += [v for name, v in wish.options.items() if v not in self.options.get(name, ())]
        return out + (["price"] if self.price > wish.limit else [])


@dataclass(frozen=True, slots=True)
class Look:
    """One item that was opened: after which query, on which page, at which place, and what it offered."""

    query: str
    page: int
    place: str
    offer: Offer


@dataclass(slots=True)
class Memory:
    """Beliefs after some turns. ``at``: index, results, item, sub, done or other."""

    wish: Wish | None
    at: str = "other"
    query: str = ""
    page: int = 0
    pages: int = 0
    hits: tuple[Hit, ...] = ()
    offer: Offer | None = None
    place: str = ""
    queries: list[str] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    bought: Offer | None = None

    @classmethod
    def of(cls, history: History) -> Memory:
        memory = cls(read_wish(history.instruction))
        texts = [t.observation.text for t in history.past] + [history.observation.text]
        memory._see(texts[0])
        for turn, text in zip(history.past, texts[1:], strict=True):
            memory._do(turn.action, text)
        return memory

    def _do(self, action: str, text: str) -> None:
        before, offer = self.at, self.offer
        kind, argument = read_action(action)
        if kind == "search" and text.startswith(("page ", "no results")):
            self.query = argument
            self.queries.append(argument)
        if kind == "click" and before == "results" and argument.startswith("item "):
            self.place = argument
        self._see(text)
        if self.at == "item" and self.offer and before == "results":
            self.looks.append(Look(self.query, self.page, self.place, self.offer))
        if self.at == "done":
            self.bought = offer

    def _see(self, text: str) -> None:
        first, *rest = text.split(" . ")
        page, item = _PAGE.fullmatch(first), _ITEM.fullmatch(first)
        if text == "search page":
            self.at, self.offer = "index", None
        elif page or text == "no results":
            self.at, self.offer = "results", None
            self.page, self.pages = (int(page[1]), int(page[2])) if page else (1, 0)
            found = (_HIT.fullmatch(line) for line in rest)
            self.hits = tuple(Hit(m[1], bool(m[2]), tuple(m[3].split()), int(m[4])) for m in found if m)
        elif first in ("description page", "features page"):
            self.at = "sub"
        elif item:
            self.at, self.offer = "item", _offer(item, rest)
        elif text == "thank you for shopping":
            self.at = "done"


def read_wish(instruction: str) -> Wish | None:
    found = _WISH.fullmatch(instruction)
    if not found:
        return None
    options = {found[3]: found[4], found[5]: found[6]}
    return Wish(tuple(found[1].split()), found[2], options, int(found[7]))


def read_action(action: str) -> tuple[str, str]:
    """``("search" | "click" | "", argument)``."""
    found = _ACTION.fullmatch(action.strip())
    return (found[1], found[2].strip()) if found else ("", "")


def _offer(first: re.Match[str], rest: list[str]) -> Offer:
    options: dict[str, tuple[str, ...]] = {}
    chosen: frozenset[str] = frozenset()
    for line in rest:
        name, *values = line.split()
        if name == "chosen":
            chosen = frozenset(values)
        else:
            options[name] = tuple(values)
    words = frozenset(first[1].split()) | frozenset(first[3].split())
    return Offer(words, int(first[2]), options, chosen)
