"""Sampling with a private random stream per row, so that no row's draw depends on its neighbours.

A draw is one uniform number looked up in the cumulative distribution: two batch compositions, whose logits
differ by rounding only, give the same token unless the number falls into that rounding.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from seedbench.policies.hf.model import ChatModel, Stream


@dataclass(slots=True)
class Sampled:
    """``ids`` as decided or appended, ``positions`` of the decided ones, their log-probabilities at the
    sampling temperature (at 1 for greedy), and whether the token limit ended it."""

    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    allowed: list[tuple[int, ...]] = field(default_factory=list)
    truncated: bool = False


def pick(logits: Tensor, temperature: float, draws: Sequence[float]) -> tuple[list[int], list[float]]:
    """Tokens and their log-probabilities from (B, V) logits; ``draws`` are uniform in [0, 1).

    Temperature 0 is greedy, its log-probability that at temperature 1.
    """
    logp = torch.log_softmax(logits.float() / (temperature or 1.0), -1)
    if temperature == 0:
        tokens = logits.argmax(-1, keepdim=True)
    else:
        total = logp.double().exp().cumsum(-1)
        at = torch.tensor(draws, dtype=torch.float64, device=logits.device)[:, None] * total[:, -1:]
        tokens = torch.searchsorted(total, at, right=True).clamp(max=logits.shape[-1] - 1)
    return tokens[:, 0].tolist(), logp.gather(1, tokens)[:, 0].tolist()


@torch.no_grad()
def sample_free(
    model: ChatModel,
    prompts: Sequence[Sequence[int]],
    streams: Sequence[random.Random],
    stop: frozenset[int],
    limit: int,
    temperature: float,
) -> list[Sampled]:
    """Until a ``stop`` id is sampled (and kept) or ``limit`` tokens are there; nothing is put in its place."""
    out = [Sampled() for _ in prompts]
    live = list(range(len(prompts)))
    stream = Stream(model, len(prompts))
    with model.products():
        logits = stream.append(prompts)
        while True:
            draws = [streams[i].random() for i in live] if temperature else []
            tokens, logprobs = pick(logits, temperature, draws)
            for i, token, logp in zip(live, tokens, logprobs, strict=True):
                row = out[i]
                row.positions.append(len(row.ids))
                row.ids.append(token)
                row.logprobs.append(logp)
                row.truncated = token not in stop and len(row.ids) >= limit
            keep = [j for j, i in enumerate(live) if tokens[j] not in stop and not out[i].truncated]
            if not keep:
                return out
            if len(keep) < len(live):
                stream.select(keep)
                live = [live[j] for j in keep]
            logits = stream.append([out[i].ids[-1:] for i in live])


class _Choice:
    """One row that walks down the tree of its candidates' tokens."""

    def __init__(self, prompt: Sequence[int], candidates: Sequence[tuple[int, ...]]) -> None:
        self.left = sorted(set(candidates))
        self.new = list(prompt)  # not fed yet
        self.out = Sampled()
        self.force()

    @property
    def done(self) -> bool:
        return len(self.left) == 1 and len(self.left[0]) == len(self.out.ids)

    def options(self) -> tuple[int, ...]:
        return tuple(sorted({c[len(self.out.ids)] for c in self.left}))

    def force(self) -> None:
        """Append every token that leaves no choice."""
        while not self.done and len(options := self.options()) == 1:
            self._take(options[0])

    def decide(self, logits: Tensor, temperature: float, stream: random.Random) -> None:
        options = self.options()
        draws = [stream.random()] if temperature else []
        (k,), (logp,) = pick(logits[list(options)][None], temperature, draws)
        self.out.positions.append(len(self.out.ids))
        self.out.allowed.append(options)
        self.out.logprobs.append(logp)
        self._take(options[k])
        self.force()

    def _take(self, token: int) -> None:
        t = len(self.out.ids)
        self.left = [c for c in self.left if c[t] == token]
        self.out.ids.append(token)
        self.new.append(token)


@torch.no_grad()
def sample_choices(
    model: ChatModel,
    prompts: Sequence[Sequence[int]],
    streams: Sequence[random.Random],
    candidates: Sequence[Sequence[tuple[int, ...]]],
    temperature: float,
) -> list[Sampled]:
    """One of ``candidates[i]`` (token ids, the end token last) for each prompt."""
    rows = [_Choice(p, c) for p, c in zip(prompts, candidates, strict=True)]
    live = [i for i, r in enumerate(rows) if not r.done]
    stream = Stream(model, len(live))
    with model.products():
        while live:
            logits = stream.append([rows[i].new for i in live]).cpu()
            for j, i in enumerate(live):
                rows[i].new = []
                rows[i].decide(logits[j], temperature, streams[i])
            keep = [j for j, i in enumerate(live) if not rows[i].done]
            if len(keep) < len(live):
                live = [live[j] for j in keep]
                if live:
                    stream.select(keep)
    return [r.out for r in rows]


def side_by_side(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Consecutive rows whose padded size stays within ``budget`` tokens (one row at least)."""
    batch: list[int] = []
    longest = 0
    for i, n in enumerate(lengths):
        longest = max(longest, n)
        if batch and longest * (len(batch) + 1) > budget:
            yield batch
            batch, longest = [], n
        batch.append(i)
    if batch:
        yield batch
