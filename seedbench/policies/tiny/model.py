"""A Qwen2-architecture causal language model small enough to train on one CPU core.

Parameter names are those of ``transformers.Qwen2ForCausalLM`` without its ``model.`` prefix, so
:func:`hf_state_dict` is a renaming and nothing else. What this module adds to the reference is a ragged
key/value cache: rows of different lengths grow by different amounts in one call, which is what a batch of
running episodes needs (history is never encoded twice).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class TinyConfig:
    """``context`` is the longest transcript in tokens; the other fields mean what Qwen2 means by them."""

    vocab: int
    width: int = 128
    layers: int = 3
    heads: int = 4
    kv_heads: int = 2
    feed_forward: int = 320
    context: int = 1024
    rope_theta: float = 10000.0

    def to_hf(self) -> dict:
        """Keyword arguments for ``transformers.Qwen2Config``."""
        return dict(
            vocab_size=self.vocab,
            hidden_size=self.width,
            intermediate_size=self.feed_forward,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            max_position_embeddings=self.context,
            rms_norm_eps=1e-6,
            rope_theta=self.rope_theta,
            tie_word_embeddings=True,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        )

    def to_dict(self) -> dict:
        return asdict(self)


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * (x * scale)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Attention(nn.Module):
    def __init__(self, c: TinyConfig) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size = c.heads, c.kv_heads, c.width // c.heads
        self.q_proj = nn.Linear(c.width, c.heads * self.size)
        self.k_proj = nn.Linear(c.width, c.kv_heads * self.size)
        self.v_proj = nn.Linear(c.width, c.kv_heads * self.size)
        self.o_proj = nn.Linear(c.heads * self.size, c.width, bias=False)

    def project(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries and keys, and values, each (B, heads, T, size)."""
        b, t, _ = x.shape
        q = self.q_proj(x).view(b, t, self.heads, self.size).transpose(1, 2)
        k = self.k_proj(x).view(b, t, self.kv_heads, self.size).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.kv_heads, self.size).transpose(1, 2)
        return _rotate(q, cos, sin), _rotate(k, cos, sin), v

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Grouped attention; ``mask`` (B, 1, T, S) is True where a query may look, None means causal."""
        b, _, t, _ = q.shape
        out = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=self.heads != self.kv_heads
        )
        return self.o_proj(out.transpose(1, 2).reshape(b, t, -1))


class FeedForward(nn.Module):
    def __init__(self, c: TinyConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(c.width, c.feed_forward, bias=False)
        self.up_proj = nn.Linear(c.width, c.feed_forward, bias=False)
        self.down_proj = nn.Linear(c.feed_forward, c.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c: TinyConfig) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(c.width)
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c.width)
        self.mlp = FeedForward(c)

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        x = x + attended
        return x + self.mlp(self.post_attention_layernorm(x))


class Cache:
    """Keys and values of running rows. Row ``i`` holds ``length[i]`` tokens, left-aligned."""

    def __init__(self, config: TinyConfig, rows: int, room: int = 128) -> None:
        self.config = config
        size = config.width // config.heads
        shape = (rows, config.kv_heads, room, size)
        self.keys = [torch.zeros(shape) for _ in range(config.layers)]
        self.values = [torch.zeros(shape) for _ in range(config.layers)]
        self.length = torch.zeros(rows, dtype=torch.long)

    @property
    def room(self) -> int:
        return self.keys[0].shape[2]

    def reserve(self, tokens: int) -> None:
        """Make room for ``tokens`` per row, doubling so that growth stays linear in total."""
        if tokens > self.room:
            extra = max(tokens, 2 * self.room) - self.room
            self.keys = [F.pad(k, (0, 0, 0, extra)) for k in self.keys]
            self.values = [F.pad(v, (0, 0, 0, extra)) for v in self.values]

    def select(self, rows: list[int]) -> None:
        """Keep these rows, in this order."""
        index = torch.tensor(rows, dtype=torch.long)
        self.keys = [k[index] for k in self.keys]
        self.values = [v[index] for v in self.values]
        self.length = self.length[index]

    def add_rows(self, rows: int) -> None:
        """Append empty rows."""
        self.keys = [F.pad(k, (0, 0, 0, 0, 0, 0, 0, rows)) for k in self.keys]
        self.values = [F.pad(v, (0, 0, 0, 0, 0, 0, 0, rows)) for v in self.values]
        self.length = F.pad(self.length, (0, rows))


class TinyLM(nn.Module):
    def __init__(self, config: TinyConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab, config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.width)
        size = config.width // config.heads
        inverse = 1.0 / (config.rope_theta ** (torch.arange(0, size, 2, dtype=torch.int64).float() / size))
        angles = torch.outer(torch.arange(config.context).float(), inverse)
        angles = torch.cat((angles, angles), -1)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        for name, p in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(p)
            elif p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def hidden(self, ids: Tensor) -> Tensor:
        """Final hidden states (B, T, width) of right-padded ``ids`` (B, T); causal, so padding is inert."""
        t = ids.shape[1]
        x = self.embed_tokens(ids)
        cos, sin = self.cos[:t], self.sin[:t]
        for layer in self.layers:
            q, k, v = layer.self_attn.project(layer.input_layernorm(x), cos, sin)
            x = layer.finish(x, layer.self_attn.attend(q, k, v, None))
        return self.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores over the vocabulary (tied embeddings)."""
        return F.linear(hidden, self.embed_tokens.weight)

    @torch.inference_mode()
    def append(self, cache: Cache, new: list[list[int]]) -> Tensor:
        """Add ``new[i]`` (at least one token) to row ``i``; logits (B, vocab) after each row's last token."""
        lengths = torch.tensor([len(n) for n in new])
        width = int(lengths.max())
        ids = torch.tensor([n + [0] * (width - len(n)) for n in new])
        rows = torch.arange(len(new))
        end = int((cache.length + lengths).max())
        cache.reserve(int(cache.length.max()) + width)
        position = cache.length[:, None] + torch.arange(width)
        angle = position.clamp(max=self.config.context - 1)
        cos, sin = self.cos[angle][:, None], self.sin[angle][:, None]
        mask = (torch.arange(end) <= position[:, :, None])[:, None]
        x = self.embed_tokens(ids)
        for i, layer in enumerate(self.layers):
            q, k, v = layer.self_attn.project(layer.input_layernorm(x), cos, sin)
            # padding tokens land behind a row's end and are overwritten by its next tokens
            cache.keys[i][rows[:, None], :, position] = k.transpose(1, 2)
            cache.values[i][rows[:, None], :, position] = v.transpose(1, 2)
            seen = cache.keys[i][:, :, :end], cache.values[i][:, :, :end]
            x = layer.finish(x, layer.self_attn.attend(q, *seen, mask))
        cache.length = cache.length + lengths
        return self.logits(self.norm(x[rows, lengths - 1]))


def hf_state_dict(model: TinyLM) -> dict[str, Tensor]:
    """The weights under the names of ``transformers.Qwen2ForCausalLM``."""
    state = {f"model.{k}": v for k, v in model.state_dict().items()}
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    return state
