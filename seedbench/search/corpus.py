"""Reading a corpus: one JSON object a line, in the wiki-18 layout or with title and text apart."""

from __future__ import annotations

import gzip
import io
import json
import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seedbench.errors import DataCorrupt, DataMissing
from seedbench.search.base import Document


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """``(line number, text)`` of a text file, plain or .gz or .xz. A broken line is named, never skipped.

    Raises :class:`DataMissing` when there is no file and :class:`DataCorrupt` on bytes that are not UTF-8
    or a compressed file that was cut off.
    """
    openers: Mapping[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
    number = 0
    try:
        with openers.get(path.suffix, io.open)(path, "rb") as file:
            for number, raw in enumerate(file, 1):
                if raw.strip():
                    yield number, raw.decode("utf-8")
    except FileNotFoundError as error:
        raise DataMissing(f"{path} does not exist.") from error
    except UnicodeDecodeError as error:
        raise DataCorrupt(
            f"{path}, line {number}: not UTF-8 ({error.reason}). Re-encode the file."
        ) from error
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise DataCorrupt(f"{path} is not a whole compressed file ({error}). Fetch it again.") from error


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """``(line number, object)`` of a JSONL file."""
    for number, line in read_lines(path):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataCorrupt(f"{path}, line {number}: not JSON ({error.msg}).") from error
        if not isinstance(row, dict):
            raise DataCorrupt(f"{path}, line {number}: expected an object, found {type(row).__name__}.")
        yield number, row


def read_corpus(path: Path) -> Iterator[Document]:
    """Documents in file order. A line has ``id`` and ``contents``, or ``id``, ``title`` and ``text``.

    The id is required: rows of an index are found by it, and an id made up from the line number would point
    elsewhere as soon as the file changes.
    """
    for number, row in read_objects(path):
        identity, contents = row.get("id"), row.get("contents")
        if contents is None and isinstance(row.get("text"), str):
            contents = f'"{row.get("title", "")}"\n{row["text"]}'
        if identity is None or identity == "":
            raise DataCorrupt(f"{path}, line {number}: a passage without 'id'. Give every line its own id.")
        if not isinstance(contents, str) or not contents.strip():
            raise DataCorrupt(f"{path}, line {number}: passage '{identity}' has no 'contents' (or 'text').")
        yield Document(str(identity), contents)
