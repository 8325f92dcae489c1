"""The episodes a diagnosis looks at: training episodes with their hindsight skills, spread over updates."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from seedbench.errors import DataMissing
from seedbench.records import from_record
from seedbench.store import Run
from seedbench.types import Episode, Skill


@dataclass(frozen=True, slots=True)
class Item:
    """One training episode, the update it was played in, and its skill."""

    update: int
    episode: Episode
    skill: Skill


def load(run: Run, count: int, seed: int) -> tuple[list[Item], dict[int, tuple[int, int]]]:
    """At most ``count`` items, evenly over updates, and per update ``(episodes, episodes with a skill)``.

    Raises :class:`DataMissing` when no episode of the training log has a skill: the method writes none.
    """
    by_update: dict[int, list[Item]] = {}
    written: dict[int, tuple[int, int]] = {}
    for record in run.records("train") if any(s.name == "train" for s in run.streams()) else ():
        u, skill = int(record["update"]), record["hindsight"]
        n, k = written.get(u, (0, 0))
        written[u] = (n + 1, k + (skill is not None))
        if skill is not None and record["turns"]:
            episode = from_record(record)
            by_update.setdefault(u, []).append(Item(u, episode, Skill(**skill)))
    if not by_update:
        method = run.config.get("method", {}).get("name", "?")
        raise DataMissing(
            f"The training log of '{run.path}' holds no hindsight skill (method '{method}', packed records leave "
            "the log out). Diagnose the folder of a run that writes skills, e.g. method 'seed'."
        )
    rng = random.Random(f"diagnose/{seed}")
    for items in by_update.values():
        rng.shuffle(items)
    chosen: list[Item] = []
    while len(chosen) < count and any(by_update.values()):
        for u in sorted(by_update):
            if by_update[u] and len(chosen) < count:
                chosen.append(by_update[u].pop())
    return sorted(chosen, key=lambda i: (i.update, i.episode.task.id, i.episode.repeat)), written


def newest_with_signal(run: Run) -> list[Item]:
    """All items of the newest update in which a group of plays had unequal rewards; empty if none had."""
    by_update: dict[int, list[Item]] = {}
    for record in run.records("train"):
        if record["hindsight"] is not None and record["turns"] and record["success"] is not None:
            item = Item(int(record["update"]), from_record(record), Skill(**record["hindsight"]))
            by_update.setdefault(item.update, []).append(item)
    for u in sorted(by_update, reverse=True):
        rewards: dict[str, set[float]] = {}
        for item in by_update[u]:
            rewards.setdefault(item.episode.task.id, set()).add(item.episode.reward)
        if any(len(r) > 1 for r in rewards.values()):
            return by_update[u]
    return []


def shuffled(items: Sequence[Item], seed: int) -> list[str]:
    """For each item the skill text of another one, of another task where there is one."""
    rng = random.Random(f"shuffled/{seed}")
    out = []
    for item in items:
        others = [o for o in items if o.episode.task.id != item.episode.task.id] or list(items)
        out.append(rng.choice(others).skill.text)
    return out


def random_text(items: Sequence[Item], seed: int) -> list[str]:
    """For each item as many words as its skill has, drawn from the words of all skills."""
    rng = random.Random(f"random/{seed}")
    words = sorted({w for i in items for w in i.skill.text.split()})
    return [" ".join(rng.choice(words) for _ in i.skill.text.split()) for i in items]
