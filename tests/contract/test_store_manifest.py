"""The manifest tells the circumstances, and nothing private."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from seedbench.contracts import EnvSpec
from seedbench.manifest import build_manifest, git_state, panel_record
from seedbench.panel import Panel
from seedbench.records import canonical_json
from seedbench.types import HiddenTask, PublicTask, Task


def manifest() -> dict:
    tasks = [
        Task(PublicTask(f"t{i}", "test", "even" if i % 2 == 0 else "odd"), HiddenTask("gold"))
        for i in range(3)
    ]
    panel = panel_record(Panel.of("mini", ["t2", "t0", "t0"]), "test", tasks)
    spec = EnvSpec("toy", "mini", "p1", 5, 2, 0.1, "f00", {"size": "3"})
    return build_manifest(
        spec=spec,
        groups=("even", "odd"),
        panels={"eval": panel},
        prompt_sha256="abc",
        bank_sha256="def",
        model={"name": "tiny", "sha256": "123"},
        seeds={"train": 0},
        policy={"name": "tiny", "privileged": False},
        threads=1,
    )


def test_it_names_environment_panel_code_and_machine() -> None:
    made = manifest()
    assert made["env"] == {
        "name": "toy", "variant": "mini", "protocol": "p1", "max_steps": 5, "history_length": 2,
        "invalid_penalty": 0.1, "fingerprint": "f00", "details": {"size": "3"}, "groups": ["even", "odd"],
    }  # fmt: skip
    assert made["panels"]["eval"]["groups"] == ["even"] * 3
    assert made["packages"]["numpy"] and made["python"] and made["cpu"] and made["threads"] == 1
    assert json.loads(canonical_json(made)) == made


def test_secrets_and_hidden_fields_stay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    text = canonical_json(manifest())
    assert "canary" not in text and "gold" not in text


def test_git_state_tells_sha_and_dirt_and_is_absent_outside_a_checkout(tmp_path: Path) -> None:
    assert git_state(tmp_path) is None

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True)

    git("init")
    (tmp_path / "__init__.py").write_text("x = 1\n")
    assert git_state(tmp_path) is None  # not tracked: somebody else's repository
    git("add", "__init__.py")
    git("commit", "-m", "one")
    state = git_state(tmp_path)
    assert state is not None and len(state["sha"]) == 40 and state["dirty"] is False
    (tmp_path / "__init__.py").write_text("x = 2\n")
    assert git_state(tmp_path) == {"sha": state["sha"], "dirty": True}


def test_without_git_the_state_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(tmp_path) is None
