"""Every measured study in the repository: its tables are what its records give, and its runs pass the audit."""

from __future__ import annotations

from pathlib import Path

import pytest

from seedbench.audit.runs import audit_run
from seedbench.reports.spending import Curves
from seedbench.store import Run
from seedbench.study.folder import StudyFolder
from seedbench.study.model import load
from seedbench.study.report import FORMATS, tables
from seedbench.tables import render

ROOT = Path(__file__).resolve().parent.parent.parent / "results" / "measured"
STUDIES = sorted(p.parent for p in ROOT.glob("*/study.json"))
RUNS = sorted(p.parent for p in ROOT.glob("*/runs/*/config.json"))


def test_there_is_a_study() -> None:
    assert STUDIES and RUNS


@pytest.mark.parametrize("study", STUDIES, ids=lambda p: p.name)
def test_reports_are_what_the_records_give(study: Path) -> None:
    """Tables, paired tests and costs of a packed study, in every format, to the byte."""
    folder = StudyFolder(load(str(study)), study)
    assert folder.owed() == []
    made = tables(folder, Curves())
    for table in made:
        for form, suffix in FORMATS.items():
            kept = (study / "report" / f"{table.name}.{suffix}").read_text(encoding="utf-8")
            assert render(table, form) == kept, (table.name, form)
    assert render(made[0], "markdown").strip() in (study / "report" / "README.md").read_text(encoding="utf-8")


def test_runs_were_made_from_committed_code() -> None:
    for path in RUNS:
        git = Run(path).manifest["git"]
        assert git is not None and not git["dirty"], path


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS, ids=lambda p: p.name)
def test_runs_pass_the_audit(run: Path, shared_data, monkeypatch: pytest.MonkeyPatch) -> None:
    variant = Run(run).config["env"]["options"].get("variant", "mini")
    if variant != "mini":
        name = Run(run).config["env"]["name"]
        monkeypatch.setenv(f"{name.upper()}_DATA", str(shared_data(name)))
    report = audit_run(run)
    assert report.ok, "\n".join(report.lines())
