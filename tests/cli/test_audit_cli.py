"""``seedbench audit`` and ``seedbench eval`` as a user meets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from seedbench.cli.audit import audit, diagnose
from seedbench.cli.evaluate import evaluate
from seedbench.errors import ConfigError, LeakFound
from tests.red_team import edit, write_run


def run(command: Callable[..., None], *arguments: str):  # type: ignore[no-untyped-def]
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, list(arguments))


def test_audit_prints_verdicts_and_fails_with_three(tmp_path: Path) -> None:
    path = write_run(tmp_path / "r")
    good = run(audit, str(path))
    assert good.exit_code == 0 and "0 FAIL" in good.stdout, good.stdout
    edit(path, lambda records: records[0].update(success=not records[0]["success"]))
    bad = run(audit, str(path), "--json")
    assert isinstance(bad.exception, LeakFound) and bad.exception.exit_code == 3
    assert "replay" in str(bad.exception)
    (report,) = json.loads(bad.stdout)
    assert [c["key"] for c in report["checks"] if c["status"] == "fail"] == ["replay"]


@pytest.mark.parametrize("arguments", [(), ("runs", "--canary", "alfworld")])
def test_audit_wants_a_run_or_an_environment(arguments: tuple[str, ...]) -> None:
    assert isinstance(run(audit, *arguments).exception, ConfigError)


def test_canary_of_an_environment() -> None:
    result = run(audit, "--canary", "alfworld", "--tasks", "2")
    assert result.exit_code == 0 and "6 pass" in result.stdout


@pytest.mark.parametrize("arguments", [(), ("somewhere", "--policy", "random")])
def test_eval_wants_a_run_or_a_policy(arguments: tuple[str, ...]) -> None:
    assert isinstance(run(evaluate, *arguments).exception, ConfigError)


def test_diagnose_needs_a_run(tmp_path: Path) -> None:
    assert run(diagnose, str(tmp_path)).exception is not None
