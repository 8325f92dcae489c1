"""Hashes of weights, read from safetensors files without any deep-learning library."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path

from seedbench.errors import CheckpointCorrupt


def weights_sha256(folder: Path) -> str:
    """Hash over names and bytes of all tensors of a checkpoint, sorted by name without the prefix ``model.``.

    It equals ``Backbone.sha256()`` of a backbone that hashes its state dictionary in that way (``tiny`` does).
    Raises :class:`CheckpointCorrupt` when a file cannot be read.
    """
    tensors: dict[str, bytes] = {}
    for path in sorted(folder.glob("*.safetensors")):
        tensors |= {name.removeprefix("model."): data for name, data in read_tensors(path).items()}
    if not tensors:
        raise CheckpointCorrupt(f"{folder} holds no weights (no *.safetensors).")
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name])
    return digest.hexdigest()


def read_tensors(path: Path) -> dict[str, bytes]:
    """Tensor name -> raw little-endian bytes. The format: length of a JSON header, header, data."""
    try:
        raw = path.read_bytes()
        (size,) = struct.unpack("<Q", raw[:8])
        header = json.loads(raw[8 : 8 + size])
        data = memoryview(raw)[8 + size :]
        header.pop("__metadata__", None)
        return {n: bytes(data[slice(*entry["data_offsets"])]) for n, entry in header.items()}
    except (OSError, struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointCorrupt(f"Weights {path} cannot be read: {error}.") from error


def file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
