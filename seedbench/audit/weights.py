"""Hashes of weights, read from safetensors files without any deep-learning library."""

from __future__ import annotations

import hashlib
import json
import mmap
import struct
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from seedbench.errors import CheckpointCorrupt

_TIED = ("model.embed_tokens.weight", "lm_head.weight")


def weights_sha256(folder: Path) -> tuple[str, ...]:
    """Hashes over names and bytes of all tensors of a checkpoint, sorted by name.

    A backbone hashes its own state dictionary; how its names are written to a file differs. The first hash
    drops the prefix ``model.`` (the tiny model), the second keeps names as they are, the third calls a tied
    embedding by the name of the output layer (which sorts first in transformers). Any of them proves the
    bytes. Raises :class:`CheckpointCorrupt` when a file cannot be read.
    """
    with ExitStack() as stack:
        tensors: dict[str, memoryview] = {}
        for path in sorted(folder.glob("*.safetensors")):
            tensors |= read_tensors(path, stack)
        if not tensors:
            raise CheckpointCorrupt(f"{folder} holds no weights (no *.safetensors).")
        named = (
            {n.removeprefix("model."): t for n, t in tensors.items()},
            tensors,
            {(_TIED[1] if n == _TIED[0] else n): t for n, t in tensors.items()},
        )
        out = tuple(_digest(names) for names in named)
        for view in tensors.values():
            view.release()
    return out


def _digest(tensors: Mapping[str, memoryview]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name])
    return digest.hexdigest()


def read_tensors(path: Path, stack: ExitStack) -> dict[str, memoryview]:
    """Tensor name -> raw little-endian bytes. The format: length of a JSON header, header, data."""
    try:
        file = stack.enter_context(path.open("rb"))
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        header.pop("__metadata__", None)
        places = {n: entry["data_offsets"] for n, entry in header.items()}
        view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return dict(_slices(view, places, 8 + size))
    except (OSError, struct.error, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise CheckpointCorrupt(f"Weights {path} cannot be read: {error}.") from error


def _slices(
    view: memoryview, places: Mapping[str, tuple[int, int]], offset: int
) -> Iterator[tuple[str, memoryview]]:
    for name, (begin, end) in places.items():
        if not 0 <= begin <= end <= len(view) - offset:
            raise ValueError(f"tensor '{name}' lies outside the file")
        yield name, view[offset + begin : offset + end]


def file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
