"""Runs under Ctrl-C, full disks, damaged files and other people's processes: a message, an exit code, no loss."""

from __future__ import annotations

import errno
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import toys

from seedbench.errors import CheckpointCorrupt, RunConflict, StorageFull
from seedbench.store import Run

ROOT = Path(__file__).resolve().parents[2]
#: The command line in a fresh process that knows the toy world.
MAIN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); import toys; toys.register()\n"
    "from seedbench.cli.main import main; main()"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toys.save_backbone(tmp_path_factory.mktemp("model"), seed=4)


@pytest.fixture(scope="module")
def whole(model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    return toys.fingerprint(toys.run(model, tmp_path_factory.mktemp("whole") / "run"))


def command(model: Path, out: Path, *more: str) -> list[str]:
    settings = ["train.updates=12", "train.tasks=3", "train.group=3", "train.minibatches=2", "train.block=4"]
    settings += ["train.checkpoint_every=1", "eval.every=1", f"backbone.options.path={model}"]
    options = [x for s in settings for x in ("-o", s)]
    start = [sys.executable, "-c", MAIN, str(Path(toys.__file__).parent)]
    return [*start, "run", "--method", "grpo", "--env", "boxes", "--out", str(out), *options, *more]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def listen_to_ctrl_c() -> None:
    """A test suite started in the background passes on that Ctrl-C is ignored; a person's terminal does not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_exits_with_130_and_the_same_command_resumes(
    workers: str, model: Path, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        command(model, tmp_path, "--workers", workers),
        env=environment(),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=listen_to_ctrl_c,
    )
    while not list(tmp_path.glob("*/checkpoints/u00002")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "resume" in errors
    (folder,) = tmp_path.iterdir()
    assert Run(folder).status["state"] == "interrupted"
    done = len([m for m in Run(folder).metrics() if "evaluation" not in m])
    assert 2 <= done < 12
    again = subprocess.run(
        [*command(model, tmp_path), "--workers", workers],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert Run(folder).status["state"] == "finished"
    updates = [m["update"] for m in Run(folder).metrics() if "evaluation" not in m]
    assert updates == list(range(12))


def full_disk(after: int) -> Callable[..., int]:
    """``os.write`` that finds the disk full after so many calls."""
    real, calls = os.write, 0

    def write(fd: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data)

    return write


@pytest.mark.parametrize("after", [0, 1, 7, 20, 33])
def test_a_full_disk_while_logging_stops_and_resumes(
    after: int, model: Path, whole: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full_disk(after))
        with pytest.raises(StorageFull, match=r"space"):
            toys.run(model, tmp_path / "run")
    assert StorageFull.exit_code == 4
    assert toys.fingerprint(toys.run(model, tmp_path / "run")) == whole


@pytest.mark.parametrize("limit", [2_000, 20_000, 130_000])
def test_a_file_that_cannot_grow_stops_with_storage_full_and_resumes(
    limit: int, model: Path, whole: dict, tmp_path: Path
) -> None:
    """A real limit of the operating system: on lines, on weights, on the optimiser state (torch's own writer)."""
    folder = tmp_path / "run"

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            toys.run(model, folder)
        except StorageFull:
            os._exit(4)
        except BaseException:
            os._exit(99)
        os._exit(0)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == 4
    assert toys.fingerprint(toys.run(model, folder)) == whole


def test_a_full_disk_ends_the_command_with_4(model: Path, tmp_path: Path) -> None:
    code = (
        "import os, errno, sys\n"
        "real, calls = os.write, [0]\n"
        "def write(fd, data):\n"
        "    calls[0] += 1\n"
        "    if calls[0] > 12: raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "    return real(fd, data)\n"
        "os.write = write\n" + MAIN
    )
    line = command(model, tmp_path, "--workers", "1")
    line[2] = code
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_two_commands_on_one_folder(model: Path, tmp_path: Path) -> None:
    """The second is refused while the first writes."""
    folder = toys.run(model, tmp_path / "run", updates=1)
    ready, done = multiprocessing.get_context("fork").Event(), multiprocessing.get_context("fork").Event()

    def hold() -> None:
        def report(metrics: dict) -> None:
            ready.set()
            done.wait(60)

        toys.run(model, folder, updates=1, report=report)

    process = multiprocessing.get_context("fork").Process(target=hold)
    process.start()
    assert ready.wait(60)
    try:
        with pytest.raises(RunConflict, match="Another process"):
            toys.run(model, folder, updates=1)
    finally:
        done.set()
        process.join()


def test_a_damaged_checkpoint_ends_the_command_with_a_cure(model: Path, tmp_path: Path) -> None:
    folder = toys.run(model, tmp_path / "run")
    path = folder / "checkpoints" / "u00002" / "optimizer.pt"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CheckpointCorrupt, match="Delete") as error:
        toys.run(model, folder)
    assert str(path.parent) in str(error.value)
    assert CheckpointCorrupt.exit_code == 2


def test_an_optimiser_state_that_fits_its_hash_and_not_the_model(model: Path, tmp_path: Path) -> None:
    """Written by another version: the hash holds, torch refuses."""
    import hashlib
    import json

    folder = toys.run(model, tmp_path / "run")
    checkpoint = folder / "checkpoints" / "u00002"
    (checkpoint / "optimizer.pt").write_bytes(b"not a pickle")
    listed = json.loads((checkpoint / "files.json").read_text())
    listed["sha256"]["optimizer.pt"] = hashlib.sha256(b"not a pickle").hexdigest()
    (checkpoint / "files.json").write_text(json.dumps(listed))
    with pytest.raises(CheckpointCorrupt, match="Delete"):
        toys.run(model, folder)


def test_a_gradient_that_is_not_finite_stops_before_the_weights_are_spoilt(
    model: Path, tmp_path: Path
) -> None:
    from dataclasses import dataclass

    import torch

    from seedbench.errors import ConfigError
    from seedbench.registry import METHODS
    from seedbench.train.losses import Loss, LossBatch

    grpo = METHODS.get("grpo")

    @dataclass(frozen=True)
    class Exploding(grpo):  # type: ignore[misc,valid-type]
        def loss(self, batch: LossBatch) -> Loss:
            return Loss((batch.logp * torch.inf).sum())

    sys.modules["exploding"] = type(sys)("exploding")
    sys.modules["exploding"].METHOD = Exploding  # type: ignore[attr-defined]
    METHODS.add("exploding", "exploding:METHOD")
    try:
        with pytest.raises(ConfigError, match="not finite"):
            toys.run(model, tmp_path / "run", "exploding")
    finally:
        METHODS._added.pop("exploding")
    assert Run(tmp_path / "run").status["state"] == "failed"
    assert not list((tmp_path / "run" / "checkpoints").glob("u*"))


def test_an_environment_that_ignores_its_seed_is_noticed(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BR-070: the members of a group began differently."""
    from seedbench.errors import DataCorrupt
    from seedbench.types import Observation, Start, Task

    original, count = toys.BoxSession.reset, [0]

    def reset(self: toys.BoxSession, task: Task, seed: int) -> Start:
        count[0] += 1
        start = original(self, task, seed)
        return Start(
            start.instruction, Observation(f"{start.observation.text} {count[0]}", start.observation.legal)
        )

    monkeypatch.setattr(toys.BoxSession, "reset", reset)
    with pytest.raises(DataCorrupt, match="seed"):
        toys.run(model, tmp_path / "run")
