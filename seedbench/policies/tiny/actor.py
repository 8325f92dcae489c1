"""Acting with the tiny model: batched, cached, constrained to the announced actions.

Decoding setting ``choices``: at every token only continuations of a candidate action are possible; a token
without alternative is appended, not sampled, and carries no log-probability. The setting is the same for
every method and is named in the run record.
"""

from __future__ import annotations

import hashlib
import math
import random
import struct
from collections.abc import Sequence

import numpy as np
import torch

from seedbench.policies.tiny.model import Cache, TinyLM
from seedbench.policies.tiny.tokenizer import BOS, END, TinyTokenizer
from seedbench.policies.tiny.transcript import TurnTrace, continuation, opening, skill_block
from seedbench.types import Generation, View


def ids_sha256(ids: Sequence[int]) -> str:
    """Hash of token ids (little-endian 32-bit)."""
    return hashlib.sha256(struct.pack(f"<{len(ids)}I", *ids)).hexdigest()


class _Row:
    """What the actor keeps for one running episode."""

    def __init__(self, view: View) -> None:
        self.random = random.Random(f"act/{view.seed}")
        self.ids: list[int] = []  # all tokens of the transcript so far
        self.fed = 0  # how many of them the cache holds

    def begin(self, prompt: tuple[int, ...], candidates: list[tuple[int, ...]]) -> None:
        self.prompt = prompt
        self.candidates = candidates
        self.action: list[int] = []
        self.positions: list[int] = []
        self.allowed: list[tuple[int, ...]] = []
        self.logprobs: list[float] = []
        self.done = False

    def force(self) -> None:
        """Append every token that leaves no choice; finished when the action's end is reached."""
        while not self.done:
            options = {c[len(self.action)] for c in self.candidates}
            if len(options) > 1:
                return
            self._take(options.pop())

    def choose(self, logits: np.ndarray, temperature: float) -> None:
        """Decide one token among the candidates' next tokens from full-vocabulary ``logits``."""
        options = tuple(sorted({c[len(self.action)] for c in self.candidates}))
        z = logits[list(options)].astype(np.float64)
        z = z / temperature if temperature > 0 else z
        logp = z - z.max()
        logp = logp - math.log(np.exp(logp).sum())
        if temperature > 0:
            k = int(np.searchsorted(np.cumsum(np.exp(logp)), self.random.random(), side="right"))
            k = min(k, len(options) - 1)
        else:
            k = int(logp.argmax())
        self.positions.append(len(self.action))
        self.allowed.append(options)
        self.logprobs.append(float(logp[k]))
        self._take(options[k])

    def _take(self, token: int) -> None:
        t = len(self.action)
        self.candidates = [c for c in self.candidates if c[t] == token]
        self.action.append(token)
        self.ids.append(token)
        self.done = token == END


class TinyActor:
    """A policy over shared weights. One instance serves one block of episodes at a time."""

    privileged = False
    constrained = True

    def __init__(self, model: TinyLM, tok: TinyTokenizer, temperature: float, reserve: int = 128) -> None:
        """``reserve``: tokens of the context kept free for a teacher's skill block and the hindsight question."""
        self.model, self.tok, self.temperature = model, tok, temperature
        self.name = "tiny"
        self.limit = model.config.context - reserve
        self.rows: dict[int, _Row] = {}
        self.cache: Cache | None = None

    def forget(self, slots: Sequence[int]) -> None:
        keep = [i for i, s in enumerate(self.rows) if s not in set(slots)]
        self.rows = {s: r for s, r in self.rows.items() if s not in set(slots)}
        if not self.rows:
            self.cache = None
        elif self.cache is not None:
            self.cache.select(keep)

    def act(self, views: Sequence[View]) -> list[Generation]:
        """One action per view. Views whose transcript would not fit get ``error="context_limit"``."""
        rows = [self._open(v) for v in views]
        if list(self.rows) != [v.slot for v in views]:
            raise ValueError("act() must be given every episode that is not forgotten, in the same order")
        prompts = [(ids_sha256(r.ids), len(r.ids)) for r in rows]
        fits = [len(r.ids) + max(map(len, r.candidates)) < self.limit for r in rows]
        if all(fits):
            self._decode(rows)
            return [self._finish(r, *p) for r, p in zip(rows, prompts, strict=True)]
        # episodes that no longer fit are answered and forgotten; the others go on without them
        over = [v.slot for v, ok in zip(views, fits, strict=True) if not ok]
        self.forget(over)
        if self.rows:
            self._decode(list(self.rows.values()))
        return [
            self._finish(r, *p) if ok else Generation("", p[0], p[1], error="context_limit")
            for r, p, ok in zip(rows, prompts, fits, strict=True)
        ]

    def _open(self, view: View) -> _Row:
        row = self.rows.get(view.slot)
        if row is None:
            row = self.rows[view.slot] = _Row(view)
            first = opening(self.tok, view.history.instruction, view.history.observation)
            prompt = (
                BOS,
                *first,
            )  # the trace holds ordinary history; an acting skill is added to what is read
            row.ids += [BOS, *skill_block(self.tok, view.skill), *first]
            self.cache = self.cache or Cache(self.model.config, 0)
            self.cache.add_rows(1)
        else:
            prompt = continuation(self.tok, view.history.observation)
            row.ids += prompt
        row.begin(prompt, sorted({(*self.tok.encode(c), END) for c in view.choices}))
        row.texts = {(*self.tok.encode(c), END): c for c in reversed(view.choices)}
        return row

    @torch.inference_mode()
    def _decode(self, rows: list[_Row]) -> None:
        for row in rows:
            row.force()
        while not all(r.done for r in rows):
            new = [[] if r.done else r.ids[r.fed :] for r in rows]
            logits = self.model.append(self.cache, new).numpy()
            for row, fed, scores in zip(rows, new, logits, strict=True):
                row.fed += len(fed)
                if not row.done:
                    row.choose(scores, self.temperature)
                    row.force()

    def _finish(self, row: _Row, sha: str, length: int) -> Generation:
        trace = TurnTrace(
            row.prompt, tuple(row.action), tuple(row.positions), tuple(row.allowed), tuple(row.logprobs),
            self.temperature or 1.0,
        )  # fmt: skip
        return Generation(
            text=row.texts[tuple(row.action)],
            prompt_sha256=sha,
            prompt_tokens=length,
            new_tokens=len(row.action),
            logprob=sum(row.logprobs),
            trace=trace,
        )
