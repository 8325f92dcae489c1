"""The one trainer. It owns rollouts, scoring, optimiser steps, checkpoints and logs; a method owns the maths.

Everything random is derived from the run's seed and the update's number, so the state of a run is its
weights, its optimiser and a counter, and a resumed run is bit for bit an uninterrupted one.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from seedbench.audit.guard import check_episode
from seedbench.audit.rebuild import rebuilder_for, tokenizer_folders
from seedbench.config import RunConfig
from seedbench.contracts import Environment
from seedbench.engines.local import LocalEngine
from seedbench.errors import ConfigError, DataCorrupt
from seedbench.records import to_record
from seedbench.rollout import Job, blocks, derive_seed, evaluation_job
from seedbench.store import RunStore
from seedbench.train.backbone import Backbone
from seedbench.train.batch import (
    Rows,
    cap_importance,
    loss_batch,
    make_rows,
    micro_batches,
    minibatches,
    score_rows,
    totals,
    trainable,
)
from seedbench.train.checkpoint import Checkpoints, load_optimizer, verify
from seedbench.train.ledger import BEFORE, Costs, mean, summary
from seedbench.train.method import Analyst, Method
from seedbench.types import Episode, Skill, Task


@dataclass(slots=True)
class Parts:
    """What a run is made of. ``tasks`` train, ``panel`` is evaluated: ``(task, repeat)`` in order."""

    env: Environment
    backbone: Backbone
    method: Method
    config: RunConfig
    store: RunStore
    engine: LocalEngine
    tasks: Sequence[Task]
    panel: Sequence[tuple[Task, int]]


def training_subset(tasks: Sequence[Task], fraction: float, seed: int) -> list[Task]:
    """A share of the tasks; smaller shares are subsets of larger ones under the same seed (Table 6)."""
    order = sorted(tasks, key=lambda t: derive_seed("fraction", seed, t.id))
    return sorted(order[: max(1, math.ceil(fraction * len(order)))], key=lambda t: t.id)


def task_at(tasks: Sequence[Task], seed: int, position: int) -> Task:
    """The task at a place of the endless training order: a fresh permutation for each pass over the data."""
    epoch, place = divmod(position, len(tasks))
    order = list(range(len(tasks)))
    random.Random(f"order/{seed}/{epoch}").shuffle(order)
    return tasks[order[place]]


class Trainer:
    """Trains ``parts.backbone`` in place. ``report`` is called with the metrics of every update and evaluation."""

    def __init__(
        self, parts: Parts, analyst: Callable[[], Analyst], report: Callable[[dict], None] = lambda m: None
    ) -> None:
        self.p, self.report = parts, report
        self.settings = parts.config.train
        self.seed = parts.config.seed
        self.checkpoints = Checkpoints(parts.store.path / "checkpoints")
        self._make_analyst = analyst
        s = self.settings
        self.optimizer = torch.optim.AdamW(
            parts.backbone.parameters(),
            lr=s.learning_rate,
            betas=(s.beta1, s.beta2),
            weight_decay=s.weight_decay,
        )
        self.tasks = training_subset(parts.tasks, s.data_fraction, self.seed)

    # -- the run -------------------------------------------------------------------------------------------
    def run(self, warm_up: Callable[[], None]) -> None:
        """Warm up (once), then update and evaluate until the plan is done, from wherever the folder stands."""
        done = self._restore(warm_up)
        every = self.p.config.eval.every
        updates = self.settings.updates if self.p.method.learns else 0
        for u in range(done, updates):
            if u == 0 or (every and u % every == 0):
                self.evaluate(f"u{u:04d}", u)
            self.p.store.set_status("running", u, updates)
            self.update(u)
            if (u + 1) % self.settings.checkpoint_every == 0 or u + 1 == updates:
                self._save(u + 1)
        self.evaluate("final", updates)
        if self.p.method.starred:
            self.evaluate("final+skills", updates, skills=True)

    def _restore(self, warm_up: Callable[[], None]) -> int:
        """Bring weights, optimiser and logs to the newest whole checkpoint. Returns updates done."""
        start, latest = self.checkpoints.folder / "start", self.checkpoints.latest()
        if start.is_dir():
            verify(start)
            self.p.backbone.restore(start)
            self.p.store.rewind(latest[0] if latest else 0)
        else:  # a new run, or a damaged start that was deleted: it is made again, bit for bit
            self.p.store.rewind(latest[0] if latest else BEFORE)
            warm_up()
            self.checkpoints.save("start", self.p.backbone)
        self.reference = self.p.backbone.frozen() if self.p.method.objective.kl else None
        self.analyst = self._make_analyst()
        if latest is None:
            return 0
        self.p.backbone.restore(latest[1])
        load_optimizer(latest[1], self.optimizer)
        return latest[0]

    def _save(self, done: int) -> None:
        self.p.store.sync()
        self.checkpoints.save(f"u{done:05d}", self.p.backbone, self.optimizer)

    # -- one update ----------------------------------------------------------------------------------------
    def update(self, u: int) -> None:
        """Play, analyse, score, step. Logs one line of metrics and its costs."""
        costs = Costs(self.p.store, u)
        p, s = self.p, self.settings
        with costs.stage("rollout") as cost:
            episodes = p.engine.play(p.env, p.backbone.actor(s.temperature), self._jobs(u), s.block)
            _check_groups(episodes)
            samples = p.backbone.samples(episodes, p.env)
            tokens = sum(x.length for x in samples)
            cost(tokens, p.backbone.flops(tokens, False))
        with costs.metered("analysis", p.backbone):
            skills = p.method.teaching(episodes, self.analyst)
        for episode, skill in zip(episodes, skills or [None] * len(episodes), strict=True):
            episode.hindsight = skill
            p.store.append_episode("train", to_record(episode, "train", u))
        rows = make_rows(samples, episodes, skills, p.method, p.env.spec.invalid_penalty, s.mask_truncated)
        if not len(rows):
            warnings.warn(
                f"Update {u} has no token to train on: no weight moves.", RuntimeWarning, stacklevel=2
            )
        sampled = rows.old
        with costs.metered("scoring", p.backbone):
            self._score(rows, skills)
        importance = {}
        if s.importance_cap:
            importance["importance"] = cap_importance(rows, sampled, episodes, s.importance_cap)
        with costs.metered("update", p.backbone, backward=True):
            terms = self._steps(rows, u)
        metrics = {"update": u, **summary(episodes, rows, skills), **importance, **terms}
        p.store.append_metrics(metrics)
        self.report(metrics)

    def _jobs(self, u: int) -> list[Job]:
        s = self.settings
        jobs = []
        for k in range(s.tasks):
            task = task_at(self.tasks, self.seed, u * s.tasks + k)
            skill = self.p.method.acting(task, self.analyst)
            world = derive_seed(self.seed, "world", u, task.id)
            jobs += [
                Job(task, derive_seed(self.seed, "train", u, k, g), world, k * s.group + g, skill)
                for g in range(s.group)
            ]
        return jobs

    def _score(self, rows: Rows, skills: Sequence[Skill | None] | None) -> None:
        """Fill in old, reference and teacher log-probabilities."""
        p, budget, index = self.p, self.settings.micro_tokens, trainable(rows, self.p.method)
        if self.settings.old_logprobs == "recomputed":
            rows.old = score_rows(p.backbone, rows, index, budget)
        if self.reference is not None:
            rows.reference = score_rows(self.reference, rows, index, budget)
        if skills is not None:
            texts = [s and s.text for s in (skills[x.episode] for x in rows.samples)]
            taught = [i for i, t in enumerate(texts) if t is not None]
            rows.teacher = score_rows(p.backbone, rows, taught, budget, texts)

    def _steps(self, rows: Rows, u: int) -> dict[str, float]:
        """Optimiser steps of one update; loss terms averaged over all of them."""
        s = self.settings
        rate = s.learning_rate * min(1.0, (u + 1) / max(s.lr_warmup, 1))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        sums: dict[str, float] = {}
        lengths = [x.length for x in rows.samples]
        moving = set(trainable(rows, self.p.method))
        count = math.ceil(len(rows) / s.minibatch_rows) if s.minibatch_rows else s.minibatches
        parts = minibatches(rows, range(len(rows)), count, f"{self.seed}/step/{u}")
        for part in parts:
            total = totals(rows, part)  # rows that move nothing are not computed, and count in every mean
            self.optimizer.zero_grad(set_to_none=True)
            for batch in micro_batches(lengths, [i for i in part if i in moving], s.micro_tokens):
                loss = self.p.method.loss(loss_batch(self.p.backbone, rows, batch, total, u))
                loss.value.backward()
                for name, value in loss.terms.items():
                    sums[f"loss_{name}"] = sums.get(f"loss_{name}", 0.0) + value / len(parts)
            norm = float(torch.nn.utils.clip_grad_norm_(list(self.p.backbone.parameters()), s.clip_norm))
            if not math.isfinite(norm):
                raise ConfigError(
                    f"The gradient of update {u} is not finite. The newest checkpoint is kept; lower "
                    "train.learning_rate or check the method's loss."
                )
            sums["grad_norm"] = sums.get("grad_norm", 0.0) + norm / len(parts)
            self.optimizer.step()
        return sums | {"learning_rate": rate}

    # -- evaluation ----------------------------------------------------------------------------------------
    def evaluate(self, label: str, u: int, skills: bool = False) -> None:
        """Play what the panel still owes under ``label`` with the current weights: on ordinary history, or
        (``skills``, the papers' starred rows) with the bank skill of each task in its prompt."""
        p, stream = self.p, f"eval-{label}"
        done = p.store.done_keys(stream)
        owed = [
            part
            for part in blocks(self._panel_jobs(skills), self.settings.block)
            if not all((u, j.task.id, j.repeat) in done for j in part)
        ]
        where = tokenizer_folders(p.store.path, p.config.model_dump(mode="json"))
        rebuilder = rebuilder_for(p.config.backbone.model_dump(mode="json"), where)

        def write(episode: Episode) -> None:
            if not skills:
                check_episode(p.env, rebuilder, episode)  # a leak ends the run before it makes a number
            p.store.append_episode(stream, to_record(episode, "eval", u))

        if owed:
            with Costs(p.store, u).stage("evaluation") as cost:
                # a block is replayed whole: its batch, and so its last bits, are those of an uninterrupted run
                episodes = p.engine.play(
                    p.env,
                    p.backbone.actor(p.config.eval.temperature),
                    [j for part in owed for j in part],
                    self.settings.block,
                    write,
                )
                tokens = sum(x.length for x in p.backbone.samples(episodes, p.env))
                cost(tokens, p.backbone.flops(tokens, False))
        known = any(m.get("evaluation") == label and m["update"] == u for m in p.store.metrics())
        if known and not owed:
            return
        records = p.store.records(stream)
        metrics = {
            "update": u,
            "evaluation": label,
            "episodes": len(records),
            "success": mean([float(bool(r["success"])) for r in records]),
            "score": mean([r["score"] or 0.0 for r in records]),
            "weights_sha256": p.backbone.sha256(),
        }
        p.store.append_metrics(metrics)
        self.report(metrics)

    def _panel_jobs(self, skills: bool) -> list[Job]:
        plays = self.p.config.eval.episodes
        return [
            evaluation_job(task, self.seed, r, self.p.env.bank(task.public.group) if skills else None)
            for task, repeat in self.p.panel
            for r in range(repeat * plays, (repeat + 1) * plays)
        ]


def _check_groups(episodes: Sequence[Episode]) -> None:
    """Plays of one group must start from the same observation, or the baseline means nothing (BR-070)."""
    first: dict[str, str] = {}
    for e in episodes:
        if (
            e.turns
            and first.setdefault(e.task.id, e.turns[0].observation.text) != e.turns[0].observation.text
        ):
            raise DataCorrupt(
                f"Two plays of task '{e.task.id}' with the same world seed began differently: the environment "
                "ignores its seed."
            )
