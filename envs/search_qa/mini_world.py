"""The generated world of Search-QA-mini: people, places, works and companies with consistent facts.

A world has two halves with no entity in common, ``train`` and ``test``; all chains of facts stay inside
one half, and the articles of both lie in one corpus, so each half distracts the other. Names share their
words (Port Kell, Ada Kell, Kell Mills), and some people share a whole name and differ by profession.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from seedbench.envs.search_qa import mini_words as words

from seedbench.search.base import Document

#: Entities per half.
SIZES = {"country": 12, "city": 48, "company": 60, "person": 180, "work": 120}
HALVES = ("train", "test")
YEARS = (1900, 1999)

#: Article text by kind; ``alias`` is the optional clause. What a reader may learn is what stands here.
ARTICLES = {
    "person": "{name}{alias} is a {job} born in {birth_year} in {birthplace}, "
    "works for {employer} and is married to {spouse}.",
    "work": "{name} is a {kind} of {year} by {author}. It is set in {setting}.",
    "company": "{name} is a company founded in {founding_year} by {founder}. "
    "It is based in {home_city} in {home_country}.",
    "city": "{name} is a city in {country} on the river {river}. Its mayor is {mayor}.",
    "country": "{name} is a country. Its capital is {capital}. Its currency is the {currency}.",
}
_ALIAS = ", known as {alias},"
_NAME = r"[A-Z]\w+ [A-Z]\w+"
_VALUE = {
    **dict.fromkeys(("birth_year", "year", "founding_year"), r"\d{4}"),
    **dict.fromkeys(("job", "kind"), r"[a-z]+"),
    **dict.fromkeys(("river", "currency"), r"[A-Z]\w+"),
}


@dataclass(slots=True)
class Entity:
    """``facts`` maps a relation to a value: another entity's name, a year or a word."""

    kind: str
    name: str
    half: str
    facts: dict[str, str] = field(default_factory=dict)
    alias: str = ""
    id: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, self.alias) if self.alias else (self.name,)


@dataclass(frozen=True, slots=True)
class World:
    entities: tuple[Entity, ...]

    def half(self, half: str, kind: str) -> list[Entity]:
        return [e for e in self.entities if e.half == half and e.kind == kind]

    def documents(self) -> list[Document]:
        """The corpus in id order."""
        return [Document(e.id, f'"{e.name}"\n{article(e)}') for e in self.entities]


def article(entity: Entity) -> str:
    alias = _ALIAS.format(alias=entity.alias) if entity.alias else ""
    return ARTICLES[entity.kind].format(name=entity.name, alias=alias, **entity.facts)


def _reader(kind: str) -> re.Pattern[str]:
    pattern, seen = "", set()
    for text, slot in re.findall(r"([^{]*)(?:\{(\w+)\})?", ARTICLES[kind]):
        pattern += re.escape(text)
        if slot == "alias":
            pattern += rf"(?:, known as (?P<alias>{_NAME}),)?"
        elif slot in seen:
            pattern += rf"(?P={slot})"
        elif slot:
            pattern += rf"(?P<{slot}>{_VALUE.get(slot, _NAME)})"
            seen.add(slot)
    return re.compile(pattern)


_READERS = {kind: _reader(kind) for kind in ARTICLES}


def read(text: str) -> dict[str, str]:
    """The facts of an article as a reader learns them (with ``name`` and ``alias``); {} for other texts."""
    for pattern in _READERS.values():
        found = pattern.fullmatch(text)
        if found:
            return {k: v for k, v in found.groupdict().items() if v}
    return {}


def build(seed: int) -> World:
    """The world of a seed; equal on every machine."""
    rng = random.Random(f"search-qa world {seed}")
    entities: list[Entity] = []
    for half in HALVES:
        pools = _names(half, rng)
        made = {k: [Entity(k, next(pools[k]), half) for _ in range(n)] for k, n in SIZES.items()}
        _share_names(rng, made["person"])
        for person in made["person"][::2]:
            person.alias = next(pools["alias"])
        _facts(rng, made)
        entities += [e for kind in SIZES for e in made[kind]]
    for place, entity in enumerate(rng.sample(entities, len(entities))):
        entity.id = f"m{place:04d}"
    return World(tuple(sorted(entities, key=lambda e: e.id)))


_POOLS = {
    "person": (words.FIRST, words.STEM),
    "city": (words.CITY, words.STEM),
    "company": (words.STEM, words.COMPANY),
    "country": (words.LAND_STEM, words.LAND),
    "work": (words.ADJECTIVE, words.NOUN),
    "alias": (words.HONORIFIC, words.NOUN),
}


def _names(half: str, rng: random.Random) -> dict[str, Iterator[str]]:
    """Names by kind in random order.

    Which half a name belongs to is the same in the worlds of all seeds, so a policy warmed up in many
    worlds has still never met a test entity.
    """
    out = {}
    for kind, (first, second) in _POOLS.items():
        pairs = [f"{a} {b}" for a, b in product(first, second)]
        random.Random(f"search-qa halves {kind}").shuffle(pairs)
        mine = pairs[HALVES.index(half) :: len(HALVES)]
        out[kind] = iter(rng.sample(mine, len(mine)))
    return out


def _share_names(rng: random.Random, people: list[Entity]) -> None:
    """Every twelfth person takes the name of the one before; their professions will differ."""
    for a, b in zip(people[10::12], people[11::12], strict=False):
        b.name = a.name


def _facts(rng: random.Random, made: dict[str, list[Entity]]) -> None:
    year = lambda: str(rng.randint(*YEARS))  # noqa: E731
    pick = lambda kind: rng.choice(made[kind])  # noqa: E731
    shared = {p.name for p in made["person"] if sum(q.name == p.name for q in made["person"]) > 1}
    # A person named as a fact must be identified by the name alone, or the chain would be ambiguous.
    people = [p for p in made["person"] if p.name not in shared]
    for city, country in zip(made["city"], made["country"] * 4, strict=True):
        city.facts = {
            "country": country.name,
            "river": rng.choice(words.RIVER),
            "mayor": rng.choice(people).name,
        }
        country.facts.setdefault("capital", city.name)
        country.facts.setdefault("currency", rng.choice(words.CURRENCY))
    for company in made["company"]:
        city = pick("city")
        company.facts = {
            "founding_year": year(),
            "founder": rng.choice(people).name,
            "home_city": city.name,
            "home_country": city.facts["country"],
        }
    jobs = {name: iter(rng.sample(words.JOB, len(words.JOB))) for name in sorted(shared)}
    for person in made["person"]:
        person.facts = {
            "job": next(jobs[person.name]) if person.name in shared else rng.choice(words.JOB),
            "birth_year": year(),
            "birthplace": pick("city").name,
            "employer": pick("company").name,
        }
    _marry(rng, made["person"], shared)
    for work in made["work"]:
        work.facts = {
            "kind": rng.choice(words.KIND),
            "year": year(),
            "author": rng.choice(people).name,
            "setting": pick("city").name,
        }


def _marry(rng: random.Random, people: list[Entity], shared: set[str]) -> None:
    """Spouses in both articles agree; people with a shared name marry each other."""
    single = [p for p in people if p.name not in shared]
    twins = [p for p in people if p.name in shared]
    for group in (rng.sample(single, len(single)), rng.sample(twins, len(twins))):
        for a, b in zip(group[::2], group[1::2], strict=True):
            a.facts["spouse"], b.facts["spouse"] = b.name, a.name
