"""What a study's folder says about its runs.

Layout (``<out>/<name>-<scale>/``)::

    study.json               the resolved study
    runs/<run name>/         run folders, see :mod:`seedbench.store`
    logs/<run name>.log      output of the run's process
    failures/<run name>.txt  why the last attempt failed; removed when the run is tried again
    active.json              the process that executes the study, and the runs it has started
    report/                  tables, figures, costs
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from seedbench.errors import DataCorrupt, DataMissing, RunConflict, SeedbenchError
from seedbench.jsonl import read_json, storage, write_json
from seedbench.registry import METHODS
from seedbench.reports.spending import spent_by_stage
from seedbench.store import Run
from seedbench.study.model import RECORD, Planned, Study, plan, spelled_out

State = Literal["finished", "running", "failed", "stopped", "owed"]


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a run is. ``success`` is that of its newest evaluation; ``message`` says why it failed."""

    run: Planned
    state: State
    update: int = 0
    seconds: float = 0.0
    tokens: int = 0
    success: float | None = None
    message: str = ""


class StudyFolder:
    """A study and the place of its files. Reading changes nothing."""

    def __init__(self, study: Study, path: Path) -> None:
        self.study, self.path, self.runs = study, path, plan(study)

    def run_path(self, run: Planned) -> Path:
        return self.path / "runs" / run.name

    def log(self, run: Planned) -> Path:
        return self.path / "logs" / f"{run.name}.log"

    def failure(self, run: Planned) -> Path:
        return self.path / "failures" / f"{run.name}.txt"

    def begin(self) -> None:
        """Make the folder and note the study. Raises :class:`RunConflict` when another one lives here.

        A study that grew (more seeds, arms, environments) continues: nothing that was made is lost to it.
        """
        record = self.path / RECORD
        if record.is_file():
            old = [r.name for r in plan(Study.model_validate(read_json(record)))]
            kept = {r.name for r in self.runs}
            lost = [name for name in old if name not in kept]
            if lost:
                raise RunConflict(
                    f"'{self.path}' holds a study with other runs (for example '{lost[0]}'). Choose another "
                    "--out, or continue that one by giving its folder instead of a name."
                )
        for part in ("runs", "logs", "failures"):
            with storage(self.path / part, "create"):
                (self.path / part).mkdir(parents=True, exist_ok=True)
        write_json(record, spelled_out(self.study).model_dump(mode="json"))

    # -- standing --------------------------------------------------------------------------------------------
    def standings(self) -> list[Standing]:
        active = self.active()
        return [self._standing(run, active) for run in self.runs]

    def finished(self) -> list[Planned]:
        return [run for run in self.runs if self.done(run)]

    def owed(self) -> list[Planned]:
        return [run for run in self.runs if not self.done(run)]

    def done(self, run: Planned) -> bool:
        """Trained, evaluated, and every further panel played."""
        try:
            record = Run(self.run_path(run))
            return record.status["state"] == "finished" and not self.owed_panels(run, record)
        except (DataMissing, DataCorrupt):
            return False

    def owed_panels(self, run: Planned, record: Run) -> list[tuple[str, bool]]:
        """``(panel, with skills)`` of the further evaluations that are not complete. An episode lost to an
        infrastructure error counts as played, as it does in the run's own evaluations."""
        starred = METHODS.get(run.config.method.name).starred
        wanted = [(p, skills) for p in run.panels for skills in ((False, True) if starred else (False,))]
        return [(p, skills) for p, skills in wanted if not _complete(record, p, skills, run)]

    def active(self) -> set[str]:
        """Names of the runs that a living process works on now."""
        try:
            noted = read_json(self.path / "active.json")
        except SeedbenchError:
            return set()
        return set(noted["runs"]) if _alive(int(noted["pid"])) else set()

    def note_active(self, runs: Sequence[str]) -> None:
        write_json(self.path / "active.json", {"pid": os.getpid(), "runs": sorted(runs)})

    def _standing(self, run: Planned, active: set[str]) -> Standing:
        failure = self.failure(run)
        state: State = "running" if run.name in active else "owed"
        try:
            record = Run(self.run_path(run))
            status, costs = record.status, spent_by_stage(record).values()
            scores = [m["success"] for m in record.metrics() if "evaluation" in m]
        except DataMissing:
            if state == "owed" and failure.is_file():
                return Standing(run, "failed", message=failure.read_text("utf-8"))
            return Standing(run, state)
        if self.done(run):
            state = "finished"
        elif state == "owed":
            state = "failed" if failure.is_file() else "stopped"
        return Standing(
            run,
            state,
            run.config.train.updates if status["state"] == "finished" else int(status["update"]),
            sum(c.seconds for c in costs),
            sum(c.tokens for c in costs),
            scores[-1] if scores else None,
            failure.read_text("utf-8") if state == "failed" else "",
        )


def _complete(record: Run, panel: str, skills: bool, run: Planned) -> bool:
    """Whether every task of a panel was played. A panel equal to the run's own has the run's own stream."""
    noted = record.manifest["panels"]
    if panel not in noted and noted["eval"]["name"] != panel:
        return False
    key = panel if panel in noted else "eval"
    stream = "eval-final" + ("+skills" if skills else "") + (f"@{panel}" if key == panel else "")
    expected = len(noted[key]["ids"]) * run.config.eval.episodes
    return len(record.records(stream)) >= expected


def _alive(pid: int) -> bool:
    if os.name == "nt":
        return True  # there, asking by signal 0 would interrupt the process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
