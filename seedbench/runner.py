"""From a configuration to a finished run folder: the parts are put together here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbench.config import (
    EnvSection,
    RunConfig,
    make_environment,
    make_method,
    merge,
    splits_of,
    validated,
)
from seedbench.contracts import Environment
from seedbench.engines.local import LocalEngine
from seedbench.jsonl import write_json
from seedbench.manifest import bank_sha256, build_manifest, panel_record, prompt_sha256
from seedbench.panel import Panel, assert_disjoint, find_panel
from seedbench.registry import METHODS
from seedbench.scales import default_scale, settings_of
from seedbench.store import RunStore
from seedbench.types import Task

Report = Callable[[dict[str, Any]], None]


def resolve(
    env: str,
    method: str,
    backbone: str = "tiny",
    scale: str = "",
    seed: int = 0,
    own: dict[str, Any] | None = None,
) -> RunConfig:
    """A full configuration from names: scale, then the settings of ``own``, which win."""
    scale = scale or default_scale(backbone)
    base = {
        "env": {"name": env},
        "method": {"name": method},
        "backbone": {"name": backbone},
        "scale": scale,
        "seed": seed,
    }
    base = merge(base, settings_of(scale, env, METHODS.get(method)))
    config: RunConfig = validated(RunConfig, merge(base, own or {}), "configuration")
    make_method(config.method)  # wrong method options are found before anything is written
    splits_of(config.env)
    return config


def run_name(config: RunConfig) -> str:
    """Folder name of a run: what it is, and eight digits of its configuration's hash."""
    env = f"{config.env.name}-{config.env.options.get('variant', 'mini')}"
    backbone = file_name(config.backbone.name)
    return f"{env}_{config.method.name}_{backbone}_{config.scale}_s{config.seed}_{config.sha256()[:8]}"


def file_name(model: str) -> str:
    """A model's name (``hf:org/m``, ``openai:m``) as a part of a folder's name."""
    return model.replace("/", "_").replace(":", "-")


@dataclass(frozen=True, slots=True)
class Setting:
    """Environment, training tasks and evaluation panel of a run, checked for overlap."""

    env: Environment
    split: str
    tasks: Sequence[Task]
    panel: Panel
    entries: list[tuple[Task, int]]
    panel_tasks: Sequence[Task]


def prepare(section: EnvSection) -> Setting:
    """Build the environment and its task lists. Raises :class:`LeakFound` when they share a task."""
    env = make_environment(section)
    split, panel_name = splits_of(section)
    panel = find_panel(env, panel_name)
    tasks = env.tasks(split)
    assert_disjoint((t.id for t in tasks), panel.ids)
    home = {t.id: t for s in env.splits() if s != split for t in env.tasks(s)}
    entries = [(home[i], repeat) for i, repeat in panel.entries()]
    return Setting(env, split, tasks, panel, entries, [home[i] for i in dict.fromkeys(panel.ids)])


def manifest_of(
    setting: Setting, model: dict[str, Any], policy: dict[str, Any], seed: int, plays: int
) -> dict:
    """The manifest of a run or an evaluation."""
    panels = {"eval": panel_record(setting.panel, setting.panel.name, setting.panel_tasks, plays)}
    if policy.get("trained"):
        training = Panel.of(setting.split, [t.id for t in setting.tasks])
        panels["train"] = panel_record(training, setting.split, setting.tasks)
    return build_manifest(
        spec=setting.env.spec,
        groups=setting.env.groups,
        panels=panels,
        prompt_sha256=prompt_sha256(setting.env),
        bank_sha256=bank_sha256(setting.env),
        model=model,
        seeds={"run": seed},
        policy=policy,
        threads=1,
    )


def train(config: RunConfig, folder: Path, workers: int, report: Report, resume: bool = True) -> Path:
    """Train and evaluate; with ``resume``, continue where an earlier call stopped. Returns the run folder.

    Raises what :mod:`seedbench.errors` names; on Ctrl-C the folder is left resumable.
    """
    import torch

    from seedbench.policies.backbones import load_backbone
    from seedbench.train.ledger import BEFORE, Costs
    from seedbench.train.skills import BackboneAnalyst
    from seedbench.train.trainer import Parts, Trainer
    from seedbench.train.warmup import warm_up

    torch.set_num_threads(1)
    torch.manual_seed(config.seed)
    setting = prepare(config.env)
    backbone = load_backbone(config.backbone, config.env.name)
    method = make_method(config.method)
    # chat models put a privileged skill where the method's paper puts it; the tiny model has one place
    backbone.skill_position = getattr(method, "skill_position", "prefix")
    model = {"name": config.backbone.name, "sha256": backbone.sha256(), "decoding": backbone.decoding}
    policy = {"name": config.method.name, "privileged": False, "trained": True}
    manifest = manifest_of(setting, model, policy, config.seed, config.eval.episodes)
    engine = LocalEngine(workers)
    with RunStore.create(folder, config.model_dump(mode="json"), manifest, resume=resume) as store:
        parts = Parts(setting.env, backbone, method, config, store, engine, setting.tasks, setting.entries)

        def start() -> None:
            if method.warm_up is not None:
                plan, block = method.warm_up, config.train.block
                with Costs(store, BEFORE).stage("sft") as cost:
                    record = warm_up(
                        setting.env, backbone, trainer.tasks, plan, config.seed, engine, block, report
                    )
                    trained = record["trained_tokens"]
                    read = backbone.flops(record["tokens"] - trained, False)
                    cost(record["tokens"], read + backbone.flops(trained, True))
                write_json(folder / "warm_up.json", record)

        def analyst() -> BackboneAnalyst:
            frozen = getattr(method, "skill_source", "") == "frozen"
            return BackboneAnalyst(backbone, setting.env, setting.env.bank, frozen)

        trainer = Trainer(parts, analyst, report)
        try:
            trainer.run(start)
        except KeyboardInterrupt:
            store.set_ending("interrupted", config.train.updates, "stopped by the user; run again to resume")
            raise
        except Exception as error:
            store.set_ending("failed", config.train.updates, str(error))
            raise
        store.set_status("finished", config.train.updates, config.train.updates)
    return folder
