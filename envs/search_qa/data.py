"""Real questions and corpora, read from where their user keeps them.

Folder (option ``data``, else ``$SEARCH_QA_DATA``); every .jsonl may be .jsonl.gz or .jsonl.xz:

* ``questions/<set>.jsonl`` (split ``test``) and ``questions/<set>_train.jsonl`` (split ``train``), or
  Search-R1's two files ``test.parquet`` and ``train.parquet`` (``.jsonl`` is read as well);
* ``full_lists/<set>_test.jsonl`` or ``<set>_dev.jsonl``: whole sets without evidence (split ``full``);
* ``corpus.jsonl``; ``mini/<set>.jsonl`` and ``mini/corpus_20k.jsonl`` (option ``subset = "mini"``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seedbench.envs.search_qa.questions import TRAIN_SETS, Question, load, overlap

from seedbench.errors import ConfigError, DataMissing
from seedbench.search.base import Retriever
from seedbench.search.corpus import read_corpus

VARIABLE = "SEARCH_QA_DATA"
_ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.xz", ".parquet")


@dataclass(frozen=True, slots=True)
class Folder:
    """A user's folder of questions and corpora."""

    root: Path
    mini: bool

    def splits(self, sets: Sequence[str], train_sets: Sequence[str] | None) -> dict[str, list[Question]]:
        """``train``, ``test`` and ``full``; a split without questions is empty.

        Training questions that are also test questions (after normalisation) are taken out.
        """
        test_folder = self.root / ("mini" if self.mini else "questions")
        test = self._sets(test_folder, sets, ("",)) or self._one("test", sets)
        train = self._sets(self.root / "questions", train_sets or TRAIN_SETS, ("_train",))
        train = train or self._one("train", train_sets or TRAIN_SETS)
        full = [] if self.mini else self._sets(self.root / "full_lists", sets, ("_test", "_dev"))
        leaked = {q.id for q in overlap(train, [*test, *full])}
        return {"train": [q for q in train if q.id not in leaked], "test": test, "full": full}

    def corpus(self) -> Path:
        """The corpus file. Raises :class:`DataMissing` with the names that were tried."""
        stem = self.root / ("mini/corpus_20k" if self.mini else "corpus")
        found = _existing(stem)
        if found is None:
            raise DataMissing(
                f"No corpus {stem}.jsonl (.gz, .xz). Put one there (lines with 'id' and 'contents'), name a "
                "saved index with the option 'index', or a server with retriever = 'http' and 'url'."
            )
        return found

    def _sets(self, folder: Path, sets: Sequence[str], suffixes: Sequence[str]) -> list[Question]:
        out: list[Question] = []
        for name in sets:
            paths = (_existing(folder / f"{name}{suffix}") for suffix in suffixes)
            path = next((p for p in paths if p), None)
            if path is not None:
                out += [q for q in load(path, name)]
        return out

    def _one(self, stem: str, sets: Sequence[str]) -> list[Question]:
        path = _existing(self.root / stem)
        return load(path, limit_sets=sets) if path else []


def find(data: Path | None, mini: bool) -> Folder:
    """The user's folder. Raises :class:`DataMissing` when none is named or it does not exist."""
    named = data or os.environ.get(VARIABLE)
    if not named:
        raise DataMissing(
            f"Real questions are not here. Set {VARIABLE} (or the option 'data') to a folder with "
            "questions/<set>.jsonl and corpus.jsonl, or with Search-R1's train.parquet and test.parquet; "
            "docs/search_qa.md lists the names. Without data use variant = 'mini'."
        )
    root = Path(named)
    if not root.is_dir():
        raise DataMissing(f"{root} is not a folder. Set {VARIABLE} to where the questions lie.")
    return Folder(root, mini)


def retriever(kind: str, folder: Folder, index: Path | None, urls: Sequence[str]) -> Retriever:
    """The search engine of a real run; heavy ones are imported when asked for."""
    if kind == "http":
        from seedbench.search.remote import Remote

        if not urls:
            raise ConfigError(
                "retriever = 'http' needs 'url', e.g. url = ['http://127.0.0.1:8000/retrieve']."
            )
        return Remote(tuple(urls))
    if kind == "pyserini":
        from seedbench.search.pyserini import Pyserini

        if index is None:
            raise ConfigError("retriever = 'pyserini' needs 'index', the folder of a Lucene index.")
        return Pyserini(index)
    from seedbench.search.store import open_index

    if index is not None:
        return open_index(index, kind=kind)
    if kind == "dense":
        raise ConfigError(
            "retriever = 'dense' needs 'index'. Make one: seedbench index build CORPUS FOLDER --kind dense."
        )
    from seedbench.search.bm25 import BM25

    return BM25.build(read_corpus(folder.corpus()))


def _existing(stem: Path) -> Path | None:
    found = [p for e in _ENDINGS if (p := stem.with_name(stem.name + e)).is_file()]
    return found[0] if found else None
