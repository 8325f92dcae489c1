"""Checkpoints that are whole or absent: written beside, renamed when complete, verified when read."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import torch
from safetensors import SafetensorError

from seedbench.errors import CheckpointCorrupt, StorageFull
from seedbench.train.backbone import Backbone

KEEP = 2


class Checkpoints:
    """Folder of ``u<updates>`` checkpoints: weights, optimiser state, and a list of file hashes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, name: str, backbone: Backbone, optimizer: torch.optim.Optimizer | None = None) -> Path:
        """Write ``name``: ``start`` (reference weights) or ``u00010`` (resumable, with ``optimizer``).

        Of the resumable ones the newest two are kept.
        """
        target = self.folder / name
        part = self.folder / f"{name}.part"
        try:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            backbone.save(part)
            if optimizer is not None:
                torch.save(optimizer.state_dict(), part / "optimizer.pt")
            files = {p.name: _sha256(p) for p in sorted(part.iterdir())}
            (part / "files.json").write_text(json.dumps({"sha256": files}, indent=1))
            shutil.rmtree(target, ignore_errors=True)
            os.replace(part, target)
        except (OSError, RuntimeError, SafetensorError) as error:  # torch raises RuntimeError on a full disk
            shutil.rmtree(part, ignore_errors=True)
            raise StorageFull(
                f"Checkpoint {target} cannot be written ({str(error).splitlines()[0]}). Free some space and run the "
                "same command again: it resumes from the newest whole checkpoint."
            ) from error
        for old in self._resumable()[:-KEEP]:
            shutil.rmtree(old, ignore_errors=True)
        return target

    def latest(self) -> tuple[int, Path] | None:
        """Newest checkpoint with an optimiser state: ``(updates done, folder)``. Verified before use."""
        found = self._resumable()
        if not found:
            return None
        verify(found[-1])
        return int(found[-1].name[1:]), found[-1]

    def _resumable(self) -> list[Path]:
        return sorted(
            p.parent for p in self.folder.glob("u*/optimizer.pt") if not p.parent.name.endswith(".part")
        )


def verify(folder: Path) -> None:
    """Raise :class:`CheckpointCorrupt` when a file is missing or its hash differs."""
    cure = f"Delete {folder} and run again: it resumes from the checkpoint before it."
    try:
        listed = dict(json.loads((folder / "files.json").read_text())["sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointCorrupt(f"Checkpoint {folder} has no readable file list ({error}). {cure}") from error
    for name, digest in listed.items():
        path = folder / name
        if not path.is_file() or _sha256(path) != digest:
            raise CheckpointCorrupt(f"Checkpoint file {path} is missing or damaged. {cure}")


def load_optimizer(folder: Path, optimizer: torch.optim.Optimizer) -> None:
    path = folder / "optimizer.pt"
    try:
        optimizer.load_state_dict(torch.load(path, weights_only=True))
    except Exception as error:  # torch raises many kinds for a damaged file
        raise CheckpointCorrupt(
            f"Optimiser state {path} cannot be loaded ({error}). Delete {folder} and run again: it resumes from "
            "the checkpoint before it."
        ) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
