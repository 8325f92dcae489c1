"""Speed of the native ALFWorld engine beside the real TextWorld, in one run, in CPU-seconds.

    python benchmarks/alfworld_engine.py [--games 6] [--steps 20]

Official games are used where ``$ALFWORLD_DATA`` (or ``--data``) has them, else generated large ones. Without
the packages alfworld and textworld only the native half is measured. CPU time, not wall time, so that a busy
machine changes little. The bars of the project: 20,000 steps and 400 episode starts per CPU-second, 50 MB.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import time
from collections.abc import Sequence

from seedbench.envs.alfworld import KIND
from seedbench.envs.alfworld.env import AlfWorld

from seedbench.errors import DataMissing, ExtraMissing
from seedbench.types import Action, Task


def resident_mb() -> float:
    """Memory in use now (Linux); elsewhere the peak."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 2**20
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def open_games(data: str | None) -> tuple[dict[str, str], str, str]:
    """(options, split, what is measured on)."""
    official: dict[str, str] = {"variant": "official"} | ({"data": data} if data else {})
    gc.collect()
    before, began = resident_mb(), time.process_time()
    env = KIND.make(KIND.options(**official))
    counts = []
    try:
        for split in ("valid_unseen", "valid_seen", "train"):
            counts.append(len(env.tasks(split)))
    except DataMissing as error:
        if not counts:
            print(f"official games absent ({str(error).split('.')[0]}); large generated games instead")
            return {"size": "large"}, "mini-unseen", "generated games, size large"
    gc.collect()
    print(f"index of {sum(counts)} official games: {time.process_time() - began:.2f} CPU-s, "
          f"{resident_mb() - before:.1f} MB (bar: 50)")  # fmt: skip
    return official, "valid_unseen", "official games, split valid_unseen"


def measure(env: AlfWorld, tasks: Sequence[Task], steps: int, repeats: int) -> tuple[float, float]:
    """Episode starts and steps per CPU-second; a step includes the sorted admissible list."""
    session = env.session()
    start_seconds = step_seconds = 0.0
    starts = taken = 0
    for repeat in range(repeats):
        for task in tasks:
            rng = random.Random(f"benchmark/{repeat}/{task.id}")
            began = time.process_time()
            legal = session.reset(task, 0).observation.legal
            start_seconds += time.process_time() - began
            starts += 1
            # Actions are chosen outside the clock: the same list is drawn from for both engines.
            for _ in range(steps):
                action = Action(rng.choice(legal))
                began = time.process_time()
                result = session.step(action)
                step_seconds += time.process_time() - began
                legal = result.observation.legal
                taken += 1
                if result.terminated or result.truncated:
                    break
    return starts / start_seconds, taken / step_seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--games", type=int, default=6, help="games played in both engines")
    parser.add_argument("--steps", type=int, default=20, help="steps per game")
    parser.add_argument("--data", help="folder of the official games; default $ALFWORLD_DATA")
    arguments = parser.parse_args()
    options, split, what = open_games(arguments.data)
    native = KIND.make(KIND.options(**options))
    tasks = native.tasks(split)
    few = tasks[:: max(1, len(tasks) // arguments.games)][: arguments.games]
    cold, _ = measure(native, tasks, 1, 1)
    warm, rate = measure(native, few, arguments.steps, 50)
    print(f"{what}; {len(few)} games x {arguments.steps} random steps")
    print(f"{'':24}{'starts/CPU-s':>14}{'steps/CPU-s':>14}")
    print(f"{'native, first start':24}{cold:14,.0f}{'':>14}")
    print(f"{'native, compiled':24}{warm:14,.0f}{rate:14,.0f}")
    try:
        reference = KIND.make(KIND.options(engine="textworld", **options))
        slow_starts, slow_rate = measure(reference, few, arguments.steps, 1)
    except ExtraMissing as error:
        print(f"TextWorld not measured: {error}")
        return
    print(f"{'TextWorld':24}{slow_starts:14,.2f}{slow_rate:14,.1f}")
    print(f"{'ratio':24}{warm / slow_starts:14,.0f}{rate / slow_rate:14,.0f}")


if __name__ == "__main__":
    main()
