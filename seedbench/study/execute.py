"""Executing what a study owes: separate single-threaded processes on this machine.

Each run is a child of its own, so that one that fails, or is killed for memory, takes no other with it. A
finished run is never started again; everything else continues from its newest checkpoint.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any

from seedbench.errors import RunConflict, SeedbenchError
from seedbench.jsonl import lock, write_bytes
from seedbench.store import Run
from seedbench.study.folder import StudyFolder
from seedbench.study.model import Planned

#: Seconds between looks at the children.
PAUSE = 0.05
#: Seconds a stopped child has to close its files, and those an orphan of a killed study has to end.
PATIENCE = 30.0
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Event:
    """``kind``: started, finished, failed, stopped. ``number`` of ``total`` owed runs."""

    kind: str
    run: Planned
    number: int
    total: int
    seconds: float = 0.0
    message: str = ""


Report = Callable[[Event], None]


def execute(folder: StudyFolder, jobs: int, report: Report = lambda event: None) -> list[Planned]:
    """Run what is owed, ``jobs`` at a time; returns the runs that failed.

    Raises :class:`RunConflict` when another process executes this study. On Ctrl-C the children are asked to
    stop, every run stays resumable, and :class:`KeyboardInterrupt` is raised again.
    """
    folder.begin()
    held = _locked(folder)
    try:
        return _Crew(folder, jobs, report).work()
    finally:
        if held is not None:
            held.close()


def _locked(folder: StudyFolder) -> Any:
    """The study's lock. Children of a killed study hold it until they notice, a fraction of a second."""
    end = time.monotonic() + 5.0
    while True:
        try:
            return lock(folder.path)
        except RunConflict:
            if time.monotonic() > end:
                raise RunConflict(
                    f"Another process executes the study in '{folder.path}'. Watch it with 'seedbench study "
                    f"status {folder.path} --watch'."
                ) from None
            time.sleep(0.1)


class _Crew:
    """The children at work: forks where the system has them."""

    def __init__(self, folder: StudyFolder, jobs: int, report: Report) -> None:
        self.folder, self.jobs, self.report = folder, max(1, jobs), report
        forks = "fork" in multiprocessing.get_all_start_methods()
        self.context = multiprocessing.get_context("fork" if forks else "spawn")
        importlib.import_module("seedbench.train.trainer")  # once here, not once in every fork
        self.waiting = folder.owed()
        self.total = len(self.waiting)
        self.at_work: dict[str, tuple[BaseProcess, Planned, float, int]] = {}
        self.failed: list[Planned] = []

    def work(self) -> list[Planned]:
        try:
            while self.waiting or self.at_work:
                while self.waiting and len(self.at_work) < self.jobs:
                    self._start(self.waiting.pop(0))
                self._collect()
                time.sleep(PAUSE)
        except BaseException:
            self._stop()
            raise
        finally:
            (self.folder.path / "active.json").unlink(missing_ok=True)
        return self.failed

    def _start(self, run: Planned) -> None:
        self.folder.failure(run).unlink(missing_ok=True)
        number = self.total - len(self.waiting)
        child = self.context.Process(target=_child, args=(self.folder, run, os.getpid()), name=run.name)
        sys.stdout.flush()  # a fork would print the parent's buffer a second time
        sys.stderr.flush()
        child.start()
        self.at_work[run.name] = (child, run, time.monotonic(), number)
        self._note()
        self.report(Event("started", run, number, self.total))

    def _collect(self) -> None:
        for name, (child, run, began, number) in list(self.at_work.items()):
            if child.is_alive():
                continue
            child.join()
            del self.at_work[name]
            self._note()
            seconds, failure = time.monotonic() - began, self.folder.failure(run)
            if child.exitcode == 0:
                self.report(Event("finished", run, number, self.total, seconds))
                continue
            if not failure.is_file():
                write_bytes(failure, _ended(child.exitcode, self.folder, run).encode())
            self.failed.append(run)
            message = failure.read_text("utf-8")
            self.report(Event("failed", run, number, self.total, seconds, message))

    def _stop(self) -> None:
        """Ask the children to stop, once; they close their files and leave a resumable folder."""
        for child, *_ in self.at_work.values():
            if child.pid is not None and child.is_alive():
                os.kill(child.pid, signal.SIGINT)
        end = time.monotonic() + PATIENCE
        for child, run, began, number in self.at_work.values():
            child.join(max(0.0, end - time.monotonic()))
            if child.is_alive():
                child.kill()
                child.join()
            self.report(Event("stopped", run, number, self.total, time.monotonic() - began))

    def _note(self) -> None:
        self.folder.note_active(list(self.at_work))


def _ended(code: int | None, folder: StudyFolder, run: Planned) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return (
            f"The process was killed by {name} (often: out of memory). Try again, with fewer --jobs or a smaller "
            "train.block."
        )
    return f"The process ended with code {code}. See {folder.log(run)}."


# -- in the child ----------------------------------------------------------------------------------------------
def _child(folder: StudyFolder, run: Planned, parent: int) -> None:
    """One run, from wherever it stands to its last panel. Ends the process."""
    _detach(folder, run, parent)
    code = 0
    try:
        carry_out(folder, run)
    except KeyboardInterrupt:
        code = 130
    except SeedbenchError as error:
        code = error.exit_code
        write_bytes(folder.failure(run), str(error).encode())
        print(f"Error: {error}", file=sys.stderr)
    except BaseException as error:
        code = 1
        traceback.print_exc()
        where = f"See {folder.log(run)}."
        write_bytes(folder.failure(run), f"{type(error).__name__}: {error}. {where}".encode())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _detach(folder: StudyFolder, run: Planned, parent: int) -> None:
    """Own output file, one thread, and no life without the parent; Ctrl-C reaches it through the parent."""
    if hasattr(os, "setsid"):
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in _THREADS:
        os.environ[name] = "1"
    output = os.open(folder.log(run), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(output, stream)
    sys.stdout, sys.stderr = (os.fdopen(n, "w", buffering=1, closefd=False) for n in (1, 2))

    def follow() -> None:
        while os.getppid() == parent:
            time.sleep(0.1)
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def carry_out(folder: StudyFolder, run: Planned) -> None:
    """Train (or continue, or do nothing) and play the further panels that are owed."""
    from seedbench.evaluate import evaluate_run
    from seedbench.runner import train

    path = folder.run_path(run)
    if not (path / "config.json").is_file() or Run(path).status["state"] != "finished":
        train(run.config, path, 1, _say)
    for panel, skills in folder.owed_panels(run, Run(path)):
        evaluate_run(path, skills, panel, 1, _say)


def _say(metrics: dict[str, Any]) -> None:
    print(" ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in metrics.items()))
