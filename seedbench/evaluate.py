"""Evaluating without training: a finished run on ordinary history or with skills, scripted policies, and models
behind a server.

The result is an ordinary run folder (or further streams in one), so tables, leaderboard and audit read it
like any other. Whatever is there already is not played again.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbench.audit.guard import check_episode
from seedbench.audit.rebuild import rebuilder_for
from seedbench.config import BackboneSection, EnvSection, MethodSection, RunConfig, make_method, validated
from seedbench.contracts import Environment, Policy
from seedbench.engines.local import LocalEngine
from seedbench.errors import CheckpointCorrupt, ConfigError, DataMissing, RunConflict, UnknownName
from seedbench.jsonl import write_json
from seedbench.manifest import bank_sha256, panel_record
from seedbench.policies.openai import PREFIX, openai_policy
from seedbench.policies.scripted import OraclePolicy, RandomPolicy
from seedbench.records import to_record
from seedbench.registry import ENVIRONMENTS
from seedbench.rollout import Job, blocks, evaluation_job, play
from seedbench.runner import Setting, file_name, manifest_of, prepare
from seedbench.scales import SCALES
from seedbench.store import Run, RunStore
from seedbench.types import Episode

if TYPE_CHECKING:
    from seedbench.train.backbone import Backbone

Report = Callable[[dict[str, Any]], None]
#: Policies every environment has. An environment's package may bring more: the policy classes of its module
#: ``policies``, made without arguments.
COMMON: tuple[Callable[[], Policy], ...] = (RandomPolicy, OraclePolicy)


def policies_of(name: str) -> dict[str, Callable[[], Policy]]:
    """Scripted policies of an environment, by name."""
    package = _package(name)
    own: list[Callable[[], Policy]] = []
    if package and importlib.util.find_spec(f"{package}.policies") is not None:
        module = importlib.import_module(f"{package}.policies")
        own = [c for c in vars(module).values() if inspect.isclass(c) and c.__module__ == module.__name__]
    return {c.name: c for c in (*COMMON, *own) if hasattr(c, "act")}  # type: ignore[attr-defined]


def _package(name: str) -> str:
    """The package an environment's options come from."""
    return ENVIRONMENTS.get(name).options.__module__.rpartition(".")[0]


# -- a finished run --------------------------------------------------------------------------------------------
def final_checkpoint(run: Run) -> tuple[int, Path]:
    """``(updates, folder)`` of the newest checkpoint, verified. Raises :class:`DataMissing` without one."""
    from seedbench.train.checkpoint import verify

    folder = run.path / "checkpoints"
    done = sorted(p for p in folder.glob("u*") if (p / "files.json").is_file() and p.name[1:].isdigit())
    updates = int(run.config["train"]["updates"])
    place = done[-1] if done else folder / "start"
    if not place.is_dir():
        raise DataMissing(
            f"'{run.path}' holds no checkpoint. Packed records have none; use the original run folder."
        )
    verify(place)
    if done and int(place.name[1:]) != updates:
        raise CheckpointCorrupt(
            f"'{run.path}' stands at {int(place.name[1:])} of {updates} updates. Finish the run first: give its "
            "'seedbench run' command again."
        )
    return (int(place.name[1:]) if done else 0), place


def open_final(run: Run) -> Backbone:
    """The backbone of a run with the weights of its newest checkpoint."""
    from seedbench.policies.backbones import load_backbone

    _, place = final_checkpoint(run)
    # a checkpoint is a whole model folder: it is read instead of the weights the run began with
    options = {**(run.config["backbone"].get("options") or {}), "path": str(place)}
    section = BackboneSection(name=run.config["backbone"]["name"], options=options)
    backbone = load_backbone(section, run.config["env"]["name"])
    method = make_method(validated(MethodSection, run.config["method"], "method"))
    backbone.skill_position = getattr(method, "skill_position", "prefix")
    return backbone


def final_block(
    run: Run, env: Environment, wrap: Callable[[Policy], Policy], backbone: Backbone
) -> list[Episode]:
    """Plays the first block of the final evaluation again, in memory; ``wrap`` may watch the actor."""
    config = validated(RunConfig, run.config, "configuration")
    setting = prepare(config.env)
    jobs = _jobs(setting, config)
    first = blocks(jobs, config.train.block)[0]
    return play(env, wrap(backbone.actor(config.eval.temperature)), first)


def evaluate_run(
    folder: Path, with_skills: bool, panel: str = "", workers: int = 1, report: Report = lambda m: None
) -> str:
    """Play the panel with a run's final checkpoint and return the name of the stream it is written to.

    ``with_skills`` puts the bank skill of each task's group into its prompt (the papers' starred rows).
    ``panel`` names another panel of the environment; it is noted in the manifest. Raises
    :class:`RunConflict` when the environment here is not the run's.
    """
    import torch

    from seedbench.train.trainer import Parts, Trainer

    torch.set_num_threads(1)
    run = Run(folder)
    config: RunConfig = validated(RunConfig, run.config, "configuration")
    section = config.env if not panel else config.env.model_copy(update={"panel": panel})
    setting = prepare(section)
    declared = run.manifest["env"]["fingerprint"]
    if setting.env.spec.fingerprint != declared:
        raise RunConflict(
            f"'{folder}' was made with other data or templates (fingerprint {declared[:12]}, here "
            f"{setting.env.spec.fingerprint[:12]}). Restore them, or train again."
        )
    bank, here = run.manifest.get("bank_sha256"), bank_sha256(setting.env)
    if with_skills and bank and bank != here:
        raise RunConflict(
            f"'{folder}' was trained with another skill bank ({bank[:12]}, here {here[:12]}). "
            "Restore it, or train again: skills of one bank say nothing about another."
        )
    updates, _ = final_checkpoint(run)
    backbone = open_final(run)
    key = _note_panel(run, setting, config.eval.episodes) if panel else "eval"
    label = "final" + ("+skills" if with_skills else "") + (f"@{key}" if key != "eval" else "")
    with RunStore(folder) as store:
        engine = LocalEngine(workers)
        method = make_method(config.method)
        parts = Parts(setting.env, backbone, method, config, store, engine, setting.tasks, setting.entries)
        Trainer(parts, _no_analyst, report).evaluate(label, updates, skills=with_skills)
    return f"eval-{label}"


def _no_analyst() -> Any:
    raise ConfigError("An evaluation asks no analyst.")


def _note_panel(run: Run, setting: Setting, plays: int) -> str:
    """The key of a panel in the run's manifest, written there if it is new."""
    panels, name = run.manifest["panels"], setting.panel.name
    record = panel_record(setting.panel, name, setting.panel_tasks, plays)
    if {k: v for k, v in panels.get("eval", {}).items() if k != "split"} == {
        k: v for k, v in record.items() if k != "split"
    }:
        return "eval"
    if panels.setdefault(name, record) != record:
        raise RunConflict(f"'{run.path}' already has another panel under the name '{name}'.")
    write_json(run.path / "manifest.json", run.manifest)
    return name


# -- scripted policies and served models -----------------------------------------------------------------------
def evaluate_policy(
    section: EnvSection,
    name: str,
    out: Path,
    seed: int = 0,
    scale: str = "quick",
    plays: int | None = None,
    workers: int = 1,
    report: Report = lambda m: None,
    options: Mapping[str, Any] | None = None,
) -> Path:
    """Play the panel of ``section`` with a policy by name; returns its run folder under ``out``.

    ``name`` is a scripted policy, or ``openai:<model>`` with the client's ``options`` (see
    :class:`~seedbench.policies.openai.OpenAiOptions`). ``plays`` of each task default to those of ``scale``.
    The oracle reads hidden state and is marked privileged, so it never ranks.
    """
    served = name.startswith(PREFIX)
    settings = {
        **SCALES[scale]["eval"],
        **ENVIRONMENTS.get(section.name).scales.get(scale, {}).get("eval", {}),
    }
    if plays is not None:
        settings["episodes"] = plays
    config: RunConfig = validated(
        RunConfig,
        {
            "env": section.model_dump(),
            "method": MethodSection(name="vanilla" if served else name).model_dump(),
            "backbone": {"name": name, "options": dict(options or {})} if served else {"name": "scripted"},
            "scale": scale,
            "seed": seed,
            "train": {"updates": 0},
            "eval": settings,
        },
        "configuration",
    )
    setting = prepare(section)
    policy = _policy(section.name, config)
    model = {"name": config.backbone.name, "decoding": "choices" if policy.constrained else "free"}
    record = {"name": name, "privileged": policy.privileged, "trained": False}
    manifest = manifest_of(setting, model, record, seed, config.eval.episodes)
    variant = section.options.get("variant", "mini")
    folder = out / f"{section.name}-{variant}_{file_name(name)}_s{seed}_{config.sha256()[:8]}"
    with RunStore.create(folder, config.model_dump(mode="json"), manifest, resume=folder.exists()) as store:
        _play_panel(store, setting, config, policy, workers, report)
    return folder


def _policy(environment: str, config: RunConfig) -> Policy:
    """Raises :class:`UnknownName` with the policies of the environment."""
    backbone = config.backbone
    if backbone.name.startswith(PREFIX):
        return openai_policy(backbone.name.removeprefix(PREFIX), config.eval.temperature, backbone.options)
    known, name = policies_of(environment), config.method.name
    if name not in known:
        raise UnknownName(
            f"Unknown policy '{name}'. Policies of '{environment}': {', '.join(sorted(known))}, {PREFIX}<model>."
        )
    return known[name]()


def _play_panel(
    store: RunStore, setting: Setting, config: RunConfig, policy: Policy, workers: int, report: Report
) -> None:
    done = store.done_keys("eval-final")
    owed = [j for j in _jobs(setting, config) if (0, j.task.id, j.repeat) not in done]
    rebuilder = rebuilder_for(config.backbone.model_dump(mode="json"), ())
    count = 0

    def write(episode: Episode) -> None:
        nonlocal count
        count += 1
        if rebuilder is not None:
            check_episode(setting.env, rebuilder, episode)
        store.append_episode("eval-final", to_record(episode, "eval", 0))
        report({"episode": count, "of": len(owed), "success": episode.success})

    LocalEngine(workers).play(setting.env, policy, owed, config.train.block, write)
    store.set_status("finished")


def _jobs(setting: Setting, config: RunConfig) -> list[Job]:
    plays = config.eval.episodes
    return [
        evaluation_job(task, config.seed, r)
        for task, repeat in setting.entries
        for r in range(repeat * plays, (repeat + 1) * plays)
    ]
