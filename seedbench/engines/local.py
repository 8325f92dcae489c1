"""Playing blocks of episodes on the cores of this machine.

A block is the unit of work. Whether one process plays all blocks or several share them, a block is played by
the same code on the same episodes, so the records are equal byte for byte.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from seedbench.contracts import Environment, Policy
from seedbench.errors import WorkerLost
from seedbench.rollout import Job, blocks, play
from seedbench.types import Episode

#: What a worker plays with: set in the parent just before it forks, inherited by copy-on-write.
_shared: tuple[Environment, Policy, list[list[Job]]] | None = None


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalEngine:
    """``workers`` processes, forked for each call (a tiny model and a game engine fork in milliseconds)."""

    def __init__(self, workers: int = 1) -> None:
        forks = "fork" in multiprocessing.get_all_start_methods()
        self.workers = max(1, workers) if forks else 1

    def play(
        self,
        env: Environment,
        policy: Policy,
        jobs: Sequence[Job],
        block: int,
        on_episode: Callable[[Episode], None] | None = None,
    ) -> list[Episode]:
        """Episodes in the order of ``jobs``. ``on_episode`` sees them block by block, in that order too."""
        work = blocks(jobs, block)
        alone = policy.privileged or not getattr(policy, "forkable", True)  # a GPU does not survive a fork
        if self.workers == 1 or len(work) == 1 or alone:
            return [e for part in work for e in play(env, policy, part, on_episode)]
        episodes = []
        for part in self._forked(env, policy, work):
            for episode in part:
                if on_episode:
                    on_episode(episode)
                episodes.append(episode)
        return episodes

    def _forked(self, env: Environment, policy: Policy, work: list[list[Job]]) -> Iterator[list[Episode]]:
        global _shared
        _shared = (env, policy, work)
        context = multiprocessing.get_context("fork")
        try:
            with context.Pool(min(self.workers, len(work)), initializer=_begin) as pool:
                crew = {p.pid for p in multiprocessing.active_children()}
                yield from _watched(pool.imap(_play_block, range(len(work))), crew)
        finally:
            _shared = None


def _watched(
    results: Iterator[list[Episode]], crew: set[int | None], patience: float = 1.0
) -> Iterator[list[Episode]]:
    """Results in order. A pool replaces a killed worker but never redoes its block, so it would wait for
    ever: after ``patience`` seconds without a result, see whether all of the first ``crew`` is still there."""
    while True:
        try:
            yield results.next(timeout=patience)  # type: ignore[attr-defined]
        except StopIteration:
            return
        except multiprocessing.TimeoutError:
            if not crew <= {p.pid for p in multiprocessing.active_children()}:
                raise WorkerLost(
                    "A worker process was killed while it played (often: out of memory). What was finished is "
                    "kept; run the same command again, with fewer --workers or a smaller train.block."
                ) from None


def _begin() -> None:
    """Ctrl-C belongs to the parent, which ends its workers itself; a worker whose parent was killed ends too
    (it would hold the run folder's lock)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.pid,), daemon=True).start()


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def _play_block(index: int) -> list[Episode]:
    assert _shared is not None
    env, policy, work = _shared
    return play(env, policy, work[index])
