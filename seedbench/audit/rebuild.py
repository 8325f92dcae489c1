"""Rebuilding the prompt a model was fed, from ordinary history alone, without loading the model.

A *rebuilder* knows how one kind of backbone turns history into what it reads, and gives the hash that the
policy recorded (``Generation.prompt_sha256``). Another backbone adds a row to :data:`REBUILDERS`.
"""

from __future__ import annotations

import hashlib
import importlib
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from seedbench.errors import SeedbenchError
from seedbench.types import Environment, History

#: (environment, history, text of a declared skill or None) -> hash of the prompt
Hash = Callable[[Environment, History, str | None], str]


@dataclass(frozen=True, slots=True)
class Rebuilder:
    """``transcript``: the model reads the whole history of the episode as one growing text and does not use
    the environment's ``render``; otherwise it reads what ``render`` shows."""

    name: str
    transcript: bool
    sha256: Hash


#: Decoding setting of the manifest's ``model`` entry -> "module:function". The function is given the model
#: entry and the folders in which tokenizer files may lie, and returns a :class:`Rebuilder`, or None when
#: none of them has what it needs.
REBUILDERS: dict[str, str] = {
    "choices": "seedbench.audit.rebuild:tiny",
}


def rebuilder_for(model: Mapping[str, Any], folders: Iterable[Path]) -> Rebuilder | None:
    """The rebuilder of a backbone as the manifest describes it; None when there is no way to rebuild."""
    target = REBUILDERS.get(str(model.get("decoding", "")))
    if target is None:
        return None
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)(model, list(folders))


def tiny(model: Mapping[str, Any], folders: Sequence[Path]) -> Rebuilder | None:
    """The tiny model reads one growing transcript: the whole ordinary history, as tokens."""
    from seedbench.policies.tiny.tokenizer import TinyTokenizer
    from seedbench.policies.tiny.transcript import prompt_ids

    tok = None
    for folder in folders:
        if (folder / "tokenizer.json").is_file():
            try:
                tok = TinyTokenizer.load(folder / "tokenizer.json")
                break
            except SeedbenchError:
                continue
    if tok is None:
        return None

    def sha256(environment: Environment, history: History, skill: str | None) -> str:
        return ids_sha256(prompt_ids(tok, history, skill))

    return Rebuilder("tiny", True, sha256)


def ids_sha256(ids: Sequence[int]) -> str:
    """Hash of token ids as little-endian 32-bit numbers: what policies record."""
    return hashlib.sha256(struct.pack(f"<{len(ids)}I", *ids)).hexdigest()


def tokenizer_folders(run_folder: Path, config: Mapping[str, Any]) -> list[Path]:
    """Where the tokenizer of a run may lie: its checkpoints, the path it was started from, the package."""
    options = config.get("backbone", {}).get("options", {})
    environment = config.get("env", {}).get("name", "")
    named = [Path(options["path"])] if isinstance(options.get("path"), str) else []
    shipped = Path(str(files("seedbench"))) / "assets" / "tiny" / environment
    return [*sorted((run_folder / "checkpoints").glob("*")), *named, shipped]
