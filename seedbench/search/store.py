"""Index folders: build, save, open memory-mapped, describe, verify.

A folder holds the index, the ids and texts in corpus order, ``index.json`` (settings and fingerprint) and
``corpus.json`` (which file it was made from: name, sha256, number of passages). It stands by itself: no
second file has to match it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from seedbench.errors import ConfigError, DataCorrupt, DataMissing
from seedbench.search.base import Retriever
from seedbench.search.bm25 import BM25, Settings, corpus_fingerprint
from seedbench.search.corpus import read_corpus
from seedbench.search.dense import Dense, DenseSettings

Kind = Literal["bm25", "dense"]


def build_index(corpus: Path, folder: Path, settings: Settings | DenseSettings) -> dict[str, Any]:
    """Index ``corpus`` (JSONL) into ``folder``, which appears whole or not at all; returns its description.

    An existing index is replaced; a folder that holds anything else is refused.
    """
    if folder.exists() and not (folder / "index.json").is_file():
        raise ConfigError(f"{folder} exists and is no search index. Choose another folder.")
    scratch = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}")
    try:
        if isinstance(settings, DenseSettings):
            _write_dense(Dense.build(read_corpus(corpus), settings), scratch)
        else:
            BM25.build(read_corpus(corpus), settings).save(scratch)
        source = {"file": corpus.name, "sha256": file_sha256(corpus), "bytes": corpus.stat().st_size}
        (scratch / "corpus.json").write_text(json.dumps(source, indent=1), encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return describe(folder)


def _write_dense(dense: Dense, folder: Path) -> None:
    folder.mkdir(parents=True)
    meta = {"kind": "dense", "format": 1, **dense.write(folder)}
    meta["sha256"] = {p.name: file_sha256(p) for p in sorted(folder.iterdir())}
    (folder / "index.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")


def open_index(folder: Path, kind: str = "", *, mmap: bool = True) -> Retriever:
    """Open a saved index. ``kind`` names the one that is expected; another is refused."""
    found = kind_of(folder)
    if kind and kind != found:
        raise ConfigError(f"{folder} is a {found} index, not {kind}. Set retriever = '{found}'.")
    if found == "dense":
        return Dense.read(folder, _meta(folder), mmap=mmap)
    return BM25.load(folder, mmap=mmap)


def kind_of(folder: Path) -> str:
    return str(_meta(folder).get("kind", "bm25"))


def describe(folder: Path) -> dict[str, Any]:
    """Kind, settings, fingerprint, number of passages, bytes on disk, and the corpus it was made from."""
    meta = {k: v for k, v in _meta(folder).items() if k != "sha256"}
    meta.setdefault("kind", "bm25")
    meta["bytes"] = sum(p.stat().st_size for p in folder.iterdir())
    source = folder / "corpus.json"
    if source.is_file():
        meta["corpus"] = json.loads(source.read_text(encoding="utf-8"))
    return meta


def check_index(folder: Path, corpus: Path | None = None) -> list[str]:
    """Read every byte of an index; with ``corpus`` also compare order, ids and texts with that file.

    Returns what was checked, one line each. Raises :class:`DataCorrupt` on the first fault.
    """
    meta = _meta(folder)
    for name, expected in sorted(_hashes(meta).items()):
        if not (folder / name).is_file():
            raise DataCorrupt(f"{folder / name} is missing. Build the index again.")
        if file_sha256(folder / name) != expected:
            raise DataCorrupt(f"{folder / name} has changed since it was written. Build the index again.")
    done = [f"{len(_hashes(meta))} files unchanged"]
    index = open_index(folder)
    if len(index) != meta["documents"]:  # type: ignore[arg-type]
        raise DataCorrupt(f"{folder} names {meta['documents']} passages and holds {len(index)}.")  # type: ignore[arg-type]
    done.append(f"{meta['documents']} passages")
    if corpus is not None:
        _same_corpus(index, corpus, folder)
        done.append(f"same passages in the same order as {corpus.name}")
    return done


def _same_corpus(index: Any, corpus: Path, folder: Path) -> None:
    if isinstance(index, BM25):
        if corpus_fingerprint(read_corpus(corpus), index.settings) == index.fingerprint:
            return
    count = 0
    for row, document in enumerate(read_corpus(corpus)):
        if row >= len(index) or (index.ids[row], index.texts[row]) != (document.id, document.contents):
            raise DataCorrupt(
                f"{folder} does not belong to {corpus}: passage {row} ('{document.id}') differs. "
                "Build the index again from this file."
            )
        count += 1
    if count != len(index):
        raise DataCorrupt(f"{folder} holds {len(index)} passages, {corpus} only {count}. Build it again.")


def _hashes(meta: dict[str, Any]) -> dict[str, str]:
    """File name -> sha256. BM25 lists its arrays by name without ending."""
    ending = "" if meta.get("kind") == "dense" else ".npy"
    return {f"{name}{ending}": value for name, value in meta["sha256"].items()}


def _meta(folder: Path) -> dict[str, Any]:
    path = folder / "index.json"
    if not path.is_file():
        raise DataMissing(
            f"No search index in {folder} (index.json is absent). "
            f"Make one: seedbench index build CORPUS {folder}."
        )
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
        absent = {"fingerprint", "sha256", "documents", "format"} - set(meta)
    except (ValueError, TypeError) as error:
        raise DataCorrupt(f"{path} is not an index description ({error}). Build the index again.") from error
    if absent or meta["format"] != 1:
        raise DataCorrupt(f"{path} was written by another version. Build the index again.")
    return meta


def file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    for block in _blocks(path):
        digest.update(block)
    return digest.hexdigest()


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            yield block
