"""One update of GRPO and of SEED with a chat model, through the same runner and trainer as the tiny one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chat_models import write_model

from seedbench.runner import resolve, train

SETTINGS = {
    "backbone": {"options": {"max_new_tokens": 6, "analysis_tokens": 4}},
    "train": {"updates": 1, "tasks": 1, "group": 2, "minibatches": 1, "block": 4},
    "eval": {"every": 0, "episodes": 1},
    "env": {"options": {"size": "small"}},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("hf") / "model")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Episodes of two steps and a panel of two tasks: the plumbing is the same, the test a hundredth."""
    from dataclasses import replace

    from seedbench.envs.alfworld import protocol
    from seedbench.envs.alfworld.env import AlfWorld

    from seedbench.panel import Panel

    monkeypatch.setitem(protocol.PROTOCOLS, "seed", replace(protocol.PROTOCOLS["seed"], max_steps=2))
    whole = AlfWorld.panel
    monkeypatch.setattr(AlfWorld, "panel", lambda self, name: Panel.of(name, whole(self, name).ids[:2]))


def run(method: str, model: Path, folder: Path, own: dict) -> Path:
    config = resolve("alfworld", method, f"hf:{model}", "quick", 0, {**SETTINGS, **own})
    return train(config, folder, 1, lambda metrics: None)


def updates(folder: Path) -> list[dict]:
    """The lines of training; lines of evaluations lie between them."""
    found = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [m for m in found if "evaluation" not in m]


def test_grpo_trains_and_resumes(model: Path, tmp_path: Path) -> None:
    """One update moves the weights; a second call finds nothing owed and changes nothing."""
    folder = run("grpo", model, tmp_path / "run", {})
    status = json.loads((folder / "manifest.json").read_text())
    assert status["model"]["decoding"] == "free"
    metrics = updates(folder)
    assert len(metrics) == 1 and metrics[0]["errors"] == 0 and metrics[0]["decided_tokens"] > 0
    final = {p.name: p.read_bytes() for p in (folder / "checkpoints" / "u00001").iterdir()}
    start = (folder / "checkpoints" / "start" / "model.safetensors").read_bytes()
    assert final["model.safetensors"] != start
    run("grpo", model, tmp_path / "run", {})
    again = {p.name: p.read_bytes() for p in (folder / "checkpoints" / "u00001").iterdir()}
    assert again == final and updates(folder) == metrics


def test_seed_warms_up_analyses_and_trains(model: Path, tmp_path: Path, monkeypatch) -> None:
    """Stage 1 with rule-written skills, then one update in which every trajectory has a skill and a teacher."""
    from seedbench.policies.hf import HfBackbone

    skill = '{"episode_summary": "s", "episode_skill": "open the drawer and look inside"}'
    monkeypatch.setattr(HfBackbone, "analyse", lambda self, episodes, env: [skill] * len(episodes))
    warm = {"tasks": 2, "repeats": 1, "epochs": 1, "batch": 2, "holdout": 0.5}
    folder = run("seed", model, tmp_path / "run", {"method": {"options": {"warm_up": warm}}})
    record = json.loads((folder / "warm_up.json").read_text())
    assert record["episodes"] == 2 and record["tokens"] > 0 and record["epochs"][0] > 0
    metrics = updates(folder)[0]
    assert metrics["skills_valid"] == 1.0
    assert metrics["teacher_gap"] != 0 and abs(metrics["teacher_gap"]) < 20
    assert metrics["loss_opd"] != 0 and metrics["grad_norm"] > 0
