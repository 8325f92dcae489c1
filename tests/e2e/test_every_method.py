"""Every method trains on every mini environment with the shipped weights, and its run passes the audit."""

from __future__ import annotations

from pathlib import Path

import pytest

from seedbench.audit.runs import audit_run
from seedbench.registry import ENVIRONMENTS, METHODS
from seedbench.runner import resolve, train
from seedbench.store import Run

SMALL = {
    "train": {"updates": 1, "tasks": 2, "group": 4},
    "eval": {"every": 0},
}


@pytest.mark.slow
@pytest.mark.parametrize("env", ENVIRONMENTS.names())
@pytest.mark.parametrize("method", METHODS.names())
def test_a_method_trains_and_its_run_is_honest(method: str, env: str, tmp_path: Path) -> None:
    own = dict(SMALL)
    if METHODS.get(method).warm_up is not None:
        own["method"] = {"options": {"warm_up": {"tasks": 4, "repeats": 1}}}
    config = resolve(env, method, own=own)
    folder = train(config, tmp_path / "run", 2, lambda m: None)
    run = Run(folder)
    assert run.status["state"] == "finished"
    final = run.records("eval-final")
    assert len(final) == len(run.manifest["panels"]["eval"]["ids"])
    assert all(r["acting_skill"] is None for r in final)
    starred = METHODS.get(method).starred
    assert (len(run.records("eval-final+skills")) > 0) == starred
    report = audit_run(folder)
    assert report.ok, "\n".join(report.lines())
