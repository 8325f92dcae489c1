"""Existing Lucene indexes made by pyserini or Anserini, such as the prebuilt ``wikipedia-dpr-100w``.

Reads them through the Anserini jar inside an installed pyserini (see :mod:`.lucene`), without importing
pyserini: its import takes 15 s, 0.8 GB, and an OpenAI key that is never used (pyserini #2519). The JVM does
not survive a fork, so keep it in its own process: ``seedbench serve retrieval INDEX --lucene``.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seedbench.errors import ConfigError, DataCorrupt, DataMissing
from seedbench.search.base import Hit
from seedbench.search.lucene import bridge


class Pyserini:
    """A :class:`~seedbench.search.base.Retriever` over a Lucene index with stored contents.

    Raises :class:`~seedbench.errors.ExtraMissing` without pyserini's jar, pyjnius or Java.
    """

    def __init__(self, index: Path, k1: float = 0.9, b: float = 0.4) -> None:
        if not index.is_dir():
            raise DataMissing(f"{index} is not a folder. Name a Lucene index, e.g. wikipedia-dpr-100w.")
        searcher = bridge()("io.anserini.search.SimpleSearcher")
        try:
            self._searcher = searcher(str(index))
        except Exception as error:
            raise DataCorrupt(f"{index} cannot be opened as a Lucene index: {error}.") from error
        self._searcher.set_bm25(k1, b)
        self._lock = threading.Lock()  # the bridge is not made for many Python threads
        self._size = int(self._searcher.get_total_num_docs())
        self.fingerprint = hashlib.sha256(f"lucene {index.name} {self._size} {k1} {b}".encode()).hexdigest()

    def __len__(self) -> int:
        return self._size

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most ``k`` hits per query, best first; ties broken by id, ascending (Lucene's own)."""
        if k < 1:
            raise ConfigError(f"k is the number of hits and must be at least 1, not {k}.")
        with self._lock:
            return [[self._hit(h) for h in self._searcher.search(q, k)] for q in queries]

    def _hit(self, found: Any) -> Hit:
        raw = self._searcher.doc_raw(found.docid)
        if not raw:
            raise DataCorrupt(f"The index holds no text for '{found.docid}'. Build it with -storeRaw.")
        # prebuilt indexes store either the JSON line or the bare contents
        contents = json.loads(raw)["contents"] if raw.lstrip().startswith("{") else raw
        return Hit(found.docid, contents, float(found.score))
