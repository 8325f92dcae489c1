"""Lucene itself, for cross-checks of our analysis and ranking (extra ``pyserini``; needs Java).

Takes the Anserini jar out of an installed pyserini and talks to it through pyjnius, without importing pyserini:
3 s and 100 MB instead of 15 s and 630 MB. Works with pyserini 0.22 to 1.6, ``pip install --no-deps pyserini
pyjnius`` is enough. One JVM per process; do not fork afterwards.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from seedbench.errors import ExtraMissing
from seedbench.search.base import Document, Hit

_CURE = "pip install --no-deps pyserini==0.25.0 pyjnius"
_OLDEST_CLASS = 44  # class files of Java n have major version 44 + n


class Lucene:
    """A :class:`~seedbench.search.base.Retriever` over a Lucene index that it builds in ``folder``."""

    def __init__(self, documents: Iterable[Document], folder: Path, k1: float = 0.9, b: float = 0.4) -> None:
        self._find = bridge()
        texts = folder / "texts"
        texts.mkdir(parents=True)
        with (texts / "documents.jsonl").open("w", encoding="utf-8") as f:
            for d in documents:
                f.write(json.dumps({"id": d.id, "contents": d.contents}) + "\n")
        index = str(folder / "index")
        arguments = ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator"]
        arguments += ["-threads", "1", "-input", str(texts), "-index", index, "-storeRaw", "-quiet"]
        self._find("io.anserini.index.IndexCollection").main(arguments)
        self._searcher = self._find("io.anserini.search.SimpleSearcher")(index)
        self._searcher.set_bm25(k1, b)
        digest = hashlib.sha256((texts / "documents.jsonl").read_bytes()).hexdigest()
        self.fingerprint = f"lucene {k1} {b} {digest}"

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [[self._hit(h) for h in self._searcher.search(q, k)] for q in queries]

    def _hit(self, found: Any) -> Hit:
        raw = json.loads(self._searcher.doc_raw(found.docid))
        return Hit(found.docid, raw["contents"], float(found.score))


def lucene_terms(text: str) -> list[str]:
    """What Lucene's English analysis (Anserini's default) makes of a text."""
    found = bridge()("io.anserini.analysis.AnalyzerUtils").analyze(text)
    return [found.get(i) for i in range(found.size())]


@lru_cache(None)
def bridge() -> Any:
    """``autoclass`` of the running JVM; reading the jar takes a while, so once."""
    jar = find_jar()
    check_java(jar)
    try:
        import jnius_config
    except ImportError as e:
        raise ExtraMissing(f"pyjnius is not installed. {_CURE}") from e
    if not jnius_config.vm_running:
        jnius_config.set_classpath(str(jar))
    from jnius import autoclass

    return autoclass


def find_jar() -> Path:
    """The Lucene jar of an installed pyserini. Raises :class:`ExtraMissing`."""
    spec = importlib.util.find_spec("pyserini")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for jar in sorted(Path(place).glob("resources/jars/anserini-*-fatjar.jar")):
            return jar
    raise ExtraMissing(f"pyserini, which brings the Lucene jar, is not installed. {_CURE}")


def check_java(jar: Path) -> None:
    """Raise :class:`ExtraMissing` when the Java on the path is absent or too old for ``jar``."""
    needed, present = java_needed(jar), java_present()
    if present < needed:
        have = f"Java {present} is installed" if present else "no `java` is on the path"
        raise ExtraMissing(f"{jar.name} needs Java {needed} or newer, but {have}. Install one, or: {_CURE}")


def java_needed(jar: Path) -> int:
    """Java version that a jar was compiled for, from the header of a class in it."""
    with zipfile.ZipFile(jar) as z, z.open("io/anserini/search/SimpleSearcher.class") as f:
        header = f.read(8)
    return int.from_bytes(header[6:8], "big") - _OLDEST_CLASS


def java_present() -> int:
    """Major version of the ``java`` on the path, 0 if there is none."""
    program = shutil.which("java")
    if program is None:
        return 0
    said = subprocess.run([program, "-version"], capture_output=True, text=True).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else 0
