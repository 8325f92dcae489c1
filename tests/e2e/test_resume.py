"""Killed at any moment, the same command ends with the same bytes."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest
import toys

from seedbench.errors import CheckpointCorrupt, RunConflict
from seedbench.evaluate import evaluate_run
from seedbench.store import Run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toys.save_backbone(tmp_path_factory.mktemp("model"), seed=4)


@pytest.fixture(scope="module")
def whole(model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    return toys.fingerprint(toys.run(model, tmp_path_factory.mktemp("whole") / "run", "seed", updates=3))


def in_a_process(model: Path, folder: Path, workers: int = 1) -> multiprocessing.Process:
    """The run in a forked process with its own group, so that it can be killed as a shell would."""

    def work() -> None:
        os.setsid()
        toys.run(model, folder, "seed", updates=3, workers=workers)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


def kill_after(process: multiprocessing.Process, folder: Path, bytes_written: int) -> bool:
    """SIGKILL as soon as the run folder holds so many bytes of lines. False when the run ended before."""
    while process.is_alive():
        try:
            size = sum(p.stat().st_size for p in [*folder.glob("episodes/*.jsonl"), *folder.glob("*.jsonl")])
        except FileNotFoundError:
            continue
        if size >= bytes_written:
            os.kill(process.pid or 0, signal.SIGKILL)
            process.join()
            return True
        time.sleep(0.001)
    process.join()
    return False


def resumed(model: Path, folder: Path, workers: int = 1, patience: float = 20.0) -> dict:
    """The same command again; workers left behind by a kill may hold the folder for a moment."""
    end = time.monotonic() + patience
    while True:
        try:
            return toys.fingerprint(toys.run(model, folder, "seed", updates=3, workers=workers))
        except RunConflict as error:
            if "Another process" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.1)


def size_of(run: dict) -> int:
    return sum(len(line) for k, v in run.items() if k.endswith(".jsonl") for line in v)


@pytest.mark.parametrize("kill", range(5))
def test_killed_at_a_random_moment(kill: int, model: Path, whole: dict, tmp_path: Path) -> None:
    rng = random.Random(f"kill/{kill}")
    folder = tmp_path / "run"
    killed = 0
    for _ in range(2):  # killed twice, then left alone
        killed += kill_after(in_a_process(model, folder), folder, rng.randrange(1, size_of(whole)))
    assert killed
    assert resumed(model, folder) == whole


def test_killed_with_several_workers_and_resumed_with_another_number(
    model: Path, whole: dict, tmp_path: Path
) -> None:
    """BR-096."""
    folder = tmp_path / "run"
    assert kill_after(in_a_process(model, folder, workers=2), folder, size_of(whole) // 2)
    assert resumed(model, folder, workers=3) == whole


@pytest.mark.slow
@pytest.mark.parametrize("kill", range(5, 25))
def test_killed_at_many_moments(kill: int, model: Path, whole: dict, tmp_path: Path) -> None:
    test_killed_at_a_random_moment(kill, model, whole, tmp_path)


def test_stopping_between_any_two_reports(model: Path, whole: dict, tmp_path: Path) -> None:
    """BR-093: an exception at the first, second ... report; each is one more interruption of one run."""
    folder, seen = tmp_path / "run", []
    for stop in range(1, 6):
        count = 0

        def report(metrics: dict, stop: int = stop) -> None:
            nonlocal count
            count += 1
            if count == stop:
                raise KeyboardInterrupt

        try:
            toys.run(model, folder, "seed", updates=3, report=report)
        except KeyboardInterrupt:
            status = Run(folder).status
            assert status["state"] == "interrupted" and status["updates"] == 3
            seen.append(status["update"])
    assert max(seen) > 0  # an interruption keeps the progress on record
    assert resumed(model, folder) == whole
    assert Run(folder).status["state"] == "finished"


def test_an_evaluation_asked_for_twice_is_played_and_noted_once(model: Path, tmp_path: Path) -> None:
    folder = toys.run(model, tmp_path / "run", "grpo", updates=1)
    stream = evaluate_run(folder, False, "other")
    kept = {p: p.read_bytes() for p in sorted(folder.rglob("*.jsonl"))}
    assert [m["evaluation"] for m in Run(folder).metrics() if "evaluation" in m][-1] == "final@other"
    assert evaluate_run(folder, False, "other") == stream
    assert {p: p.read_bytes() for p in sorted(folder.rglob("*.jsonl"))} == kept


def test_a_finished_run_given_again_changes_nothing(model: Path, whole: dict, tmp_path: Path) -> None:
    folder = toys.run(model, tmp_path / "run", "seed", updates=3)
    costs = len(Run(folder).costs())
    assert resumed(model, folder) == whole
    assert len(Run(folder).costs()) == costs


def test_checkpoints_that_do_not_fall_on_evaluations(model: Path, tmp_path: Path) -> None:
    """Resumed from update 2 with an evaluation at 3 already made, and a checkpoint every two."""
    whole = toys.fingerprint(toys.run(model, tmp_path / "whole", updates=5, checkpoint_every=2))
    seen: list[dict] = []

    def report(metrics: dict) -> None:
        seen.append(metrics)
        if metrics.get("evaluation") == "u0003":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        toys.run(model, tmp_path / "cut", updates=5, checkpoint_every=2, report=report)
    assert toys.fingerprint(toys.run(model, tmp_path / "cut", updates=5, checkpoint_every=2)) == whole


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.pt", "files.json", "config.json"])
@pytest.mark.parametrize("damage", ["half", "flipped", "gone"])
def test_a_damaged_checkpoint_is_named_with_its_cure_and_the_cure_works(
    name: str, damage: str, model: Path, whole: dict, tmp_path: Path
) -> None:
    import shutil

    folder = toys.run(model, tmp_path / "run", "seed", updates=3)
    broken = folder / "checkpoints" / "u00003"
    path = broken / name
    data = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        flipped = bytes([data[-1] ^ 1])
        path.write_bytes(data[: len(data) // 2] if damage == "half" else data[:-1] + flipped)
    if (name, damage) == ("files.json", "flipped"):
        path.write_bytes(b"[]")
    try:
        toys.run(model, folder, "seed", updates=3)
    except CheckpointCorrupt as error:
        assert str(broken) in str(error)
        assert "Delete" in str(error)
        shutil.rmtree(broken)
    assert resumed(model, folder) == whole


def test_a_damaged_start_is_not_taken_for_the_reference(model: Path, whole: dict, tmp_path: Path) -> None:
    """Weights of the right shape and other values: the KL reference would silently be another model."""
    import shutil

    folder = toys.run(model, tmp_path / "run", "seed", updates=3)
    start = folder / "checkpoints" / "start"
    shutil.copy(folder / "checkpoints" / "u00003" / "model.safetensors", start / "model.safetensors")
    shutil.rmtree(folder / "checkpoints" / "u00003")
    with pytest.raises(CheckpointCorrupt, match="start"):
        toys.run(model, folder, "seed", updates=3)
    shutil.rmtree(start)
    assert resumed(model, folder) == whole


def test_a_half_written_checkpoint_is_ignored(model: Path, whole: dict, tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def report(metrics: dict) -> None:
        if metrics.get("evaluation") == "u0002":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        toys.run(model, folder, "seed", updates=3, report=report)
    part = folder / "checkpoints" / "u00003.part"
    part.mkdir()
    (part / "optimizer.pt").write_bytes(b"half")
    assert resumed(model, folder) == whole


def test_resuming_is_written_down(model: Path, tmp_path: Path) -> None:
    folder = toys.run(model, tmp_path / "run", updates=1)
    toys.run(model, folder, updates=1)
    assert len(json.loads((folder / "manifest.json").read_text())["resumed"]) == 1
