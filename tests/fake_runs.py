"""Small run folders with chosen outcomes, written by the product's own store, for tests of reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbench.panel import sha256_lines
from seedbench.records import to_record
from seedbench.store import RunStore
from seedbench.types import Episode, Observation, PublicTask, Turn

GROUPS = ("red", "green", "blue")
#: (success, score, status) of an episode
Outcome = tuple[bool, float, str]


def panel(n: int, name: str = "toy-test", repeats: int = 1, groups: Sequence[str] = GROUPS) -> dict[str, Any]:
    ids = [f"{name}-{i:03d}" for i in range(n)]
    return {
        "name": name,
        "split": name,
        "sha256": sha256_lines(ids),
        "repeats": repeats,
        "ids": ids,
        "groups": [groups[i % len(groups)] for i in range(n)],
    }


def write_run(
    path: Path,
    solved: Callable[[int], bool | float | str],
    *,
    n: int = 12,
    method: str = "grpo",
    seed: int = 0,
    env: str = "toy",
    variant: str = "mini",
    protocol: str = "p1",
    backbone: str = "tiny",
    panels: Mapping[str, dict[str, Any]] | None = None,
    streams: Sequence[str] = ("eval-final",),
    config: Mapping[str, Any] | None = None,
    env_fields: Mapping[str, Any] | None = None,
    policy: Mapping[str, Any] | None = None,
    costs: Sequence[tuple[int, str, float, int, float]] = (),
    groups: Sequence[str] = GROUPS,
) -> Path:
    """``solved(i)`` is True/False, a score in [0, 1], the status of an infrastructure error, or "missing"."""
    panels = panels or {"eval": panel(n, groups=groups)}
    base = {
        "env": {"name": env, "options": {}},
        "method": {"name": method, "options": {}},
        "backbone": {"name": backbone, "options": {}},
        "seed": seed,
        "train": {"updates": 4},
        "eval": {"temperature": 0.4, "every": 2, "episodes": 1},
    }
    manifest = {
        "env": {"name": env, "variant": variant, "protocol": protocol, "max_steps": 5, "history_length": 2,
                "invalid_penalty": 0.1, "fingerprint": "f", "details": {}, "groups": list(groups),
                **(env_fields or {})},
        "panels": panels,
        "prompt_sha256": "p",
        "model": {"name": backbone, "sha256": "m"},
        "policy": policy or {"name": backbone, "privileged": False},
    }  # fmt: skip
    with RunStore.create(path, {**base, **(config or {})}, manifest) as store:
        for stream in streams:
            _play(store, stream, panels, solved, seed)
        for update, stage, seconds, tokens, flops in costs:
            store.append_cost(update, stage, seconds, tokens, flops)
        store.set_status("finished", 4, 4)
    return path


def _play(store: RunStore, stream: str, panels: Mapping[str, Any], solved: Callable, seed: int) -> None:
    which = stream.partition("@")[2] or "eval"
    update = int(stream[6:10]) if stream.startswith("eval-u") else 4
    chosen = panels[which]
    for i, (task, group) in enumerate(zip(chosen["ids"], chosen["groups"], strict=True)):
        for repeat in range(chosen["repeats"]):
            what = solved(i)
            if what == "missing":
                continue
            store.append_episode(stream, episode_record(task, group, what, seed, repeat, update))


def episode_record(
    task: str, group: str, what: bool | float | str, seed: int = 0, repeat: int = 0, update: int = 4
) -> dict[str, Any]:
    broken = isinstance(what, str)
    success = None if broken else what == 1
    episode = Episode(
        PublicTask(task, "test", group),
        seed,
        repeat,
        instruction="do it",
        turns=[Turn(Observation("you see a door", ("open door",)), "<a>", "open door", True, new_tokens=3)],
        status=what if broken else "completed",  # type: ignore[arg-type]
        success=success,
        score=None if broken else float(what),
    )
    return to_record(episode, "eval", update)
