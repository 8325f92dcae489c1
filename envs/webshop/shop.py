"""The shop: pages and what a visitor can do on them (webshop specification 1.3 and 1.4).

A :class:`Shop` is shared and read-only: catalogue, search index, nouns. A :class:`Visit` is one shopper's way
through it and is small, so thousands fit in one process; nothing remembers a visit when it is dropped.

Two sets of rules: faithful to the original program, quirks included, and corrected (``Rules.fixed``). Every
difference is listed in ``docs/webshop.md``.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from seedbench.envs.webshop.catalogue import Product, index_documents
from seedbench.envs.webshop.goals import Goal
from seedbench.envs.webshop.nouns import TitleNouns
from seedbench.envs.webshop.pages import PAGES, SUB_PAGES, Node, PageKind
from seedbench.envs.webshop.reward import Score, score

from seedbench.errors import DataCorrupt, SeedbenchError
from seedbench.search.bm25 import BM25

HOST = "http://127.0.0.1:3000"
_URL_NAME = {"results": "search_results", "item": "item_page", "sub": "item_sub_page", "done": "done"}
_FIXED_ACTION = re.compile(r"(search|click)\s*\[(.*)\]", re.DOTALL | re.IGNORECASE)


class OriginalCrash(SeedbenchError):
    """The original program dies on this input; the faithful variant says so, the fixed one does not."""


@dataclass(frozen=True, slots=True)
class Rules:
    """``page_size`` hits a page, ``depth`` in all. ``slots``: hits are clicked as ``item 1``, not by asin."""

    fixed: bool
    page_size: int = 10
    depth: int = 50
    slots: bool = False
    sub_pages: tuple[str, ...] = SUB_PAGES


class Shop:
    """Catalogue, search index and scorer, shared by all visits of a process."""

    def __init__(
        self, products: Sequence[Product], nouns: TitleNouns, rules: Rules, index: BM25 | None = None
    ) -> None:
        self.products, self.nouns, self.rules = tuple(products), nouns, rules
        self.by_asin = {p.asin: p for p in self.products}
        self.index = index if index is not None else BM25.build(index_documents(self.products))
        if len(self.index) != len(self.products):
            raise DataCorrupt(
                f"The search index holds {len(self.index)} documents, the catalogue {len(self.products)} "
                "products. Build the index again from this catalogue."
            )

    def find(self, keywords: Sequence[str], rng: random.Random) -> tuple[Product, ...]:
        """Hits for a query, best first. The original's hidden commands work in the faithful shop only."""
        if not self.rules.fixed and keywords[0] in ("<r>", "<a>", "<c>", "<q>"):
            return self._hidden_command(keywords, rng)
        found = self.index.rank_rows(" ".join(keywords), self.rules.depth)
        return tuple(self.products[row] for row, _ in found)

    def score(self, bought: Product, chosen: dict[str, str], goal: Goal) -> Score:
        wanted = self.nouns.of(self.by_asin[goal.asin])
        return score(bought, chosen, goal, self.nouns.of(bought), wanted, self.rules.fixed)

    def _hidden_command(self, keywords: Sequence[str], rng: random.Random) -> tuple[Product, ...]:
        command, rest = keywords[0], " ".join(keywords[1:]).strip()
        if command == "<r>":
            return tuple(rng.sample(self.products, min(self.rules.depth, len(self.products))))
        if command == "<q>":
            return tuple(p for p in self.products if p.query == rest)
        if command == "<a>" or len(keywords) < 2:
            error = "TypeError" if command == "<a>" else "IndexError"
            raise OriginalCrash(
                f"The original shop crashes on a search that begins with '{command}' ({error})."
            )
        return tuple(p for p in self.products if p.category == keywords[1].strip())


def split_action(text: str, fixed: bool) -> tuple[str, str]:
    """``(name, argument)`` of ``name[argument]``; ``("", "")`` when it is no action.

    The original matches ``(.+)\\[(.+)\\]`` at the start of the first line, greedily, so the last bracket
    counts and what follows is ignored. The fixed form wants the whole text and counts the first bracket.
    """
    if fixed:
        found = _FIXED_ACTION.fullmatch(text.strip())
        return (found[1].lower(), " ".join(found[2].lower().split())) if found else ("", "")
    line = text.split("\n", 1)[0]  # spelled out, for the expression needs quadratic time on brackets
    close = line.rfind("]")
    open_ = line.rfind("[", 1, max(close - 1, 0))
    return (line[:open_], line[open_ + 1 : close].lower()) if open_ > 0 else ("", "")


@dataclass(slots=True)
class Visit:
    """Where a shopper is and what was chosen. ``score`` is set by buying."""

    shop: Shop
    goal: Goal
    session_id: str
    rng: random.Random
    kind: PageKind = "index"
    keywords: list[str] = field(default_factory=list)
    hits: tuple[Product, ...] = ()
    page: int = 0
    product: Product | None = None
    options: dict[str, str] = field(default_factory=dict)
    sub_page: str = ""
    opened: set[str] = field(default_factory=set)
    score: Score | None = None
    _nodes: tuple[Node, ...] | None = None

    @property
    def done(self) -> bool:
        return self.kind == "done"

    @property
    def nodes(self) -> tuple[Node, ...]:
        if self._nodes is None:
            self._nodes = tuple(PAGES[self.kind](self))
        return self._nodes

    def clickables(self) -> dict[str, Node]:
        """What can be clicked, in the original's order: buttons, links, options; a later equal text wins."""
        found: dict[str, Node] = {}
        for kind in ("button", "link", "option"):
            found |= {n.click: n for n in self.nodes if n.kind == kind}
        return found

    def act(self, text: str) -> bool:
        """Do what ``text`` says; False when it is no action or not possible here."""
        name, argument = split_action(text, self.shop.rules.fixed)
        if name == "search" and (argument.strip() or not self.shop.rules.fixed):
            self._search(argument)
        elif name == "click" and argument != "search" and argument in (can := self.clickables()):
            self._click(argument, can[argument])
        else:
            return False
        self._nodes = None
        return True

    def url(self) -> str:
        """Address of the page as the original builds it; its words also decide what ``< Prev`` does there."""
        parts = [HOST]
        if self.kind != "index":
            parts.append(_URL_NAME[self.kind])
        parts.append(self.session_id)
        if self.kind in ("item", "sub", "done"):
            parts.append(self.product.asin if self.product else "None")
        if self.kind in ("results", "item", "sub"):
            parts += ["+".join(self.keywords), str(self.page)]
        if self.kind == "sub":
            parts.append(self.sub_page)
        if self.kind in ("sub", "done"):
            parts.append(str(self.options))
        if self.kind == "item":
            parts.append(json.dumps(self.options))
        return "/".join(parts)

    def _search(self, argument: str) -> None:
        self.keywords = argument.split(" ")
        self.hits = self.shop.find(self.keywords, self.rng)
        self._to_results(1)

    def _click(self, argument: str, node: Node) -> None:
        if argument == "buy now":
            assert self.product is not None
            self.score = self.shop.score(self.product, self.options, self.goal)
            self.kind = "done"
        elif argument == "back to search":
            self.kind, self.keywords, self.hits, self.page = "index", [], (), 0
            self.product, self.options, self.sub_page, self.opened = None, {}, "", set()
        elif argument == "next >":
            self._to_results(self.page + 1)
        elif argument == "< prev":
            self._back()
        elif argument.capitalize() in self.shop.rules.sub_pages:
            self.kind, self.sub_page = "sub", argument.capitalize()
        elif node.kind == "option":
            self.options[node.group] = node.text
        else:
            self.product = self.shop.by_asin[node.text]
            self.opened.add(node.text)
            self.kind = "item"

    def _back(self) -> None:
        kind = self.kind
        if not self.shop.rules.fixed:
            url = self.url()  # the original looks for these words anywhere in the address, query included
            kind = next(k for k in ("results", "item", "sub") if _URL_NAME[k] in url)
        if kind == "sub":
            self.kind = "item"
        else:
            self._to_results(self.page - 1 if kind == "results" else self.page)

    def _to_results(self, page: int) -> None:
        self.kind, self.page = "results", page
        self.product, self.options, self.sub_page = None, {}, ""

    def on_page(self) -> tuple[Product, ...]:
        """Products of the current results page. A page 0 shows what Python slicing makes of it, as there."""
        size = self.shop.rules.page_size
        return self.hits[(self.page - 1) * size : self.page * size]
