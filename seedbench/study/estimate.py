"""What a planned run will take: measured where a run of its kind was made, else stated, and labelled so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from seedbench.errors import SeedbenchError
from seedbench.records import canonical_json
from seedbench.registry import METHODS
from seedbench.reports.spending import spent_by_stage
from seedbench.store import Run
from seedbench.study.model import Planned

#: (seconds of one core, tokens through the model) per training episode and per evaluated episode, everything
#: included. ``tiny``: means of the trained methods on ALFWorld-mini in ``results/measured/quick-v1`` (the dearest
#: of its environments: Search-QA takes 0.04 and WebShop 0.06 s). Others: an order of magnitude for a 3B model and
#: eight GPUs, not measured.
STATED = {"tiny": ((0.1, 1300), (0.03, 320)), "other": ((1.6, 60_000), (0.5, 20_000))}
#: Episodes of one evaluation where the panel is not looked up.
PANEL = 140


@dataclass(frozen=True, slots=True)
class Estimate:
    """``seconds`` of one process; ``basis``: ``measured (n)``, ``scaled (n)`` or ``stated``."""

    seconds: float
    tokens: int
    basis: str


class Ledger:
    """Finished runs under some folders, by what they were."""

    def __init__(self, places: Iterable[Path]) -> None:
        self.same: dict[str, list[tuple[float, int]]] = {}
        self.like: dict[str, list[tuple[float, float]]] = {}
        folders = {p.parent.resolve() for place in places for p in place.glob("**/costs.jsonl*")}
        for folder in sorted(folders):
            try:
                self._take(Run(folder))
            except (SeedbenchError, KeyError):
                continue  # not a whole run: it says nothing about costs

    def _take(self, run: Run) -> None:
        if run.status["state"] != "finished":
            return
        spent = spent_by_stage(run).values()
        seconds, tokens = sum(s.seconds for s in spent), sum(s.tokens for s in spent)
        work = _work(run.config)
        self.same.setdefault(_same(run.config), []).append((seconds, tokens))
        if work:
            self.like.setdefault(_like(run.config), []).append((seconds / work, tokens / work))

    def estimate(self, run: Planned) -> Estimate:
        config = run.config.model_dump(mode="json")
        found = self.same.get(_same(config))
        if found:
            return _mean(found, 1.0, "measured")
        like = self.like.get(_like(config))
        if like:
            return _mean(like, _work(config), "scaled")
        return _stated(config, len(run.panels))


def _mean(found: Sequence[tuple[float, float]], factor: float, word: str) -> Estimate:
    seconds, tokens = (fmean(pair[i] for pair in found) * factor for i in (0, 1))
    return Estimate(seconds, round(tokens), f"{word} ({len(found)})")


def _same(config: dict[str, Any]) -> str:
    """Equal but for seed, name and the share of the data: equal work."""
    train = {k: v for k, v in config["train"].items() if k != "data_fraction"}
    rest = {k: v for k, v in config.items() if k not in ("seed", "label", "train")}
    return canonical_json({**rest, "train": train})


def _like(config: dict[str, Any]) -> str:
    """Same environment, method and model: costs per episode carry over to another amount of episodes."""
    return canonical_json(
        [config["env"]["name"], config["env"].get("options"), config["method"]["name"], config["backbone"]]
    )


def _episodes(config: dict[str, Any]) -> tuple[int, int]:
    """(training episodes, evaluations)."""
    train, every = config["train"], config["eval"]["every"]
    learns = METHODS.get(config["method"]["name"]).learns
    updates = train["updates"] if learns else 0
    evaluations = 1 + (0 if not updates else -(-updates // every) if every else 1)
    return updates * train["tasks"] * train["group"], evaluations


def _work(config: dict[str, Any]) -> float:
    """Episodes, an evaluated one counted as a quarter of a trained one."""
    trained, evaluations = _episodes(config)
    return trained + evaluations * config["eval"]["episodes"] * PANEL / 4


def _stated(config: dict[str, Any], panels: int) -> Estimate:
    trained, evaluations = _episodes(config)
    per_trained, per_evaluated = STATED["tiny" if config["backbone"]["name"] == "tiny" else "other"]
    evaluated = (evaluations + panels) * config["eval"]["episodes"] * PANEL
    seconds = trained * per_trained[0] + evaluated * per_evaluated[0]
    return Estimate(seconds, trained * per_trained[1] + evaluated * per_evaluated[1], "stated")


def wall_seconds(estimates: Sequence[Estimate], jobs: int) -> float:
    """Time of ``jobs`` processes that take the runs in order."""
    free = [0.0] * max(1, jobs)
    for e in estimates:
        free.sort()
        free[0] += e.seconds
    return max(free)
