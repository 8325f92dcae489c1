"""Candidate actions for constrained decoding: queries and answers that are spans of what was seen.

A pure function of ordinary history. A query is a run of content words of the question (or a part of it), a
title or a capitalised name read in a result; an answer is a name, a number, a described kind ("is a
painter") or a run of the question, and yes or no where the question asks for it. Spans have one to four
words (titles are whole) and differ after the metric's normalisation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from seedbench.envs.search_qa.metrics import normalize
from seedbench.envs.search_qa.protocol import documents, wrap

from seedbench.types import History

#: Newest documents first; what does not fit is left out.
MAX_CANDIDATES = 80
MAX_WORDS = 4
#: Of these at most so many from the question, so that a long one leaves room for what was read.
_QUESTION_QUERIES, _QUESTION_ANSWERS = 40, 12

_FUNCTION = frozenset(
    "a an the of in on at by for to from with and or but as is are was were be been do does did has have had "
    "who whom whose which what when where why how that this these those it its he she they his her their i "
    "you we can could will would may might must not no yes both either same than then there first also known "
    "one two into over after before about between during".split()
)
_WORD = re.compile(r"[^\W_]+(?:['’.&-][^\W_]+)*")
_NAME = r"[^\W\d_a-z][\w'’-]*"
_CAPITALISED = re.compile(rf"{_NAME}(?:\s(?:{_NAME}|\d+))*")
_NUMBER = re.compile(r"\d[\d,.]*")
_DESCRIBED = re.compile(r"\b(?:a|an)\s([a-z]+)")
_CLOSED = re.compile(r"\s*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would)\b", re.IGNORECASE)


def choices(history: History) -> tuple[str, ...]:
    """At most :data:`MAX_CANDIDATES` actions, sorted."""
    queries: dict[str, str] = {}
    answers: dict[str, str] = {}
    if _CLOSED.match(history.instruction):
        _add(answers, "yes", 2)
        _add(answers, "no", 2)
    for run in runs(history.instruction):
        for part in _parts(run):
            _add(queries, part, _QUESTION_QUERIES)
    for span in question_names(history.instruction):
        _add(answers, span, _QUESTION_ANSWERS)
    seen = [t.observation.text for t in history.past] + [history.observation.text]
    for text in reversed(seen):
        for span, searchable in _spans(text):
            room = MAX_CANDIDATES - len(queries) - len(answers)
            if searchable:
                _add(queries, span, len(queries) + room)
                room = MAX_CANDIDATES - len(queries) - len(answers)
            _add(answers, span, len(answers) + room)
    actions = [wrap("search", q) for q in queries.values()] + [wrap("answer", a) for a in answers.values()]
    return tuple(sorted(actions[:MAX_CANDIDATES]))


def _add(table: dict[str, str], span: str, limit: int) -> None:
    key = normalize(span)
    # A page title may hold anything; what looks like a tag cannot stand inside one.
    if key and "<" not in span and len(table) < limit:
        table.setdefault(key, span)


def question_names(question: str) -> list[str]:
    """Capitalised names of a question; of one in small letters, its runs of content words."""
    names = [_trimmed(m[0]) for m in _CAPITALISED.finditer(question)]
    return [n for n in names if n] or [" ".join(run[:MAX_WORDS]) for run in runs(question)]


def runs(question: str) -> Iterator[list[str]]:
    """Maximal runs of content words."""
    run: list[str] = []
    end = 0
    for found in _WORD.finditer(question):
        word, broken = found[0], question[end : found.start()].strip()
        if run and (broken or word.lower() in _FUNCTION):
            yield run
            run = []
        if word.lower() not in _FUNCTION:
            run.append(word)
        end = found.end()
    if run:
        yield run


def _parts(run: list[str]) -> Iterator[str]:
    """All spans of up to four words, the longest first."""
    for size in range(min(len(run), MAX_WORDS), 0, -1):
        for start in range(len(run) - size + 1):
            yield " ".join(run[start : start + size])


@lru_cache(maxsize=16_384)
def _spans(observation: str) -> tuple[tuple[str, bool], ...]:
    """``(span, may be a query)`` of the documents in an observation, in reading order."""
    out: list[tuple[str, bool]] = []
    for title, text in documents(observation):
        out.append((title, True))
        found = [(m.start(), _trimmed(m[0]), True) for m in _CAPITALISED.finditer(text)]
        found += [(m.start(), m[0].rstrip(",."), False) for m in _NUMBER.finditer(text)]
        found += [(m.start(1), m[1], False) for m in _DESCRIBED.finditer(text)]
        out += [(span, query) for _, span, query in sorted(found) if span]
    return tuple(dict.fromkeys(out))


def _trimmed(span: str) -> str:
    """Without function words at the ends ("It", "The Silver Lantern"), cut to four words."""
    words = span.split()
    while words and words[0].lower() in _FUNCTION:
        words.pop(0)
    while words and words[-1].lower() in _FUNCTION:
        words.pop()
    return " ".join(words[:MAX_WORDS])
