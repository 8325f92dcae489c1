"""``seedbench diagnose RUN``: put the parts together and write JSON, figures and a verdict in words.

Everything follows from the training log, the newest checkpoint and the seed: the same folder gives the same
bytes. Training episodes only; the evaluation panel is not touched.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from seedbench.config import RunConfig, make_environment, make_method, validated
from seedbench.contracts import Environment
from seedbench.diagnose import figures, verdict
from seedbench.diagnose.material import Item, load, newest_with_signal
from seedbench.diagnose.text import read_skills
from seedbench.errors import DataCorrupt
from seedbench.jsonl import storage, write_bytes
from seedbench.store import Run
from seedbench.types import Task

#: Decisions looked at per episode, and further actions tried at each.
STATES, OTHERS = 2, 5


def diagnose_run(path: Path, out: Path, count: int = 128, seed: int = 0) -> str:
    """Write ``diagnosis.json``, ``*.svg`` and ``verdict.md`` to ``out``; return the verdict.

    Raises :class:`~seedbench.errors.DataMissing` without skills or checkpoint in the folder.
    """
    diagnosis = measure(Run(path), count, seed)
    text = verdict.words(diagnosis)
    with storage(out, "create"):
        out.mkdir(parents=True, exist_ok=True)
    write_bytes(out / "diagnosis.json", (json.dumps(diagnosis, indent=1, sort_keys=True) + "\n").encode())
    write_bytes(out / "verdict.md", text.encode())
    for name, data in figures.draw(diagnosis).items():
        write_bytes(out / name, data)
    return text


def measure(run: Run, count: int, seed: int) -> dict[str, Any]:
    """All numbers of a diagnosis, as plain JSON values."""
    import torch

    from seedbench.diagnose import signal, support
    from seedbench.diagnose.useful import Judge
    from seedbench.evaluate import final_checkpoint, open_final

    torch.set_num_threads(1)
    items, written = load(run, count, seed)
    config: RunConfig = validated(RunConfig, run.config, "configuration")
    env, method = make_environment(config.env), make_method(config.method)
    backbone, budget = open_final(run), config.train.micro_tokens
    tasks = _tasks(env, items)
    judges = [Judge(env, tasks[i.episode.task.id], config.seed, i.update) for i in items]
    states = [
        s
        for item, judge in zip(items, judges, strict=True)
        for s in support.states_of(env, item, judge, STATES, OTHERS, seed)
    ]
    support.score_states(env, backbone, states, items, seed)
    beta = float(getattr(method, "beta", signal.BETA))
    labels = [j.labels(i.episode) for i, j in zip(items, judges, strict=True)]
    gate = signal.gate_numbers(signal.scored_rows(env, backbone, items, budget), items, labels, beta)
    group = newest_with_signal(run)
    cosine: dict[str, Any] = {"cosine": None, "auxiliary_norm": None, "base_norm": None}
    if group:
        rows = signal.scored_rows(env, backbone, group, budget, method)
        cosine = signal.gradient_cosine(backbone, rows, method, budget)
    logged = [
        {k: m[k] for k in ("update", "teacher_gap", "teacher_gap_std", "teacher_gap_above_0.1") if k in m}
        for m in run.metrics()
        if "teacher_gap" in m
    ]
    diagnosis = {
        "subject": f"{config.method.name} on {config.env.name}, run {run.id}",
        "seed": seed,
        "items": len(items),
        "checkpoint": final_checkpoint(run)[1].name,
        "skills": read_skills(items, written, env),
        "support": support.summary(states),
        "gate": gate | support.within_state(states, beta),
        "gradients": cosine,
        "logged": logged,
    }
    return diagnosis | {"warnings": verdict.warnings(diagnosis)}


def _tasks(env: Environment, items: list[Item]) -> dict[str, Task]:
    splits = {i.episode.task.split for i in items}
    known = {t.id: t for split in sorted(splits) for t in env.tasks(split)}
    lost = [i.episode.task.id for i in items if i.episode.task.id not in known]
    if lost:
        raise DataCorrupt(
            f"Training task '{lost[0]}' does not exist in the environment: other data than the run's."
        )
    return known
