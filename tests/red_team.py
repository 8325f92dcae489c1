"""Small honest runs for the audit's tests, made by the real rollout loop, and tools to spoil them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from seedbench.config import EnvSection, RunConfig, make_environment
from seedbench.contracts import Environment, Policy
from seedbench.manifest import bank_sha256, build_manifest, panel_record
from seedbench.panel import Panel
from seedbench.policies.tiny.backbone import TinyBackbone
from seedbench.policies.tiny.model import TinyConfig, TinyLM
from seedbench.policies.tiny.tokenizer import TinyTokenizer, build
from seedbench.records import to_record
from seedbench.rollout import Job, derive_seed, evaluation_job, play
from seedbench.runner import prompt_sha256
from seedbench.store import RunStore
from seedbench.train.checkpoint import Checkpoints
from seedbench.types import Episode, Task

NAME = "search_qa"
OPTIONS = {"train_size": 21, "test_size": 14}
TRAIN, TEST = "mini-train", "mini-test"


@lru_cache(None)
def environment() -> Environment:
    return make_environment(EnvSection(name=NAME, options=OPTIONS))


@lru_cache(None)
def tokenizer() -> TinyTokenizer:
    from seedbench.envs.search_qa import teach

    return TinyTokenizer(build(teach.words()))


def backbone(seed: int = 0) -> TinyBackbone:
    torch.manual_seed(seed)
    tok = tokenizer()
    shape = TinyConfig(vocab=tok.size, width=16, layers=1, heads=2, kv_heads=1, feed_forward=16)
    return TinyBackbone(TinyLM(shape), tok)


def evaluation(env: Environment, policy: Policy, tasks: Sequence[Task]) -> list[Episode]:
    return play(env, policy, [evaluation_job(t, 0, 0) for t in tasks])


def write_run(
    path: Path,
    env: Environment | None = None,
    policy: Callable[[TinyBackbone], Policy] | None = None,
    tasks: Sequence[Task] | None = None,
    ids: Sequence[str] | None = None,
) -> Path:
    """A finished run of one update. ``env`` plays (default: the honest one), ``policy`` acts in evaluation
    (default: the model itself), ``tasks`` are evaluated, ``ids`` is what the panel declares."""
    honest = environment()
    env = env or honest
    model = backbone()
    train, tasks = list(honest.tasks(TRAIN)), list(tasks or honest.tasks(TEST)[:8])
    panel = Panel.of(TEST, [t.id for t in tasks] if ids is None else list(ids))
    known = [*honest.tasks(TEST), *train]
    config = RunConfig(
        env=EnvSection(name=NAME, options=OPTIONS),
        method={"name": "seed"},  # type: ignore[arg-type]
        train={"updates": 1, "tasks": 2, "group": 2, "block": 8},  # type: ignore[arg-type]
        eval={"temperature": 0.4},  # type: ignore[arg-type]
    )
    manifest = build_manifest(
        spec=honest.spec,
        groups=honest.groups,
        panels={
            "eval": panel_record(panel, TEST, known),
            "train": panel_record(Panel.of(TRAIN, [t.id for t in train]), TRAIN, train),
        },
        prompt_sha256=prompt_sha256(honest),
        bank_sha256=bank_sha256(honest),
        model={"name": "tiny", "sha256": model.sha256(), "decoding": model.decoding},
        seeds={"run": 0},
        policy={"name": "seed", "privileged": False, "trained": True},
        threads=1,
    )
    with RunStore.create(path, config.model_dump(mode="json"), manifest) as store:
        saved = Checkpoints(path / "checkpoints")
        saved.save("start", model)
        for e in play(honest, model.actor(1.0), [Job(t, derive_seed("t", t.id)) for t in train[:4]]):
            e.hindsight = honest.annotate(e)
            store.append_episode("train", to_record(e, "train", 0))
        saved.save("u00001", model, torch.optim.AdamW(model.parameters()))
        actor = policy(model) if policy else model.actor(0.4)
        for e in evaluation(env, actor, tasks):
            store.append_episode("eval-final", to_record(e, "eval", 1))
        store.append_metrics({"update": 1, "evaluation": "final", "weights_sha256": model.sha256()})
        store.set_status("finished", 1, 1)
    return path


def edit(path: Path, change: Callable[[list[dict[str, Any]]], None], stream: str = "eval-final") -> None:
    """Change the records of a stream as somebody with an editor would."""
    file = path / "episodes" / f"{stream}.jsonl"
    records = [json.loads(line) for line in file.read_text().splitlines()]
    change(records)
    file.write_text("".join(json.dumps(r) + "\n" for r in records))


def edit_json(path: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    content = json.loads((path / name).read_text())
    change(content)
    (path / name).write_text(json.dumps(content))


def twin(env: Environment, **methods: Any) -> Environment:
    """A copy of an environment with some methods replaced: how a leak gets in."""
    out = copy.copy(env)
    for name, method in methods.items():
        setattr(out, name, method)
    return out
