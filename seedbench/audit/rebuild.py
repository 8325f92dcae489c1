"""Rebuilding the prompt a model was fed, from ordinary history alone, without loading the model.

A *rebuilder* knows how one kind of backbone turns history into what it reads, and gives the hash that the
policy recorded (``Generation.prompt_sha256``). Another backbone adds a row to :data:`REBUILDERS`.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

from seedbench.contracts import Environment
from seedbench.errors import SeedbenchError
from seedbench.policies.openai import PREFIX, messages_sha256
from seedbench.prompt import SkillPosition, with_skill
from seedbench.types import History, Message

#: (environment, history, text of a declared skill or None) -> hashes of the prompts that this may give: one
#: for ordinary history, one per position in which methods may declare a skill
Hashes = Callable[[Environment, History, str | None], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Rebuilder:
    """``transcript``: the model reads the whole history of the episode as one growing text and does not use
    the environment's ``render``; otherwise it reads what ``render`` shows."""

    name: str
    transcript: bool
    hashes: Hashes


#: What a rebuilder is made from: the backbone's options, and the folders in which its tokenizer may lie.
Maker = Callable[[Mapping[str, Any], Sequence[Path]], "Rebuilder | None"]


def rebuilder_for(config: Mapping[str, Any], folders: Iterable[Path]) -> Rebuilder | None:
    """The rebuilder for the ``backbone`` section of a run's configuration; None when there is no way to
    rebuild: the backbone is unknown, or none of ``folders`` has its tokenizer."""
    name = str(config.get("name", ""))
    make = REBUILDERS.get(name) or next((m for start, m in FAMILIES.items() if name.startswith(start)), None)
    return make(config.get("options") or {}, list(folders)) if make else None


def tiny(options: Mapping[str, Any], folders: Sequence[Path]) -> Rebuilder | None:
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

    def hashes(environment: Environment, history: History, skill: str | None) -> tuple[str, ...]:
        return (ids_sha256(prompt_ids(tok, history, skill)),)

    return Rebuilder("tiny", True, hashes)


def chat(options: Mapping[str, Any], folders: Sequence[Path]) -> Rebuilder | None:
    """A chat model reads what the environment renders, through its own template, within its token limit.

    The template engine comes with transformers; no weights are read.
    """
    place = next((f for f in folders if _holds_chat_model(f)), None)
    if place is None:
        return None
    from transformers import AutoTokenizer

    from seedbench.policies.hf.options import HfOptions
    from seedbench.policies.hf.text import ChatText, truncated

    settings = HfOptions(**options)
    tokenizer = AutoTokenizer.from_pretrained(place, local_files_only=True)
    text = ChatText(tokenizer, {tokenizer.eos_token_id}, settings.enable_thinking)
    known = json.loads((place / "config.json").read_text()).get("max_position_embeddings", 0)
    room = min(settings.max_prompt_tokens, (settings.context or known) - settings.max_new_tokens)

    def hashes(environment: Environment, history: History, skill: str | None) -> tuple[str, ...]:
        prompts = [text.prompt(messages) for messages in _versions(environment, history, skill)]
        return tuple(ids_sha256(truncated(ids, room, settings.truncation) or ids) for ids in prompts)

    return Rebuilder("chat template", False, hashes)


def served(options: Mapping[str, Any], folders: Sequence[Path]) -> Rebuilder:
    """A model behind a server is sent what the environment renders, as messages."""

    def hashes(environment: Environment, history: History, skill: str | None) -> tuple[str, ...]:
        return tuple(messages_sha256(messages) for messages in _versions(environment, history, skill))

    return Rebuilder("messages", False, hashes)


def _versions(environment: Environment, history: History, skill: str | None) -> list[tuple[Message, ...]]:
    """What the environment renders; with a declared skill, once for each place methods may put it."""
    plain = environment.render(history)
    if skill is None:
        return [plain]
    return [with_skill(plain, skill, p, history.instruction) for p in get_args(SkillPosition)]


def _holds_chat_model(folder: Path) -> bool:
    return (folder / "tokenizer_config.json").is_file() and (folder / "config.json").is_file()


#: Beginning of a backbone's name -> maker.
FAMILIES: dict[str, Maker] = {"hf:": chat, PREFIX: served}
#: Backbone name -> maker. Adding a backbone adds its line.
REBUILDERS: dict[str, Maker] = {
    "tiny": tiny,
    "qwen2.5-3b": chat,
    "qwen2.5-7b": chat,
    "qwen3-1.7b": chat,
    "smollm2-135m": chat,
}


def ids_sha256(ids: Sequence[int]) -> str:
    """Hash of token ids as little-endian 32-bit numbers: what policies record."""
    return hashlib.sha256(struct.pack(f"<{len(ids)}I", *ids)).hexdigest()


def tokenizer_folders(run_folder: Path, config: Mapping[str, Any]) -> list[Path]:
    """Where the tokenizer of a run may lie: its checkpoints, the path it was started from, the package."""
    backbone = config.get("backbone", {})
    path = (backbone.get("options") or {}).get("path") or str(backbone.get("name", "")).removeprefix("hf:")
    shipped = Path(str(files("seedbench"))) / "assets" / "tiny" / config.get("env", {}).get("name", "")
    return [*sorted((run_folder / "checkpoints").glob("*")), Path(path), shipped]
