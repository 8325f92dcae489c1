"""Studies end to end on the boxes: executed, interrupted, resumed, extended, reported."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest
import toys

from seedbench.errors import ConfigError, RunConflict
from seedbench.store import Run
from seedbench.study.estimate import Ledger
from seedbench.study.execute import Event, execute
from seedbench.study.folder import StudyFolder
from seedbench.study.model import Study, load
from seedbench.study.report import report
from seedbench.study.share import pack_study


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toys.save_backbone(tmp_path_factory.mktemp("model"), seed=4)


def study(model: Path, **over: object) -> Study:
    """GRPO, an ablation of it and Skill-Prompt on the boxes; two evaluations each."""
    toys.register()
    settings = toys.settings(model, updates=1)
    settings.pop("method")
    raw = {
        "name": "toy",
        "environments": ["boxes"],
        "methods": ["grpo", "skill_prompt"],
        "arm": [{"label": "grpo (mean only)", "method": "grpo", "options": {"advantage": {"scale": "none"}}}],
        "settings": settings,
    }
    return Study.model_validate({**raw, **over})


def pages(folder: StudyFolder) -> dict[str, bytes]:
    """The files of a report that depend on the records alone."""
    report(folder)
    out = folder.path / "report"
    return {
        str(p.relative_to(out)): p.read_bytes()
        for p in sorted(out.rglob("*"))
        if p.is_file() and not p.name.startswith("costs.")
    }


@pytest.fixture(scope="module")
def finished(model: Path, tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    folder = StudyFolder(study(model), tmp_path_factory.mktemp("whole") / "toy")
    assert execute(folder, 1) == []
    return folder


@pytest.fixture(scope="module")
def whole(finished: StudyFolder) -> dict[str, bytes]:
    return pages(finished)


def test_a_study_runs_once_and_reports_its_rows(model: Path, tmp_path: Path) -> None:
    folder, events = StudyFolder(study(model), tmp_path / "toy"), []
    assert execute(folder, 2, events.append) == []
    kinds = [e.kind for e in events]
    assert (kinds.count("started"), kinds.count("finished")) == (3, 3)
    assert {s.state for s in folder.standings()} == {"finished"}
    table, written, _ = report(folder)
    labels = {row.labels[0] for block in table.blocks for row in block.rows}
    assert labels == {"grpo", "grpo (mean only)", "skill_prompt", "skill_prompt* †"}
    assert {p.name for p in written} >= {"README.md", "table1.md", "table1.html", "table1.csv", "table1.tex"}
    assert all(p.stat().st_size for p in written)
    before = {p: p.stat().st_mtime_ns for p in folder.path.rglob("*.jsonl")}
    assert execute(folder, 2, events.append) == []
    assert len(events) == 6
    assert {p: p.stat().st_mtime_ns for p in folder.path.rglob("*.jsonl")} == before


def in_a_process(folder: StudyFolder, jobs: int) -> multiprocessing.Process:
    process = multiprocessing.get_context("fork").Process(target=execute, args=(folder, jobs))
    process.start()
    return process


def lines(folder: StudyFolder) -> int:
    return sum(p.stat().st_size for p in folder.path.glob("runs/*/episodes/*.jsonl"))


@pytest.mark.parametrize(
    ("kill", "jobs"), [(0, 2), *(pytest.param(i, 1 + i % 2, marks=pytest.mark.slow) for i in range(1, 8))]
)
def test_killed_at_random_moments_the_tables_are_the_same_bytes(
    kill: int, jobs: int, model: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    rng = random.Random(f"study/{kill}")
    folder = StudyFolder(study(model), tmp_path / "toy")
    killed = 0
    for _ in range(2):
        process, goal = in_a_process(folder, jobs), lines(folder) + rng.randrange(1, 12_000)
        while process.is_alive() and lines(folder) < goal:
            time.sleep(0.002)
        killed += process.is_alive()
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
    assert killed
    assert execute(folder, jobs) == []
    assert pages(folder) == whole


def test_ctrl_c_stops_the_children_and_everything_is_resumable(
    model: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    folder = StudyFolder(study(model), tmp_path / "toy")
    seen: list[Event] = []

    def interrupt(event: Event) -> None:
        seen.append(event)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(folder, 1, interrupt)
    assert folder.active() == set()
    assert {s.state for s in folder.standings()} <= {"finished", "stopped", "owed"}
    assert execute(folder, 1) == []
    assert pages(folder) == whole


def test_a_run_that_fails_stops_no_other_and_is_tried_again(
    model: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    folder = StudyFolder(study(model), tmp_path / "toy")
    victim = folder.runs[0]
    blocked = folder.run_path(victim)
    blocked.mkdir(parents=True)
    (blocked / "notes.txt").write_text("mine")
    events: list[Event] = []
    assert execute(folder, 1, events.append) == [victim]
    assert [e.message for e in events if e.kind == "failed"] == [folder.failure(victim).read_text()]
    standing = next(s for s in folder.standings() if s.run == victim)
    assert standing.state == "failed"
    assert "notes.txt" in standing.message
    _, written, _ = report(folder)
    summary = written[0].read_text()
    assert "2 of 3 planned runs" in summary and victim.name in summary
    (blocked / "notes.txt").unlink()
    assert execute(folder, 1) == []
    assert not folder.failure(victim).exists()
    assert pages(folder) == whole


def test_a_killed_child_is_reported_as_such(model: Path, tmp_path: Path) -> None:
    """Often the system, for memory. The others go on."""
    folder = StudyFolder(study(model, methods=["grpo"], arm=[], seeds=[0, 1]), tmp_path / "toy")
    seen: list[Event] = []

    def kill_first(event: Event) -> None:
        seen.append(event)
        if len(seen) == 1:
            for child in multiprocessing.active_children():
                os.kill(child.pid or 0, signal.SIGKILL)

    (failed,) = execute(folder, 1, kill_first)
    assert "SIGKILL" in folder.failure(failed).read_text()
    assert [e.kind for e in seen] == ["started", "failed", "started", "finished"]


def test_a_study_may_grow_and_finished_runs_are_kept(model: Path, tmp_path: Path) -> None:
    small = StudyFolder(study(model, methods=["grpo"], arm=[], seeds=[0]), tmp_path / "toy")
    execute(small, 1)
    grown = StudyFolder(study(model, methods=["grpo"], arm=[], seeds=[0, 1]), tmp_path / "toy")
    assert len(grown.owed()) == 1
    execute(grown, 1)
    assert load(str(tmp_path / "toy")) == grown.study
    with pytest.raises(RunConflict, match="other runs"):
        execute(StudyFolder(study(model, methods=["sdar"], arm=[]), tmp_path / "toy"), 1)


def test_two_processes_cannot_execute_one_study(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seedbench.jsonl import lock
    from seedbench.study import execute as module

    folder = StudyFolder(study(model), tmp_path / "toy")
    folder.begin()
    held = lock(folder.path)
    clock = iter(range(0, 1000, 3))
    monkeypatch.setattr(module.time, "monotonic", lambda: float(next(clock)))
    with pytest.raises(RunConflict, match="status"):
        execute(folder, 1)
    assert held is not None
    held.close()


def test_a_panel_beside_the_usual_is_played_once_with_the_final_weights(model: Path, tmp_path: Path) -> None:
    """Trained on a part of the boxes (BR-103: never merged with the seen tasks)."""
    place = {"split": "train", "panel": "test", "panels": ["other"]}
    made = study(model, methods=["skill_prompt"], arm=[], seeds=[0], table="7", environment={"boxes": place})
    folder = StudyFolder(made, tmp_path / "toy")
    assert execute(folder, 1) == []
    run = Run(folder.run_path(folder.runs[0]))
    names = {s.name for s in run.streams()}
    assert names >= {"eval-final@other", "eval-final+skills@other"}
    table, _, _ = report(folder)
    assert len(table.blocks) == 2
    victim = run.path / "episodes" / "eval-final@other.jsonl"
    kept = victim.read_bytes()
    victim.write_bytes(b"".join(kept.splitlines(keepends=True)[:-3]))
    assert [s.state for s in folder.standings()] == ["stopped"]
    assert execute(folder, 1) == []
    assert len(victim.read_bytes().splitlines()) == len(kept.splitlines())


def test_a_packed_study_is_a_study_with_the_same_report(
    finished: StudyFolder, whole: dict[str, bytes], tmp_path: Path
) -> None:
    copy = pack_study(finished, tmp_path / "packed", ["grpo (mean only)"])
    assert pages(StudyFolder(load(str(copy.path)), copy.path)) == whole
    planned = copy.runs[0]
    assert Ledger([copy.path]).estimate(planned) == Ledger([finished.path]).estimate(planned)
    assert Ledger([copy.path]).estimate(planned).basis == "measured (1)"
    kept = [run.arm for run in copy.runs if "train" in {s.name for s in Run(copy.run_path(run)).streams()}]
    assert kept == ["grpo (mean only)"]
    assert not list(copy.path.rglob("*.safetensors"))
    again = "is not empty"
    for target, training, message in (("packed", [], again), ("new", ["grqo"], "no arm 'grqo'")):
        with pytest.raises((ConfigError, RunConflict), match=message):
            pack_study(finished, tmp_path / target, training)


def test_an_unfinished_study_is_not_packed(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"3 of 3 runs .* not finished"):
        pack_study(StudyFolder(study(model), tmp_path / "toy"), tmp_path / "packed")
    assert not (tmp_path / "packed").exists()


def test_a_report_without_a_finished_run_says_what_to_do(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="study run"):
        report(StudyFolder(study(model), tmp_path / "toy"))
