"""A transformers causal LM cut into body and head, fed with ragged rows of token ids.

Padding is this module's own business: masks and positions come from lengths, never from token values, so a
pad token that is also the end token does no harm (BR-026, BR-029).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import DynamicCache

from seedbench.errors import ConfigError

#: Positions whose full-vocabulary logits exist at one time.
HEAD_CHUNK = 1024
BANNED = -1e9


class ChatModel:
    """``inner`` keeps float32 weights; matrix products run in ``compute``. Dropout is off, always."""

    def __init__(self, inner: Any, compute: torch.dtype, checkpointing: bool = False) -> None:
        self.inner, self.compute, self.checkpointing = inner, compute, checkpointing
        self.device = next(inner.parameters()).device
        self._cache_name = (
            "cache" if "cache" in inspect.signature(inner.forward).parameters else "past_key_values"
        )
        for module in inner.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
            if hasattr(module, "attention_dropout"):
                module.attention_dropout = 0.0
        inner.eval()
        if checkpointing:
            inner.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    def products(self) -> AbstractContextManager[Any]:
        """Arithmetic of the forward pass. Kept open over a whole generation, weights are cast only once."""
        if self.compute == torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, self.compute)

    def verify(self) -> None:
        """Raise :class:`ConfigError` if logits are more than a linear head on the body's output."""
        ids = torch.tensor([[0, 1, 2, 3]], device=self.device)
        with torch.no_grad(), self.products():
            whole = self.inner(input_ids=ids).logits.float()
            parts = self.inner.get_output_embeddings()(self._body(ids, torch.ones_like(ids))).float()
        if not torch.allclose(whole, parts, atol=1e-3):
            raise ConfigError(
                f"{type(self.inner).__name__} changes its logits after the output layer; this backbone cannot "
                "score it. Use a Qwen, Llama or SmolLM model."
            )

    # -- scoring -------------------------------------------------------------------------------------------
    def _body(self, ids: Tensor, mask: Tensor) -> Tensor:
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        body = self.inner.get_decoder()
        return body(
            input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False
        ).last_hidden_state

    def score(
        self,
        rows: Sequence[Sequence[int]],
        where: Sequence[Sequence[int]],
        temperatures: Sequence[float],
        allowed: Sequence[Sequence[Sequence[int]]] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Log-probability and entropy (nats) at positions ``where[i]`` of ``rows[i]``, flat over rows.

        ``allowed[i][k]``: ids that were possible at that position; empty means all of them.
        """
        # layers recompute their activations only in training mode, which changes nothing else here
        self.inner.train(self.checkpointing and torch.is_grad_enabled())
        flat = [(i, p) for i, w in enumerate(where) for p in w]
        b, t = (torch.tensor(x, device=self.device) for x in zip(*flat, strict=True))
        targets = torch.tensor([rows[i][p] for i, p in flat], device=self.device)
        heat = torch.tensor([temperatures[i] for i, _ in flat], device=self.device)
        options = [a for row in allowed for a in row] if allowed is not None else [()] * len(flat)
        width = max(map(len, rows))
        ids = torch.tensor([[*r, *[0] * (width - len(r))] for r in rows], device=self.device)
        mask = torch.tensor([[1] * len(r) + [0] * (width - len(r)) for r in rows], device=self.device)
        with self.products():
            hidden = self._body(ids, mask)[b, t - 1]
            parts = []
            for k in range(0, len(flat), HEAD_CHUNK):
                cut = slice(k, k + HEAD_CHUNK)
                banned = self._banned(options[cut])
                arguments = (hidden[cut], targets[cut], heat[cut], banned)
                if torch.is_grad_enabled():
                    parts.append(checkpoint(self._head, *arguments, use_reentrant=False))
                else:
                    parts.append(self._head(*arguments))
        self.inner.eval()
        logp, entropy = zip(*parts, strict=True)
        return torch.cat(logp), torch.cat(entropy)

    def _head(
        self, hidden: Tensor, targets: Tensor, heat: Tensor, banned: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        logits = self.inner.get_output_embeddings()(hidden).float()
        if banned is not None:
            logits = logits.masked_fill(banned, BANNED)
        logp = F.log_softmax(logits / heat[:, None], -1)
        entropy = -(logp.exp() * logp).sum(-1)
        return logp.gather(1, targets[:, None])[:, 0], entropy

    def _banned(self, options: Sequence[Sequence[int]]) -> Tensor | None:
        """(N, V) True at ids that were not possible, or None when everything was."""
        if not any(options):
            return None
        vocabulary = self.inner.get_output_embeddings().weight.shape[0]
        banned = torch.zeros(len(options), vocabulary, dtype=torch.bool)
        for k, ids in enumerate(options):
            if ids:
                banned[k] = True
                banned[k, list(ids)] = False
        return banned.to(self.device)


class Stream:
    """Rows that grow at their own pace over one KV cache. Build and use under ``torch.no_grad``."""

    def __init__(self, model: ChatModel, rows: int) -> None:
        self.model = model
        self.cache = DynamicCache()
        self.mask = torch.zeros(rows, 0, dtype=torch.long, device=model.device)

    def append(self, chunks: Sequence[Sequence[int]]) -> Tensor:
        """Feed at least one token per row; (B, V) float32 logits after each row's last token.

        Shorter chunks are padded on the left. The holes this leaves in the cache are masked for ever, and
        positions count real tokens only, so a row's numbers are those it would have alone.
        """
        width = max(map(len, chunks))
        device = self.model.device
        ids = torch.tensor([[*[0] * (width - len(c)), *c] for c in chunks], device=device)
        new = torch.tensor([[0] * (width - len(c)) + [1] * len(c) for c in chunks], device=device)
        before = self.mask.sum(-1, keepdim=True)
        self.mask = torch.cat([self.mask, new], -1)
        out = self.model.inner(
            input_ids=ids,
            attention_mask=self.mask,
            position_ids=(before + new.cumsum(-1) - 1).clamp(min=0),
            use_cache=True,
            logits_to_keep=1,
            **{self.model._cache_name: self.cache},
        )
        return out.logits[:, -1].float()

    def select(self, keep: Sequence[int]) -> None:
        """Go on with these rows only, in this order."""
        index = torch.tensor(keep, device=self.model.device)
        self.mask = self.mask[index]
        self.cache.batch_select_indices(index)
