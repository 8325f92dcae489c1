"""BM25 with Lucene's numbers: same terms, same 32-bit roundings, same order of hits.

``score = w - w / (1 + tf * n)`` per term with ``w = boost * idf`` and ``n`` from the document's length, which
Lucene keeps in one byte; terms are summed in double precision and rounded once. A query word that occurs
twice counts as boost 2. Ties are broken by id, ascending (Anserini). Source: Lucene 9 ``BM25Similarity`` and
``SmallFloat``, checked against recorded rankings (benchmarks/webshop_engine.py prints the agreement).

Postings lie in compressed sparse rows (term -> documents), so a query costs one vectorised pass over the
postings of its words. A saved index is memory-mapped: processes that load it share its pages.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from seedbench.errors import ConfigError, DataCorrupt, DataMissing
from seedbench.search.analysis import terms as english_terms
from seedbench.search.base import Document, Hit
from seedbench.search.strings import Strings

_FORMAT = 1
_ARRAYS = (
    "ids",
    "ids_at",
    "texts",
    "texts_at",
    "vocabulary",
    "vocabulary_at",
    "starts",
    "docs",
    "parts",
    "rank",
)


#: Lengths below this are kept exactly: the 255 byte values less the 231 a four-bit float needs for 31 bits.
_EXACT = 24


def stored_length(n: int) -> int:
    """A document length after Lucene's one-byte encoding: exact up to 39, then four significant bits."""
    shift = max((n - _EXACT).bit_length() - 4, 0) if n > _EXACT else 0
    return _EXACT + ((n - _EXACT) >> shift << shift) if shift else n


@dataclass(frozen=True, slots=True)
class Settings:
    """``analyzer`` names the text analysis, so that an index is never searched with another one."""

    k1: float = 0.9
    b: float = 0.4
    analyzer: str = "lucene-english"


class _Corpus:
    """What one pass over the documents leaves: flat (term, count) pairs and the texts."""

    def __init__(self, analyze: Callable[[str], list[str]]) -> None:
        self.analyze = analyze
        self.vocabulary: dict[str, int] = {}
        self.terms, self.counts, self.lengths = array("i"), array("i"), array("i")
        self.pairs = array("q", [0])  # where each document's pairs begin
        self.digest = hashlib.sha256()

    def add(self, document: Document) -> None:
        words = self.analyze(document.contents)
        for word, count in Counter(words).items():
            self.terms.append(self.vocabulary.setdefault(word, len(self.vocabulary)))
            self.counts.append(count)
        self.pairs.append(len(self.terms))
        self.lengths.append(len(words))
        for part in (document.id, document.contents):
            raw = part.encode("utf-8", "surrogatepass")
            self.digest.update(b"%d:" % len(raw) + raw)


def _parts(corpus: _Corpus, settings: Settings) -> np.ndarray:
    """Per pair ``1 + tf * n`` in float32, each operation rounded as in Lucene."""
    f = np.float32
    lengths = np.frombuffer(corpus.lengths, np.int32)
    filled = int((lengths > 0).sum())
    average = f(int(lengths.sum(dtype=np.int64)) / filled) if filled else f(1)
    kept = np.array([stored_length(n) for n in range(int(lengths.max(initial=0)) + 1)], np.float32)[lengths]
    inverse = f(1) / (f(settings.k1) * ((f(1) - f(settings.b)) + f(settings.b) * kept / average))
    per_pair = np.repeat(inverse.astype(np.float32), np.diff(np.frombuffer(corpus.pairs, np.int64)))
    return f(1) + np.frombuffer(corpus.counts, np.int32).astype(np.float32) * per_pair


class BM25:
    """A :class:`~seedbench.search.base.Retriever` in memory or on disk. Threads may share it."""

    def __init__(
        self, arrays: dict[str, np.ndarray], settings: Settings, filled: int, fingerprint: str
    ) -> None:
        self.settings, self.filled, self.fingerprint = settings, filled, fingerprint
        self.ids = Strings(arrays["ids"], arrays["ids_at"])
        self.texts = Strings(arrays["texts"], arrays["texts_at"])
        self.vocabulary = Strings(arrays["vocabulary"], arrays["vocabulary_at"])
        self._starts, self._docs, self._parts = arrays["starts"], arrays["docs"], arrays["parts"]
        self._rank = arrays["rank"]
        self._arrays = arrays

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays (resident only as far as touched, when memory-mapped)."""
        return sum(a.nbytes for a in self._arrays.values())

    @classmethod
    def build(cls, documents: Iterable[Document], settings: Settings | None = None) -> BM25:
        """Index documents from any iterator, in one pass. Raises :class:`DataCorrupt` on a repeated id."""
        settings = _checked(settings or Settings())
        corpus = _Corpus(english_terms)
        ids: list[str] = []

        def texts() -> Iterable[str]:
            for document in documents:
                corpus.add(document)
                ids.append(document.id)
                yield document.contents

        contents = Strings.of(texts())
        order = sorted(range(len(ids)), key=ids.__getitem__)
        for a, b in pairwise(order):
            if ids[a] == ids[b]:
                raise DataCorrupt(
                    f"Document id '{ids[a]}' occurs twice (documents {a} and {b}). Ids must differ."
                )
        rank = np.empty(len(ids), np.int32)
        rank[order] = np.arange(len(ids), dtype=np.int32)
        arrays = _postings(corpus, settings)
        names = Strings.of(ids)
        arrays |= {"ids": names.data, "ids_at": names.offsets, "rank": rank}
        arrays |= {"texts": contents.data, "texts_at": contents.offsets}
        filled = sum(1 for n in corpus.lengths if n)
        return cls(arrays, settings, filled, _fingerprint(settings, corpus.digest.hexdigest()))

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most ``k`` hits per query, best first; documents without a query term are no hits."""
        found = [self.rank_rows(q, k) for q in queries]
        return [[Hit(self.ids[r], self.texts[r], s) for r, s in one] for one in found]

    def rank_rows(self, query: str, k: int) -> list[tuple[int, float]]:
        """``(row, score)`` of the best ``k`` documents; rows count documents in corpus order."""
        if k < 1:
            raise ConfigError(f"k is the number of hits and must be at least 1, not {k}.")
        docs, scores = [], []
        for word, boost in Counter(english_terms(query)).items():
            t = self.vocabulary.find(word)
            if t >= 0:
                low, high = int(self._starts[t]), int(self._starts[t + 1])
                weight = np.float32(boost) * self._idf(high - low)
                docs.append(self._docs[low:high])
                scores.append(weight - weight / self._parts[low:high])
        if not docs:
            return []
        total = np.bincount(np.concatenate(docs), np.concatenate(scores), len(self)).astype(np.float32)
        return self._best(total, k)

    def _best(self, total: np.ndarray, k: int) -> list[tuple[int, float]]:
        rows = np.flatnonzero(total)
        if len(rows) > k:
            floor = np.partition(total[rows], len(rows) - k)[len(rows) - k]
            rows = rows[total[rows] >= floor]
        rows = rows[np.lexsort((self._rank[rows], -total[rows]))][:k]
        return [(int(r), float(total[r])) for r in rows]

    def _idf(self, frequency: int) -> np.float32:
        return np.float32(np.log(1 + (self.filled - frequency + 0.5) / (frequency + 0.5)))

    def save(self, folder: Path) -> None:
        """Write the index; the folder appears complete or not at all. An existing index is replaced."""
        if folder.exists() and not (folder / "index.json").is_file():
            raise ConfigError(f"{folder} exists and is no search index. Choose another folder.")
        scratch = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}")
        scratch.mkdir(parents=True)
        try:
            hashes = {}
            for name in _ARRAYS:
                np.save(scratch / f"{name}.npy", self._arrays[name])
                hashes[name] = _file_sha256(scratch / f"{name}.npy")
            meta = {
                "format": _FORMAT,
                "k1": self.settings.k1,
                "b": self.settings.b,
                "analyzer": self.settings.analyzer,
                "documents": len(self),
                "filled": self.filled,
                "fingerprint": self.fingerprint,
                "sha256": hashes,
            }
            (scratch / "index.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")
            if folder.exists():
                shutil.rmtree(folder)
            os.replace(scratch, folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    @classmethod
    def load(cls, folder: Path, *, mmap: bool = True, verify: bool = False) -> BM25:
        """Open a saved index. ``verify`` reads every byte and compares hashes.

        Raises :class:`DataMissing` when there is no index, :class:`DataCorrupt` when it is damaged or was
        written by another version.
        """
        meta = _read_meta(folder)
        arrays = {}
        for name in _ARRAYS:
            path = folder / f"{name}.npy"
            if verify and path.is_file() and _file_sha256(path) != meta["sha256"].get(name):
                raise DataCorrupt(f"{path} has changed since the index was written. Build the index again.")
            try:
                arrays[name] = np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
            except (OSError, ValueError, EOFError) as e:
                raise DataCorrupt(f"{path} cannot be read ({e}). Build the index again.") from e
        settings = Settings(meta["k1"], meta["b"], meta["analyzer"])
        return cls(arrays, settings, meta["filled"], meta["fingerprint"])


def corpus_fingerprint(documents: Iterable[Document], settings: Settings | None = None) -> str:
    """The fingerprint an index of these documents must have; reads the corpus without indexing it."""
    corpus = _Corpus(lambda _: [])
    for document in documents:
        corpus.add(document)
    return _fingerprint(settings or Settings(), corpus.digest.hexdigest())


def _checked(settings: Settings) -> Settings:
    if not (settings.k1 > 0 and 0 <= settings.b <= 1):
        raise ConfigError(f"BM25 wants k1 > 0 and 0 <= b <= 1, not k1={settings.k1}, b={settings.b}.")
    return settings


def _fingerprint(settings: Settings, corpus: str) -> str:
    text = f"bm25 {_FORMAT} {settings.k1!r} {settings.b!r} {settings.analyzer} {corpus}"
    return hashlib.sha256(text.encode()).hexdigest()


def _postings(corpus: _Corpus, settings: Settings) -> dict[str, np.ndarray]:
    """Turn the pairs around: for each term, in sorted order, its documents and their ``1 + tf * n``."""
    names = sorted(corpus.vocabulary, key=lambda w: w.encode("utf-8", "surrogatepass"))
    place = np.empty(len(names), np.int32)
    for new, name in enumerate(names):
        place[corpus.vocabulary[name]] = new
    term = place[np.frombuffer(corpus.terms, np.int32)] if names else np.empty(0, np.int32)
    order = np.argsort(term, kind="stable")
    row = np.repeat(
        np.arange(len(corpus.lengths), dtype=np.int32), np.diff(np.frombuffer(corpus.pairs, np.int64))
    )
    starts = np.zeros(len(names) + 1, np.int64)
    np.cumsum(np.bincount(term, minlength=len(names)), out=starts[1:])
    vocabulary = Strings.of(names)
    return {
        "vocabulary": vocabulary.data,
        "vocabulary_at": vocabulary.offsets,
        "starts": starts,
        "docs": row[order],
        "parts": _parts(corpus, settings)[order],
    }


def _read_meta(folder: Path) -> dict:
    path = folder / "index.json"
    if not path.is_file():
        raise DataMissing(f"No search index in {folder} (index.json is absent). Build it first.")
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
        version = meta["format"]
        missing = {"k1", "b", "analyzer", "filled", "fingerprint", "sha256"} - set(meta)
    except (ValueError, KeyError, TypeError, OSError) as e:
        raise DataCorrupt(f"{path} is not an index description ({e}). Build the index again.") from e
    if version != _FORMAT or missing:
        raise DataCorrupt(
            f"{path} has format {version}, this version reads {_FORMAT}. Build the index again."
        )
    return meta


def _file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as f:
        while block := f.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
