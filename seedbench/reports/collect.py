"""Run folders -> arms: the evaluations of one method under one setting, one per training seed."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seedbench.errors import ConfigError
from seedbench.records import canonical_json
from seedbench.score import EvalScore, PanelTable, score_stream, value_array
from seedbench.store import Run, Stream

#: Settings that change speed or what is kept, but no result; they do not tell two arms apart.
NO_RESULT = frozenset(
    {"train.block", "train.micro_tokens", "train.checkpoint_every", "eval.every", "eval.episodes", "label"}
)
#: Marks an evaluation whose prompts held a skill, as in the papers' tables.
STAR = "*"


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """What two numbers must share to stand in one column (BR-103, BR-105)."""

    env: str
    variant: str
    protocol: str
    split: str
    panel: str
    panel_sha256: str
    repeats: int
    fingerprint: str
    prompt_sha256: str
    decoding: str
    details: str

    @classmethod
    def of(cls, run: Run, panel_key: str) -> Setting:
        env, panel = run.manifest["env"], run.manifest["panels"][panel_key]
        decoding = {k: v for k, v in run.config.get("eval", {}).items() if f"eval.{k}" not in NO_RESULT}
        decoding.pop("panel", None)  # named by the manifest
        if "decoding" in run.manifest.get("model", {}):
            decoding["decoding"] = run.manifest["model"]["decoding"]
        return cls(
            env=env["name"],
            variant=env["variant"],
            protocol=env["protocol"],
            split=panel["split"],
            panel=panel["name"],
            panel_sha256=panel["sha256"],
            repeats=panel.get("repeats", 1),
            fingerprint=env["fingerprint"],
            prompt_sha256=run.manifest.get("prompt_sha256", ""),
            decoding=canonical_json(decoding),
            details=canonical_json({"steps": env["max_steps"], **env.get("details", {})}),
        )

    @property
    def sha256(self) -> str:
        """Short hash: tells settings apart that read alike."""
        return hashlib.sha256(canonical_json(dataclasses.asdict(self)).encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """One stream of one run, scored. ``success`` and ``score`` are (tasks, repeats) in panel order;
    ``update``: finished updates when it was played."""

    run: Run
    stream: Stream
    setting: Setting
    result: EvalScore
    success: np.ndarray
    score: np.ndarray
    task_groups: tuple[str, ...]
    group_order: tuple[str, ...]
    update: int

    @property
    def method(self) -> str:
        return str(self.run.config["method"]["name"]) + (STAR if self.stream.skills else "")

    @property
    def backbone(self) -> str:
        return str(self.run.config["backbone"]["name"])

    @property
    def seed(self) -> int:
        return int(self.run.config["seed"])

    @property
    def options(self) -> dict[str, Any]:
        """Flat settings that may tell this arm from another of the same method and backbone."""
        config = {k: self.run.config.get(k) for k in ("method", "backbone", "train", "label")}
        flat = flatten(config) | {"split": self.run.config["env"].get("split", "")}
        if "bank_sha256" in self.run.manifest:
            flat["bank"] = self.run.manifest["bank_sha256"][:8]
        return {k: v for k, v in flat.items() if k not in NO_RESULT}


@dataclass(frozen=True, slots=True, eq=False)
class Arm:
    """A table row's part in one setting. Arrays are (seeds, tasks, repeats), seeds ascending."""

    setting: Setting
    label: str
    backbone: str
    evaluations: tuple[Evaluation, ...]

    @property
    def seeds(self) -> int:
        return len({e.seed for e in self.evaluations})

    @property
    def success(self) -> np.ndarray:
        return np.stack([e.success for e in self.evaluations])

    @property
    def score(self) -> np.ndarray:
        return np.stack([e.score for e in self.evaluations])

    @property
    def task_groups(self) -> tuple[str, ...]:
        return self.evaluations[0].task_groups

    @property
    def runs(self) -> tuple[str, ...]:
        return tuple(e.run.id for e in self.evaluations)

    @property
    def not_ranked(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(r for e in self.evaluations for r in e.result.not_ranked))


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """``{"a": {"b": 1}}`` -> ``{"a.b": 1}``."""
    out: dict[str, Any] = {}
    for key, value in sorted(tree.items()):
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            out.update(flatten(value, f"{name}."))
        else:
            out[name] = value
    return out


def evaluate(run: Run, stream: Stream) -> Evaluation:
    panel = PanelTable.of(run.manifest["panels"][stream.panel])
    records = run.records(stream.name)
    result = score_stream(run, stream.name, records)
    success, groups = value_array(records, panel, "success")
    score, _ = value_array(records, panel, "score")
    order = tuple(g.group for g in result.groups)
    update = int(records[0]["update"]) if records else 0
    setting = Setting.of(run, stream.panel)
    return Evaluation(run, stream, setting, result, success, score, tuple(groups), order, update)


def collect(paths: Iterable[str | Path], label: str = "final") -> tuple[list[Evaluation], list[str]]:
    """Scored evaluations of the given label, in an order that does not depend on that of ``paths``.

    Also returns one sentence for every run that was left out. The same run given twice counts once; two
    different records of one configuration and seed are refused (:class:`ConfigError`).
    """
    found: dict[tuple[str, str], Evaluation] = {}
    notes = []
    for path in sorted({Path(p).resolve() for p in paths}):
        run = Run(path)
        streams = [s for s in run.streams() if s.phase == "eval" and s.label == label]
        if not streams:
            notes.append(f"{path.name}: no '{label}' evaluation on record (unfinished?); left out.")
        for stream in streams:
            new = evaluate(run, stream)
            old = found.setdefault((run.id, stream.name), new)
            if old is not new and not np.array_equal(old.success, new.success, equal_nan=True):
                raise ConfigError(
                    f"'{old.run.path}' and '{path}' hold different results of one configuration and seed. "
                    "Give one of them."
                )
    order = sorted(found.values(), key=lambda e: (e.setting, e.method, e.backbone, e.seed, e.run.id))
    return order, notes


def arms(evaluations: Sequence[Evaluation]) -> list[Arm]:
    """Group evaluations into arms; ablations of one method get the settings that differ into their name."""
    places: dict[tuple[Setting, str, str], list[Evaluation]] = {}
    for e in evaluations:
        places.setdefault((e.setting, e.method, e.backbone), []).append(e)
    out = []
    for (setting, method, backbone), members in places.items():
        by_options: dict[str, list[Evaluation]] = {}
        for e in members:
            by_options.setdefault(canonical_json(e.options), []).append(e)
        names = _names(method, [group[0] for group in by_options.values()])
        for name, group in zip(names, by_options.values(), strict=True):
            _one_run_per_seed(group)
            out.append(Arm(setting, name, backbone, tuple(sorted(group, key=lambda e: e.seed))))
    return sorted(out, key=lambda a: (a.setting, a.backbone, a.label))


def _names(method: str, members: Sequence[Evaluation]) -> list[str]:
    """``seed``, or ``seed (gate=ones)`` where several arms of a method exist."""
    options = [e.options for e in members]
    keys = sorted({k for o in options for k in o})
    differ = [k for k in keys if len({canonical_json(o.get(k)) for o in options}) > 1 and k != "label"]
    labels = [str(e.run.config.get("label") or "") for e in members]
    out = []
    for label, o in zip(labels, options, strict=True):
        shown = ", ".join(f"{k.rpartition('.')[2]}={o.get(k)}" for k in differ)
        name = label + STAR * method.endswith(STAR) if label else method
        # a label that names one arm needs no settings; without one, or shared by several, they tell apart
        out.append(f"{name} ({shown})" if shown and (not label or labels.count(label) > 1) else name)
    return out


def _one_run_per_seed(group: Sequence[Evaluation]) -> None:
    seen: dict[int, Evaluation] = {}
    for e in group:
        other = seen.setdefault(e.seed, e)
        if other is not e:
            raise ConfigError(
                f"'{other.run.path}' and '{e.run.path}' are both seed {e.seed} of one arm. Give one of them."
            )
