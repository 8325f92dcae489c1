"""The language of questions about the generated world: templates, and the reading of what they ask.

The same templates write a question (:mod:`mini_writer`) and, as patterns, read it back: the demonstrator
and the skill writer know what a question asks only through :func:`understand`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

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
#: A person by name and profession; a person by alias.
NAMED = "{x}, the {job},"
KNOWN = "the person known as {x}"
#: Comparisons of two things by one relation.
SAME = {
    "birthplace": "Were {a} and {b} born in the same city?",
    "employer": "Do {a} and {b} work for the same company?",
    "job": "Do {a} and {b} have the same job?",
}
FIRST = {
    "birth_year": "Who was born first, {a} or {b}?",
    "year": "Which came out first, {a} or {b}?",
    "founding_year": "Which was founded first, {a} or {b}?",
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
    tables = (ASK, PHRASE, CLAUSE, SAME, FIRST)
    return [NAMED, KNOWN, "What is {x}?", "Who is {x}?", *(t for table in tables for t in table.values())]


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template.rstrip("?"))
    body = "".join(f"(?P<{p}>.+?)" if i % 2 else re.escape(p) for i, p in enumerate(parts))
    return re.compile(body + r"\??", re.IGNORECASE)


_ASK = [(r, _pattern(t)) for r, t in ASK.items()]
_WHAT = (_pattern("What is {x}?"), _pattern("Who is {x}?"))
_NOUNS = [(r, _pattern(t)) for table in (CLAUSE, PHRASE) for r, t in table.items()]
_COMPARE = [("same", r, _pattern(t)) for r, t in SAME.items()]
_COMPARE += [("first", r, _pattern(t)) for r, t in FIRST.items()]
_NAMED_PATTERN, _KNOWN_PATTERN = _pattern(NAMED), _pattern(KNOWN)


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
