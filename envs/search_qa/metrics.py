"""Answer metrics of open-domain question answering. The name of a metric says which rule it uses.

``em`` and ``sub_em`` are the papers' metrics, faults included, so that numbers compare: the same
normalisation stands in SQuAD's evaluation, FlashRAG, Search-R1 (``qa_em.py``) and SDAR. ``em_strict`` and
``sub_em_strict`` repair their one hole, gold answers such as "A" or "---" that normalise to nothing;
``em_folded`` also forgives Unicode forms (accents composed or not, curly quotes, dashes, sharp s).
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_FOLD = str.maketrans(
    {"‘": "'", "’": "'", "‛": "'", "“": '"', "”": '"', "‐": "-", "‑": "-", "–": "-", "—": "-", "−": "-"}
)
_CLOSED = frozenset({"yes", "no", "noanswer"})


@lru_cache(maxsize=65_536)
def normalize(text: str) -> str:
    """Lower-case, drop ASCII punctuation, drop English articles, collapse white space; in this order."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def fold(text: str) -> str:
    """NFKC, straight quotes and hyphens, case-folded; then :func:`normalize`."""
    return normalize(unicodedata.normalize("NFKC", text.translate(_FOLD)).casefold())


def em(answer: str, golds: Sequence[str]) -> float:
    """1.0 when the normalised answer equals a normalised gold answer (the papers' success)."""
    mine = normalize(answer)
    return float(any(mine == normalize(g) for g in golds))


def em_strict(answer: str, golds: Sequence[str]) -> float:
    """As :func:`em`; a gold that normalises to nothing is met only by the same raw text (BR-047)."""
    return float(any(_same(answer, g) for g in golds))


def em_folded(answer: str, golds: Sequence[str]) -> float:
    """As :func:`em_strict`, after Unicode folding (BR-049)."""
    mine = fold(answer)
    return float(any((mine == fold(g)) if fold(g) else answer.strip() == g.strip() for g in golds))


def sub_em(answer: str, golds: Sequence[str]) -> float:
    """1.0 when a normalised gold is a substring of the normalised answer, as the papers' ``acc``."""
    mine = normalize(answer)
    return float(any(normalize(g) in mine for g in golds))


def sub_em_strict(answer: str, golds: Sequence[str]) -> float:
    """A normalised gold occurs in the answer as whole words, so "11" is not found in "711" (BR-050)."""
    mine = f" {normalize(answer)} "
    return float(any(f" {normalize(g)} " in mine if normalize(g) else _same(answer, g) for g in golds))


def f1(answer: str, golds: Sequence[str]) -> float:
    """Best token F1 over the golds. When one side is yes/no/noanswer and they differ it is 0 (FlashRAG)."""
    return max((_f1(normalize(answer), normalize(g)) for g in golds), default=0.0)


def score(answer: str | None, golds: Sequence[str]) -> dict[str, float]:
    """All answer metrics by name. ``None`` means that no answer was given, which is always 0."""
    rules = (em, em_strict, em_folded, sub_em, sub_em_strict, f1)
    return {rule.__name__: 0.0 if answer is None else rule(answer, golds) for rule in rules}


def mentions(text: str, golds: Sequence[str]) -> bool:
    """Does a gold answer occur in ``text`` as whole normalised words?"""
    inside = f" {normalize(text)} "
    return any(normalize(g) and f" {normalize(g)} " in inside for g in golds)


def means(values: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """``(macro, pooled)``: mean of the sets' means, and mean over all questions. Empty sets are an error."""
    if not values or any(not v for v in values.values()):
        raise ValueError("a question set without a single value has no mean")
    macro = sum(sum(v) / len(v) for v in values.values()) / len(values)
    pooled = sum(map(sum, values.values())) / sum(map(len, values.values()))
    return macro, pooled


def _same(answer: str, gold: str) -> bool:
    key = normalize(gold)
    return normalize(answer) == key if key else answer.strip() == gold.strip()


def _f1(mine: str, gold: str) -> float:
    if mine != gold and (mine in _CLOSED or gold in _CLOSED):
        return 0.0
    a, b = mine.split(), gold.split()
    common = sum((Counter(a) & Counter(b)).values())
    if not common:
        return 0.0
    precision, recall = common / len(a), common / len(b)
    return 2 * precision * recall / (precision + recall)
