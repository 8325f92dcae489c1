"""From a name and options to a backbone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from seedbench.config import validated
from seedbench.errors import ConfigError, DataCorrupt
from seedbench.policies.hf.backbone import HfBackbone
from seedbench.policies.hf.files import SMOLLM, locate, reason
from seedbench.policies.hf.model import ChatModel
from seedbench.policies.hf.options import HfOptions
from seedbench.policies.hf.text import ChatText


def load_hf(name: str, repo_or_path: str, options: Mapping[str, Any]) -> HfBackbone:
    """The backbone ``name``. Raises :class:`ConfigError` for wrong options, :class:`ModelMissing` without weights.

    ``smollm2-135m`` decodes by ``choices`` unless told otherwise: it was never seen to keep the answer format.
    """
    defaults = {"decoding": "choices"} if name == SMOLLM else {}
    settings: HfOptions = validated(HfOptions, {**defaults, **options}, f"options of backbone '{name}'")
    logging.disable_progress_bar()  # one bar per file and checkpoint would tear the run's own display
    folder = locate(name, repo_or_path, settings)
    device = _device(settings.device)
    compute = _compute(settings.dtype, device)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        inner = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, dtype=torch.float32, attn_implementation="sdpa"
        )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise DataCorrupt(
            f"The model in {folder} cannot be loaded ({reason(error)}). Copy or download it again."
        ) from error
    if tokenizer.eos_token_id is None:
        raise ConfigError(f"The tokenizer in {folder} names no end token (eos_token).")
    model = ChatModel(inner.to(device), compute, settings.gradient_checkpointing)
    model.verify()
    text = ChatText(tokenizer, _stop_ids(inner, tokenizer), settings.enable_thinking)
    return HfBackbone(name, model, text, settings)


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(
            f"backbone.options.device = '{name}' cannot be used here ({reason(error)})."
        ) from error
    return device


def _compute(name: str, device: torch.device) -> torch.dtype:
    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


def _stop_ids(inner: Any, tokenizer: Any) -> set[int]:
    """Every id that ends a response: the tokenizer's, and those of the generation configuration."""
    found = getattr(getattr(inner, "generation_config", None), "eos_token_id", None)
    more = found if isinstance(found, (list, tuple)) else [found]
    return {tokenizer.eos_token_id, *(i for i in more if i is not None)}
