"""Budgets by name. A scale fills in what a run does not say itself; explicit settings always win.

``quick``: minutes on two cores; ``cpu``: the tiny model with enough updates and seeds to compare methods;
``paper``: the published hyperparameters for the named language models (methods page section 3).
An environment adds its own numbers per scale through ``EnvironmentKind.scales``.
"""

from __future__ import annotations

from typing import Any

from seedbench.errors import UnknownName
from seedbench.registry import ENVIRONMENTS

_TINY_TRAIN = {
    "tasks": 8,
    "group": 8,
    "learning_rate": 3e-4,
    "lr_warmup": 5,
    "beta2": 0.98,
    "weight_decay": 0.0,
    "minibatches": 4,
    "micro_tokens": 8192,
    "old_logprobs": "sampled",
    "block": 64,
}
_TINY_WARM_UP = {"tasks": 24, "repeats": 4, "epochs": 1, "learning_rate": 1e-4}

SCALES: dict[str, dict[str, Any]] = {
    "quick": {
        "train": {**_TINY_TRAIN, "updates": 24, "checkpoint_every": 8},
        "eval": {"every": 8, "temperature": 0.4, "episodes": 1},
        "warm_up": _TINY_WARM_UP,
    },
    "cpu": {
        "train": {**_TINY_TRAIN, "updates": 60, "checkpoint_every": 10},
        "eval": {"every": 10, "temperature": 0.4, "episodes": 3},
        "warm_up": {**_TINY_WARM_UP, "tasks": 48},
    },
    "paper": {
        "train": {"updates": 150, "tasks": 16, "group": 8, "learning_rate": 1e-6, "checkpoint_every": 10},
        "eval": {"every": 5, "temperature": 0.4, "episodes": 1},
        "warm_up": {},
    },
}


def default_scale(backbone: str) -> str:
    return "quick" if backbone == "tiny" else "paper"


def settings_of(scale: str, environment: str, method: Any) -> dict[str, Any]:
    """What a scale says about a run of ``environment`` with a ``method`` class, as a nested dictionary."""
    if scale not in SCALES:
        raise UnknownName(f"Unknown scale '{scale}'. Known: {', '.join(SCALES)}.")
    own = ENVIRONMENTS.get(environment).scales.get(scale, {})
    base = SCALES[scale]
    out: dict[str, Any] = {
        "train": {**base["train"], **own.get("train", {})},
        "eval": {**base["eval"], **own.get("eval", {})},
    }
    options: dict[str, Any] = {k: dict(own[k]) for k in ("objective", "advantage") if k in own}
    if method.warm_up is not None:
        options["warm_up"] = {**base["warm_up"], **own.get("warm_up", {})}
    return out | {"method": {"options": options}}
