"""Existing Lucene indexes through pyserini (optional; needs Java).

Known with pyserini 0.24 (Java 17) and 1.6 (Java 21): importing takes about 15 s and 0.8 GB, the JVM does not
survive a fork, and the import fails without an OpenAI key that is never used (pyserini #2519), so a
placeholder stands in for it during the import. Keep it in its own process: ``seedbench serve retrieval``.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seedbench.errors import DataCorrupt, DataMissing, ExtraMissing
from seedbench.search.base import Hit

_KEY = "OPENAI_API_KEY"


class Pyserini:
    """A :class:`~seedbench.search.base.Retriever` over a Lucene index with stored contents."""

    def __init__(self, index: Path, k1: float = 0.9, b: float = 0.4) -> None:
        if not index.is_dir():
            raise DataMissing(f"{index} is not a folder. Name a Lucene index, e.g. wikipedia-dpr-100w.")
        searcher = _searcher_class()
        try:
            self._searcher = searcher(str(index))
        except Exception as error:
            raise DataCorrupt(f"{index} cannot be opened as a Lucene index: {error}.") from error
        self._searcher.set_bm25(k1, b)
        self._lock = threading.Lock()  # the JVM bridge is not made for many Python threads
        size = self._searcher.num_docs
        self.fingerprint = hashlib.sha256(f"lucene {index.name} {size} {k1} {b}".encode()).hexdigest()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        with self._lock:
            return [[self._hit(h) for h in self._searcher.search(q, k)] for q in queries]

    def _hit(self, found: Any) -> Hit:
        raw = self._searcher.doc(found.docid).raw()
        row = json.loads(raw) if raw and raw.lstrip().startswith("{") else {"contents": raw or ""}
        return Hit(found.docid, row.get("contents", raw), float(found.score))


def _searcher_class() -> Any:
    absent = _KEY not in os.environ
    if absent:
        os.environ[_KEY] = "unused"
    try:
        from pyserini.search.lucene import LuceneSearcher
    except ImportError as error:
        raise ExtraMissing(
            f"pyserini cannot be imported ({error}). pip install pyserini faiss-cpu, and Java 21 "
            "(or pyserini==0.24.0 with Java 17)."
        ) from error
    finally:
        if absent:
            del os.environ[_KEY]
    return LuceneSearcher
