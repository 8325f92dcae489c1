"""The shipped studies, from plan to report, at smoke scale: one update of every arm on short panels.

What a report says is kept in ``snapshots/`` with its measured numbers struck out: they depend on the last bit of
the processor's arithmetic. The numbers themselves are counted again here, from the episode files.
``SEEDBENCH_SNAPSHOTS=write pytest -m slow tests/e2e/test_study_shipped.py`` accepts what the reports say now.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from statistics import fmean

import pytest

from seedbench.reports.layout import title
from seedbench.study.execute import execute
from seedbench.study.folder import StudyFolder
from seedbench.study.model import load, shipped
from seedbench.study.report import report
from seedbench.tables import Table

pytestmark = pytest.mark.slow
SNAPSHOTS = Path(__file__).parent / "snapshots"
#: A cell with a decimal number, its interval and its note; and the token budget of a cost table.
MEASURED = re.compile(r"(?<=\| )\*{0,2}-?\d[\d,]*\.\d+[^|]*(?= \|)|(?<=at most )[\d,]+(?= training tokens)")
#: Whether an arm had an evaluation within the tokens of another: a verdict, a dash, and how many had.
WITHIN = re.compile(r"(?<=\| )(?:—|one seed: no claim)(?= \|)|\d+(?= at equal training tokens)")


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_study_runs_from_plan_to_report(name: str, tmp_path: Path) -> None:
    ours = ("alfworld", "search_qa", "webshop")  # other tests of this process register worlds of their own
    changes = {"environments": ours} if load(name).environments == "all" else {}
    folder = StudyFolder(load(name, smoke=True, changes=changes), tmp_path / name)
    failed = execute(folder, 2)
    assert failed == [], [folder.failure(run).read_text() for run in failed]
    table, written, note = report(folder)
    assert note == "" and all(p.stat().st_size for p in written)
    assert counted(folder) == shown(table)
    for page in ("README", "tests", "costs"):
        said = (folder.path / "report" / f"{page}.md").read_text("utf-8")
        said = MEASURED.sub("#", said)
        keep(f"{name}-{page.lower()}.md", said if page == "README" else WITHIN.sub("#", said))
    before = {p: p.read_bytes() for p in written if not p.name.startswith("costs")}
    assert execute(folder, 2) == []
    report(folder)
    assert {p: p.read_bytes() for p in before} == before


def keep(name: str, text: str) -> None:
    path = SNAPSHOTS / name
    if os.environ.get("SEEDBENCH_SNAPSHOTS") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text("utf-8"), f"{path} (see the head of this file)"


def counted(folder: StudyFolder) -> dict[tuple[str, str, str], float]:
    """(environment, panel, arm and data share) -> success rate, by reading the episode files line by line."""
    out = {}
    for run in folder.runs:
        panels = json.loads((folder.run_path(run) / "manifest.json").read_text())["panels"]
        for path in sorted((folder.run_path(run) / "episodes").glob("eval-final*.jsonl")):
            label = path.stem.removeprefix("eval-final")
            panel = panels[label.partition("@")[2] or "eval"]["name"]
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            assert len(lines) == 7
            arm = run.arm + "*" * label.startswith("+skills")
            out[run.config.env.name, panel, f"{arm} {run.config.train.data_fraction:g}"] = fmean(
                bool(line["success"]) for line in lines
            )
    return out


def shown(table: Table) -> dict[tuple[str, str, str], float]:
    """The same from the main table's cells."""
    out = {}
    for block in table.blocks:
        for row in block.rows:
            arm = row.labels[0].removesuffix(" †")
            for key, cell in row.cells.items():
                env, _, column = key.partition(".")
                if table.name == "table6":
                    env, share = "alfworld", key
                elif column in ("micro", "success"):
                    share = "1"
                else:
                    continue
                note = next(n for n in block.notes if n.startswith(f"{title(env)} mini;"))
                panel = re.search(r"panel (\S+) \(7 tasks\)", note)
                assert panel is not None
                out[env, panel[1], f"{arm} {share}"] = cell.value
    return out
