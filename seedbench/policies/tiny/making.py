"""Make a tiny model and put on record what it can do: acting, following skills, writing skills."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seedbench.config import EnvSection, make_environment, splits_of, validated
from seedbench.contracts import Environment
from seedbench.engines.local import LocalEngine, cores
from seedbench.manifest import cpu_model, package_versions
from seedbench.policies.tiny.backbone import TinyBackbone
from seedbench.policies.tiny.material import demonstrate, teach_module
from seedbench.policies.tiny.pretrain import Recipe, pretrain, recipe_record
from seedbench.rollout import Job, derive_seed
from seedbench.train.skills import parse_analysis
from seedbench.types import Episode, Skill


def make(env: str, folder: Path, settings: dict[str, Any], report: Callable[[dict], None]) -> dict[str, Any]:
    """Pretrain, measure, and write weights and ``record.json`` to ``folder``. Returns the record."""
    from pydantic import TypeAdapter

    own = getattr(teach_module(env), "RECIPE", {})
    recipe: Recipe = validated(TypeAdapter(Recipe), {**own, **settings}, "recipe")
    log: list[dict] = []

    def note(line: dict) -> None:
        log.append(line)
        report(line)

    backbone = pretrain(env, recipe, note)
    backbone.save(folder)
    record = {
        "environment": env,
        **recipe_record(recipe),
        "parameters": sum(p.numel() for p in backbone.parameters()),
        "vocabulary": backbone.tok.size,
        "weights_sha256": backbone.sha256(),
        "tokens": log[-1]["tokens"],
        "seconds": log[-1]["seconds"],
        "cpu": cpu_model(),
        "packages": package_versions(),
        "log": log,
        "measured": measure(env, backbone, recipe.seed),
    }
    (folder / "record.json").write_text(json.dumps(record, indent=1) + "\n")
    return record


def measure(name: str, backbone: TinyBackbone, seed: int) -> dict[str, Any]:
    """Success on the default panel under different prompts, and the skills written about held-out episodes.

    ``correct``: written by the rules from a clean attempt at the same task; ``failed``: from a failed
    attempt; ``other_task``: a correct skill of another task; ``bank``: the static skill of the group.
    """
    section = EnvSection(name=name)
    env = make_environment(section)
    teach = teach_module(name)
    _, panel = splits_of(section)
    home = {t.id: t for s in env.splits() for t in env.tasks(s)}
    jobs = [
        Job(home[i], derive_seed(seed, "measure", i), derive_seed(seed, "world", i))
        for i in env.panel(panel).ids
    ]
    clean, flawed = demonstrate(env, jobs, teach, teach.CLEAN), demonstrate(env, jobs, teach, teach.FLAWED)
    correct = [env.annotate(e) for e in clean]
    told: dict[str, Sequence[Skill | None]] = {
        "none": [None] * len(jobs),
        "correct": correct,
        "failed": [env.annotate(f) if not f.success else c for f, c in zip(flawed, correct, strict=True)],
        "other_task": correct[7:] + correct[:7],
        "bank": [env.bank(j.task.public.group) for j in jobs],
    }
    out: dict[str, Any] = {
        "panel": panel,
        "tasks": len(jobs),
        "demonstrator": {"clean": _rate(clean), "flawed": _rate(flawed)},
    }
    engine = LocalEngine(cores())
    for temperature in (0.4, 1.0):
        for kind, skills in told.items():
            asked = [replace(j, skill=s) for j, s in zip(jobs, skills, strict=True)]
            episodes = engine.play(env, backbone.actor(temperature), asked, 64)
            out[f"success_t{temperature}_{kind}"] = _rate(episodes)
            if kind == "none" and temperature == 1.0:
                out["writing"] = writing(env, backbone, episodes, teach.faithful)
    return out


def writing(
    env: Environment, backbone: TinyBackbone, episodes: Sequence[Episode], faithful: Callable[..., float]
) -> dict[str, float]:
    """Parse rate, faithfulness (share of named things that occur in the trajectory) and agreement with the
    rules, of the skills a backbone writes about ``episodes``."""
    texts = backbone.analyse(episodes, env)
    found = [parse_analysis(t, "self") for t in texts]
    pairs = [(s, e) for s, e in zip(found, episodes, strict=True) if s is not None]
    scores = [float(faithful(s, e)) for s, e in pairs]
    return {
        "n": len(episodes),
        "parsed": round(len(pairs) / len(episodes), 4),
        "faithful": round(sum(scores) / max(len(scores), 1), 4),
        "fully_faithful": round(sum(x == 1.0 for x in scores) / max(len(scores), 1), 4),
        "as_the_rules": round(
            sum(s.text == _norm(env.annotate(e).text) for s, e in pairs) / len(episodes), 4
        ),
    }


def _norm(text: str) -> str:
    """The rules' text as a tokenizer without commas and filler words writes it."""
    return " ".join(w for w in text.replace(",", " ").split() if w not in ("a", "an", "the", "you", "and"))


def _rate(episodes: Sequence[Episode]) -> float:
    return round(sum(bool(e.success) for e in episodes) / max(len(episodes), 1), 4)
