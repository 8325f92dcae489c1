"""Questions about the generated world in the manner of the seven sets, and the reading of them.

The same templates write a question and, as patterns, read it back: the demonstrator and the skill writer
know what a question asks only through :func:`understand`, never through the generator.

A hop is one fact. The sdar dialect leaves three searches before the answer, so no question needs more than
three articles; a four-hop chain takes its last two facts (home city, home country) from one article.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from seedbench.envs.search_qa.mini_world import Entity, World
from seedbench.envs.search_qa.questions import SETS, Question

#: Relation -> (kind it belongs to, kind of its value or "" for a word or year).
RELATIONS = {
    "author": ("work", "person"),
    "setting": ("work", "city"),
    "year": ("work", ""),
    "kind": ("work", ""),
    "founder": ("company", "person"),
    "founding_year": ("company", ""),
    "home_city": ("company", "city"),
    "home_country": ("company", "country"),
    "birthplace": ("person", "city"),
    "birth_year": ("person", ""),
    "job": ("person", ""),
    "employer": ("person", "company"),
    "spouse": ("person", "person"),
    "country": ("city", "country"),
    "river": ("city", ""),
    "mayor": ("city", "person"),
    "capital": ("country", "city"),
    "currency": ("country", ""),
}
#: Full questions by relation, the manner of nq, hotpotqa and musique.
ASK = {
    "author": "Who wrote {x}?",
    "setting": "Where is {x} set?",
    "year": "When did {x} come out?",
    "kind": "What kind of work is {x}?",
    "founder": "Who founded {x}?",
    "founding_year": "When was {x} founded?",
    "home_city": "In which city is {x} based?",
    "home_country": "In which country is {x} based?",
    "birthplace": "Where was {x} born?",
    "birth_year": "When was {x} born?",
    "job": "What does {x} do?",
    "employer": "Who does {x} work for?",
    "spouse": "Who is {x} married to?",
    "country": "In which country is {x}?",
    "river": "On which river is {x}?",
    "mayor": "Who runs {x}?",
    "capital": "What city is the capital of {x}?",
    "currency": "What money is used in {x}?",
}
#: A thing named by a relation, inside a longer question; :data:`PHRASE` is also the popqa manner.
PHRASE = {r: f"the {r.replace('_', ' ')} of {{x}}" for r in RELATIONS}
CLAUSE = {
    "author": "the person who wrote {x}",
    "setting": "the city where {x} is set",
    "founder": "the person who founded {x}",
    "home_city": "the city where {x} is based",
    "home_country": "the country where {x} is based",
    "birthplace": "the city where {x} was born",
    "employer": "the company that pays {x}",
    "spouse": "the person married to {x}",
    "country": "the country around {x}",
    "mayor": "the person who runs {x}",
    "capital": "the capital city of {x}",
}
_NAMED = "{x}, the {job},"
_KNOWN = "the person known as {x}"
_SAME = {
    "birthplace": "Were {a} and {b} born in the same city?",
    "employer": "Do {a} and {b} work for the same company?",
    "job": "Do {a} and {b} have the same job?",
}
_FIRST = {
    "birth_year": "Who was born first, {a} or {b}?",
    "year": "Which came out first, {a} or {b}?",
    "founding_year": "Which was founded first, {a} or {b}?",
}
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


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks. ``starts`` are the names in it: one for a chain, two for a comparison.

    ``job`` tells two people of one name apart. ``compare`` is ``""``, ``"same"`` or ``"first"``.
    """

    starts: tuple[str, ...]
    chain: tuple[str, ...]
    compare: str = ""
    job: str = ""


def templates() -> list[str]:
    """All texts that questions are made of."""
    tables = (ASK, PHRASE, CLAUSE, _SAME, _FIRST)
    return [_NAMED, _KNOWN, "What is {x}?", "Who is {x}?", *(t for table in tables for t in table.values())]


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template.rstrip("?"))
    body = "".join(f"(?P<{p}>.+?)" if i % 2 else re.escape(p) for i, p in enumerate(parts))
    return re.compile(body + r"\??", re.IGNORECASE)


_ASK = [(r, _pattern(t)) for r, t in ASK.items()]
_WHAT = (_pattern("What is {x}?"), _pattern("Who is {x}?"))
_NOUNS = [(r, _pattern(t)) for table in (CLAUSE, PHRASE) for r, t in table.items()]
_COMPARE = [("same", r, _pattern(t)) for r, t in _SAME.items()]
_COMPARE += [("first", r, _pattern(t)) for r, t in _FIRST.items()]
_NAMED_PATTERN, _KNOWN_PATTERN = _pattern(_NAMED), _pattern(_KNOWN)


@lru_cache(maxsize=16_384)
def understand(question: str) -> Asked | None:
    """Read a question back; None when it is not in the manner of this world."""
    text = question.strip()
    for compare, relation, pattern in _COMPARE:
        found = pattern.fullmatch(text)
        if found:
            return Asked((found["a"], found["b"]), (relation,), compare)
    for pattern in _WHAT:
        found = pattern.fullmatch(text)
        inner = _thing(found["x"]) if found else None
        if inner and inner.chain:
            return inner
    for relation, pattern in _ASK:
        found = pattern.fullmatch(text)
        inner = _thing(found["x"]) if found else None
        if inner:
            return Asked(inner.starts, (*inner.chain, relation), "", inner.job)
    return None


def _thing(text: str) -> Asked | None:
    """A name, or a thing named by relations around a name."""
    named = _NAMED_PATTERN.fullmatch(text) or _KNOWN_PATTERN.fullmatch(text)
    if named:
        return Asked((named["x"],), (), "", named.groupdict().get("job") or "")
    for relation, pattern in _NOUNS:
        found = pattern.fullmatch(text)
        inner = _thing(found["x"]) if found else None
        if inner:
            return Asked(inner.starts, (*inner.chain, relation), "", inner.job)
    return Asked((text,), ()) if len(text.split()) == 2 else None


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
    made = _made(writer, start, (relation,), ASK[relation].format(x=_KNOWN.format(x=start.alias)))
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
            ASK[relation].format(x=_NAMED.format(x=start.name, job=start.facts["job"])),
        )
    start = writer.pick(rng, kind)
    return _made(writer, start, (relation,), _what(start.name, (relation,)))


def _compare(writer: Writer, rng: random.Random, kind: str) -> Made | None:
    relation = rng.choice(list(_SAME if kind == "same" else _FIRST))
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
    text = (_SAME if kind == "same" else _FIRST)[relation].format(a=a.name, b=b.name)
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
