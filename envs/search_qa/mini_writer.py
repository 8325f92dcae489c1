"""Questions about the generated world in the manner of the seven sets.

A hop is one fact. The sdar dialect leaves three searches before the answer, so no question needs more than
three articles; a four-hop chain takes its last two facts (home city, home country) from one article.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from seedbench.envs.search_qa.mini_questions import (
    ASK,
    CLAUSE,
    FIRST,
    KNOWN,
    NAMED,
    PHRASE,
    RELATIONS,
    SAME,
)
from seedbench.envs.search_qa.mini_world import Entity, World
from seedbench.envs.search_qa.questions import SETS, Question

#: Chains by number of hops, outermost relation last.
CHAINS: dict[int, tuple[tuple[str, ...], ...]] = {
    1: tuple((r,) for r in RELATIONS),
    2: tuple((a, b) for a in RELATIONS for b in RELATIONS if RELATIONS[a][1] == RELATIONS[b][0] and a != b),
    3: (
        ("author", "employer", "home_city"),
        ("author", "birthplace", "country"),
        ("author", "birthplace", "river"),
        ("author", "spouse", "job"),
        ("founder", "birthplace", "mayor"),
        ("founder", "spouse", "birthplace"),
        ("spouse", "employer", "founder"),
        ("spouse", "birthplace", "river"),
        ("mayor", "employer", "home_city"),
        ("birthplace", "country", "currency"),
        ("setting", "country", "currency"),
    ),
    4: (
        ("author", "employer", "home_city", "country"),
        ("spouse", "employer", "home_city", "country"),
        ("mayor", "employer", "home_city", "country"),
        ("founder", "employer", "home_city", "country"),
    ),
}


class Writer:
    """Writes questions about one half of a world."""

    def __init__(self, world: World, half: str, seed: int) -> None:
        self.half, self.seed = half, seed
        self._asked: set[str] = set()  # by any set: hotpotqa and musique share a manner
        mine = [e for e in world.entities if e.half == half]
        self.kinds: dict[str, list[Entity]] = {}
        for entity in mine:
            self.kinds.setdefault(entity.kind, []).append(entity)
        self.by_name: dict[str, list[Entity]] = {}
        for entity in mine:
            self.by_name.setdefault(entity.name, []).append(entity)

    def write(self, data_source: str, count: int) -> list[Question]:
        """``count`` questions of one set, none written before. Raises ValueError when there are too few."""
        rng = random.Random(f"search-qa {self.half} {data_source} {self.seed}")
        manner = _MANNERS[data_source]
        out: list[Question] = []
        for _ in range(200 * count):
            made = manner(self, rng)
            if made and made[0].lower() not in self._asked:
                text, golds, ids, route = made
                self._asked.add(text.lower())
                name = f"{data_source}-{self.half}-{len(out):05d}"
                out.append(Question(name, text, golds, data_source, ids, route, "generated"))
                if len(out) == count:
                    return out
        raise ValueError(f"the world holds fewer than {count} questions in the manner of {data_source}")

    def pick(self, rng: random.Random, kind: str, *, shared: bool = False, alias: bool = False) -> Entity:
        """A random entity whose name is unique (or, with ``shared``, is not)."""
        pool = [
            e
            for e in self.kinds[kind]
            if (len(self.by_name[e.name]) > 1) == shared and (bool(e.alias) or not alias)
        ]
        return rng.choice(pool)

    def follow(self, start: Entity, chain: Sequence[str]) -> tuple[list[Entity], str] | None:
        """Articles read in order and the final value; None when a name on the way is shared."""
        articles, here, value = [start], start, start.name
        for place, relation in enumerate(chain):
            # The company's article states the country of its home city: one article, two facts.
            if relation == "country" and here.kind == "company":
                value = here.facts["home_country"]
            else:
                value = here.facts[relation]
            last = place == len(chain) - 1
            if last or (relation == "home_city" and chain[place + 1] == "country"):
                continue
            if len(self.by_name[value]) > 1:
                return None
            here = self.by_name[value][0]
            articles.append(here)
        return articles, value


Made = tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _golds(writer: Writer, value: str) -> tuple[str, ...]:
    known = writer.by_name.get(value)
    return known[0].names if known and len(known) == 1 else (value,)


def _made(writer: Writer, start: Entity, chain: Sequence[str], text: str) -> Made | None:
    path = writer.follow(start, chain)
    if path is None or len({e.id for e in path[0]}) < len(path[0]):
        return None
    articles, value = path
    if value.lower() in text.lower():  # a circle of facts that ends where the question began
        return None
    route = tuple(e.name for e in articles)
    return text, _golds(writer, value), tuple(e.id for e in articles), route


def _nested(name: str, chain: Sequence[str], table: dict[str, str]) -> str:
    for relation in chain:
        name = table.get(relation, PHRASE[relation]).format(x=name)
    return name


def _what(name: str, chain: Sequence[str]) -> str:
    word = "Who" if RELATIONS[chain[-1]][1] == "person" else "What"
    return f"{word} is {_nested(name, chain, PHRASE)}?"


def _chain(rng: random.Random, hops: int) -> tuple[str, ...]:
    return rng.choice(CHAINS[hops])


def _ask(writer: Writer, rng: random.Random, hops: int, table: dict[str, str]) -> Made | None:
    chain = _chain(rng, hops)
    start = writer.pick(rng, RELATIONS[chain[0]][0])
    return _made(writer, start, chain, ASK[chain[-1]].format(x=_nested(start.name, chain[:-1], table)))


def _nq(writer: Writer, rng: random.Random) -> Made | None:
    made = _ask(writer, rng, 1, PHRASE)
    return made and (made[0].rstrip("?").lower(), *made[1:])


def _triviaqa(writer: Writer, rng: random.Random) -> Made | None:
    """One hop from an alias."""
    start = writer.pick(rng, "person", alias=True)
    relation = rng.choice([r for r, (kind, _) in RELATIONS.items() if kind == "person"])
    made = _made(writer, start, (relation,), ASK[relation].format(x=KNOWN.format(x=start.alias)))
    return made and (*made[:3], (start.alias,))


def _popqa(writer: Writer, rng: random.Random) -> Made | None:
    """One hop; a third of the questions are about people who share their name."""
    relation = _chain(rng, 1)[0]
    kind = RELATIONS[relation][0]
    if kind == "person" and relation not in ("job", "spouse") and rng.random() < 0.8:
        start = writer.pick(rng, kind, shared=True)
        return _made(
            writer,
            start,
            (relation,),
            ASK[relation].format(x=NAMED.format(x=start.name, job=start.facts["job"])),
        )
    start = writer.pick(rng, kind)
    return _made(writer, start, (relation,), _what(start.name, (relation,)))


def _compare(writer: Writer, rng: random.Random, kind: str) -> Made | None:
    relation = rng.choice(list(SAME if kind == "same" else FIRST))
    a = writer.pick(rng, RELATIONS[relation][0])
    b = writer.pick(rng, RELATIONS[relation][0])
    if kind == "same" and rng.random() < 0.5:
        twins = [e for e in writer.kinds["person"] if e.facts[relation] == a.facts[relation]]
        b = rng.choice([e for e in twins if len(writer.by_name[e.name]) == 1])
    if a.id == b.id:
        return None
    x, y = a.facts[relation], b.facts[relation]
    if kind == "first" and x == y:
        return None
    gold = ("yes" if x == y else "no",) if kind == "same" else (a if x < y else b).names
    text = (SAME if kind == "same" else FIRST)[relation].format(a=a.name, b=b.name)
    return text, gold, (a.id, b.id), (a.name, b.name)


def _hotpotqa(writer: Writer, rng: random.Random) -> Made | None:
    return _compare(writer, rng, "same") if rng.random() < 0.3 else _ask(writer, rng, 2, PHRASE)


def _2wiki(writer: Writer, rng: random.Random) -> Made | None:
    if rng.random() < 0.3:
        return _compare(writer, rng, "first")
    chain = _chain(rng, 2)
    start = writer.pick(rng, RELATIONS[chain[0]][0])
    return _made(writer, start, chain, _what(start.name, chain))


def _musique(writer: Writer, rng: random.Random) -> Made | None:
    return _ask(writer, rng, rng.choice((2, 3, 3, 4)), PHRASE)


def _bamboogle(writer: Writer, rng: random.Random) -> Made | None:
    return _ask(writer, rng, 2, CLAUSE)


_MANNERS: dict[str, Callable[[Writer, random.Random], Made | None]] = dict(
    zip(SETS, (_nq, _triviaqa, _popqa, _hotpotqa, _2wiki, _musique, _bamboogle), strict=True)
)
