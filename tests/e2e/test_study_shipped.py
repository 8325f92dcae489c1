"""The shipped studies at smoke scale on every environment whose tiny model is in the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from seedbench.policies.backbones import tiny_folder
from seedbench.registry import ENVIRONMENTS
from seedbench.study.execute import execute
from seedbench.study.folder import StudyFolder
from seedbench.study.model import load, shipped
from seedbench.study.report import report

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_study_runs_from_plan_to_report(name: str, tmp_path: Path) -> None:
    changes = {}
    if load(name).environments == "all":
        ready = [e for e in ENVIRONMENTS.names() if (tiny_folder(e) / "model.safetensors").is_file()]
        changes = {"environments": ready}
    folder = StudyFolder(load(name, smoke=True, changes=changes), tmp_path / name)
    failed = execute(folder, 1)
    assert failed == [], [folder.failure(run).read_text() for run in failed]
    table, written, note = report(folder)
    assert note == "" and all(p.stat().st_size for p in written)
    rows = {row.labels[0].removesuffix(" †") for block in table.blocks for row in block.rows}
    assert rows >= {r.arm for r in folder.runs}
    if name == "table6":
        assert [c.title for c in table.blocks[0].columns] == ["20 %", "40 %", "60 %", "80 %", "100 %"]
    if name == "table7":
        assert {"unseen" in b.title for b in table.blocks} == {True, False}
    before = {p: p.read_bytes() for p in written if not p.name.startswith("costs")}
    assert execute(folder, 1) == []
    report(folder)
    assert {p: p.read_bytes() for p in before} == before
