"""The circumstances of a run: code, packages, machine, data, panels, prompts, weights, seeds.

``manifest.json``::

    {"schema": 1, "seedbench": "0.1.0", "started": "2026-01-31T12:00:00Z",
     "git": {"sha": ..., "dirty": bool} | null, "packages": {name: version}, "python": ..., "platform": ...,
     "cpu": ..., "threads": int,
     "env": {EnvSpec fields, "groups": [...]},
     "panels": {"train": PANEL, "eval": PANEL, <further panel>: PANEL},
     "prompt_sha256": ..., "bank_sha256": ..., "model": {"name": ..., "sha256": ..., ...}, "seeds": {...},
     "policy": {"name": ..., "privileged": bool}, "config_sha256": ...}

    PANEL = {"name": ..., "split": ..., "sha256": ..., "repeats": 1, "ids": [...], "groups": [...]}

``groups`` of a panel names the reporting group of each id, in the same order; the scorer counts tasks that
were never played by it. Environment variables, command lines and host names are not recorded.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import seedbench
from seedbench.contracts import Environment, EnvSpec
from seedbench.errors import SeedbenchError
from seedbench.panel import Panel, sha256_lines
from seedbench.records import canonical_json
from seedbench.types import Task

SCHEMA = 1
#: Packages whose version can change a number.
PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "scipy", "pydantic", "gymnasium")


def build_manifest(
    *,
    spec: EnvSpec,
    groups: Sequence[str],
    panels: Mapping[str, Mapping[str, Any]],
    prompt_sha256: str,
    bank_sha256: str,
    model: Mapping[str, Any],
    seeds: Mapping[str, int],
    policy: Mapping[str, Any],
    threads: int,
) -> dict[str, Any]:
    """Everything a reader needs to judge or repeat the run. ``panels`` come from :func:`panel_record`."""
    return {
        "schema": SCHEMA,
        "seedbench": seedbench.__version__,
        "started": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "git": git_state(Path(seedbench.__file__).resolve().parent),
        "packages": package_versions(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_model(),
        "cores": os.cpu_count() or 1,
        "threads": threads,
        "env": {**_spec(spec), "groups": list(groups)},
        "panels": {name: dict(panel) for name, panel in panels.items()},
        "prompt_sha256": prompt_sha256,
        "bank_sha256": bank_sha256,
        "model": dict(model),
        "seeds": dict(seeds),
        "policy": dict(policy),
    }


def panel_record(panel: Panel, split: str, tasks: Sequence[Task], repeats: int = 1) -> dict[str, Any]:
    """A panel as the manifest holds it. ``tasks`` must contain every id of the panel."""
    group = {t.id: t.public.group for t in tasks}
    return {
        "name": panel.name,
        "split": split,
        "sha256": panel.sha256,
        "repeats": repeats,
        "ids": list(panel.ids),
        "groups": [group[i] for i in panel.ids],
    }


def prompt_sha256(env: Environment) -> str:
    """Hash over the environment's fingerprint, which covers its templates (see ``EnvSpec``)."""
    return sha256_lines([env.spec.fingerprint])


def bank_sha256(env: Environment) -> str:
    """Hash of the static skills of all reporting groups: which bank a method was given (BR-098)."""
    lines = []
    for group in env.groups:
        try:
            skill = env.bank(group)
        except SeedbenchError:  # an environment need not have a bank
            continue
        lines.append(canonical_json([group, skill.summary, skill.text]))
    return sha256_lines(lines)


def _spec(spec: EnvSpec) -> dict[str, Any]:
    return {f.name: getattr(spec, f.name) for f in fields(spec)} | {"details": dict(spec.details)}


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit and whether tracked files differ from it; None outside a git checkout or without git.

    A package installed *inside* somebody's repository (a virtual environment there) is not that repository:
    the package folder itself must be tracked.
    """
    try:
        tracked = _git(folder, "ls-files", "--error-unmatch", "__init__.py")
        sha = _git(folder, "rev-parse", "HEAD") if tracked is not None else None
        changes = _git(folder, "status", "--porcelain", "--untracked-files=no") if sha else None
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if sha is None else {"sha": sha, "dirty": bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else None


def package_versions(names: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Installed versions, read from metadata; nothing is imported."""
    out = {}
    for name in names:
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            continue
    return out


def cpu_model() -> str:
    """Model name of the processor, as far as the system tells."""
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
