"""``seedbench pretrain tiny``: the seeded, reproducible recipe behind the shipped weights.

First the world is learnt from clean demonstrations, then the mix: a flawed demonstrator without a skill
(headroom for reinforcement learning), the clean one with a skill (a teacher context worth distilling), wrong
skills to be ignored, and skills to be written. Entity tokens share structure while they are learnt: the
embedding of ``cabinet 7`` is its own vector plus one for *cabinet* plus one for *7*; the sum is what ships.
"""

from __future__ import annotations

import math
import multiprocessing
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrize

from seedbench.policies.tiny.backbone import TinyBackbone, _pad
from seedbench.policies.tiny.material import Chunk, Material, Mix, WriteRow
from seedbench.policies.tiny.model import TinyConfig, TinyLM
from seedbench.policies.tiny.tokenizer import TinyTokenizer
from seedbench.policies.tiny.transcript import skill_block
from seedbench.train.backbone import Sample
from seedbench.train.batch import micro_batches

WORLD = Mix(plain=0.75, guided=0.15, misled=0.0, written=0.10, flawed=False)
HABITS = Mix(plain=0.38, guided=0.34, misled=0.10, written=0.18, flawed=True)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Optimiser steps of the two phases, padded tokens a step, peak learning rate, share of the language
    model loss on all tokens (it teaches names and copying), and the shape of the model."""

    seed: int = 0
    world_steps: int = 1500
    habit_steps: int = 900
    tokens: int = 6000
    learning_rate: float = 2e-3
    lm_weight: float = 0.3
    write_weight: float = 1.0
    width: int = 128
    layers: int = 3
    feed_forward: int = 320
    context: int = 1024
    workers: int = 1
    log_every: int = 50


class _Composed(nn.Module):
    """Adds what tokens have in common: a vector per kind of entity and one per number."""

    def __init__(self, tok: TinyTokenizer, width: int) -> None:
        super().__init__()
        vocabulary = sorted(tok.inner.get_vocab().items(), key=lambda item: item[1])
        kinds, numbers = {"": 0}, {"": 0}
        kind_of, number_of = [], []
        for word, _ in vocabulary:
            kind, _, number = word.rpartition(" ")
            if not (kind and number.isdigit()):
                kind, number = (word, "") if word.isalpha() else ("", "")
            kind_of.append(kinds.setdefault(kind, len(kinds)))
            number_of.append(numbers.setdefault(number, len(numbers)))
        self.register_buffer("kind_of", torch.tensor(kind_of))
        self.register_buffer("number_of", torch.tensor(number_of))
        self.kinds = nn.Parameter(torch.randn(len(kinds), width) * 0.02)
        self.numbers = nn.Parameter(torch.randn(len(numbers), width) * 0.02)

    def forward(self, own: Tensor) -> Tensor:
        return own + self.kinds[self.kind_of] + self.numbers[self.number_of]


def pretrain(name: str, recipe: Recipe, report: Callable[[dict], None]) -> TinyBackbone:
    """Train a tiny model for environment ``name``. Equal recipes give equal weights on equal machines."""
    torch.set_num_threads(1)
    torch.manual_seed(recipe.seed)
    material = Material(name, recipe.seed)
    tok = material.tokenizer()
    config = TinyConfig(
        tok.size, recipe.width, recipe.layers, feed_forward=recipe.feed_forward, context=recipe.context
    )
    model = TinyLM(config)
    parametrize.register_parametrization(model.embed_tokens, "weight", _Composed(tok, recipe.width))
    backbone = TinyBackbone(model, tok)
    steps = recipe.world_steps + recipe.habit_steps
    optimizer = torch.optim.AdamW(
        model.parameters(), recipe.learning_rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    began, tokens, sums = time.perf_counter(), 0, {}
    for step, batch in enumerate(_batches(material, tok, recipe), 1):
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate * _schedule(step, steps)
        with parametrize.cached():
            losses = _losses(backbone, batch, recipe)
            optimizer.zero_grad(set_to_none=True)
            losses["total"].backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        tokens += batch.tokens
        for key, value in losses.items():
            sums[key] = sums.get(key, 0.0) + float(value.detach())
        if step % recipe.log_every == 0 or step == steps:
            mean = {k: round(v / recipe.log_every, 4) for k, v in sums.items()}
            report({"step": step, "tokens": tokens, "seconds": round(time.perf_counter() - began, 1), **mean})
            sums = {}
        if step == steps:
            break
    parametrize.remove_parametrizations(model.embed_tokens, "weight", leave_parametrized=True)
    return backbone


def _schedule(step: int, steps: int) -> float:
    """Linear rise over 60 steps, cosine fall to a twentieth."""
    return min(1.0, step / 60) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / steps)))


@dataclass(frozen=True, slots=True)
class _Batch:
    act: Sequence[Sample]
    write: Sequence[WriteRow]
    tokens: int


def _batches(material: Material, tok: TinyTokenizer, recipe: Recipe) -> Iterator[_Batch]:
    """Endless batches: rows of some chunks pooled, sorted by length, cut to the token budget, shuffled."""
    made, steps = 0, 0

    def mix() -> Mix:
        return WORLD if steps < recipe.world_steps else HABITS

    for chunks in _pools(material, tok, recipe.workers, mix):
        rows: list[Sample | WriteRow] = [r for c in chunks for r in (*c.act, *c.write)]
        lengths = [_length(r) for r in rows]
        batches = list(micro_batches(lengths, range(len(rows)), recipe.tokens))
        random.Random(f"batches/{recipe.seed}/{made}").shuffle(batches)
        made += 1
        for index in batches:
            chosen = [rows[i] for i in index]
            steps += 1
            yield _Batch(
                [r for r in chosen if isinstance(r, Sample)],
                [r for r in chosen if isinstance(r, WriteRow)],
                sum(lengths[i] for i in index),
            )


def _length(row: Sample | WriteRow) -> int:
    if isinstance(row, WriteRow):
        return len(row.question) + len(row.answer)
    return row.length + (40 if row.skill else 0)


_making: tuple[Material, TinyTokenizer] | None = None


def _make(i: int, mix: Mix) -> Chunk:
    assert _making is not None
    material, tok = _making
    return material.chunk(i, mix, tok)


def _pools(
    material: Material, tok: TinyTokenizer, workers: int, mix: Callable[[], Mix], size: int = 6
) -> Iterator[list[Chunk]]:
    """Endless groups of ``size`` chunks in order, made by ``workers`` processes beside the training one.

    What a chunk holds is asked of ``mix`` when it is ordered, always one group ahead, so the order of
    chunks and their content do not depend on the number of workers.
    """
    global _making
    _making = (material, tok)
    context = multiprocessing.get_context("fork")
    with context.Pool(workers) as pool:
        ahead = [pool.apply_async(_make, (k, mix())) for k in range(size)]
        made = size
        while True:
            orders = [pool.apply_async(_make, (made + k, mix())) for k in range(size)]
            made += size
            yield [order.get() for order in ahead]
            ahead = orders


def _losses(backbone: TinyBackbone, batch: _Batch, recipe: Recipe) -> dict[str, Tensor]:
    """``act``: mean over decided tokens; ``write``: mean over answer tokens; ``lm``: mean over all tokens.

    One forward pass over full rows gives all three.
    """
    model, tok = backbone.model, backbone.tok
    rows, where, answers = [], [], []
    for s in batch.act:
        ids, positions, _ = s.data
        block = skill_block(tok, s.skill)
        rows.append([ids[0], *block, *ids[1:]])
        where.append([p + len(block) for p in positions])
    for w in batch.write:
        answers.append((len(rows), len(w.question), len(w.answer)))
        rows.append([*w.question, *w.answer])
    ids = _pad(rows, 0)
    logits = model.logits(model.hidden(ids))
    real = ids[:, 1:] != 0
    lm = F.cross_entropy(logits[:, :-1][real], ids[:, 1:][real])
    total = recipe.lm_weight * lm
    out = {"lm": lm}
    if batch.act:
        b = torch.tensor([i for i, w in enumerate(where) for _ in w])
        t = torch.tensor([p for w in where for p in w])
        allowed = torch.zeros(len(b), logits.shape[-1], dtype=torch.bool)
        options = [o for s in batch.act for o in s.data[2]]
        allowed[
            torch.tensor([k for k, o in enumerate(options) for _ in o]),
            torch.tensor([x for o in options for x in o]),
        ] = True
        act = F.cross_entropy(logits[b, t - 1].masked_fill(~allowed, -1e9), ids[b, t])
        total, out["act"] = total + act, act
    if answers:
        b = torch.tensor([r for r, _, n in answers for _ in range(n)])
        t = torch.tensor([q + k for _, q, n in answers for k in range(n)])
        write = F.cross_entropy(logits[b, t - 1], ids[b, t])
        total, out["write"] = total + recipe.write_weight * write, write
    return out | {"total": total}


def recipe_record(recipe: Recipe) -> dict:
    return {"recipe": asdict(recipe), "phases": {"world": asdict(WORLD), "habits": asdict(HABITS)}}
