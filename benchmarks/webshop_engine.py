"""WebShop in figures, from one run: speed of pages and search, memory of many sessions, a large catalogue.

    python benchmarks/webshop_engine.py [--data FOLDER] [--large 100000]

Times are CPU seconds of this process. With the official files (``--data`` or ``$WEBSHOP_DATA``) the faithful
shop of 1,000 products is measured and, where the recorded Lucene rankings lie beside them, compared with
them; without, the generated shop. The original program, measured apart on the same type of machine under
load, made about 20 text-mode steps a CPU second, needed 9.8 ms for a reset and 781 MB for one environment.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from seedbench.envs.webshop import data, mini
from seedbench.envs.webshop.catalogue import Product
from seedbench.envs.webshop.env import Options, WebShop, WebShopSession

from seedbench.search.bm25 import BM25
from seedbench.types import Action, StepResult

RECORDED = "lucene_reference_2615_queries.json.gz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default=os.environ.get(data.VARIABLE))
    parser.add_argument("--large", type=int, default=100_000)
    arguments = parser.parse_args()
    idle = resident()
    started = time.process_time()
    real = arguments.data is not None
    env = WebShop(Options(variant="faithful", data=arguments.data) if real else Options())
    print(f"shop: {env.spec.variant}, {env.spec.details['products']} products, {len(env.world.goals)} goals")
    row("build shop (read, clean, index, goals)", time.process_time() - started, "s")
    row("memory of the shop over an empty process", resident() - idle, "MB")
    steps(env)
    search(env, Path(arguments.data) if real else None)
    sessions(env, idle)
    large(env, arguments.large, real)


def row(what: str, value: float, unit: str) -> None:
    print(f"  {what:<52} {value:>12,.3f} {unit}")


def resident() -> float:
    """Megabytes of this process in memory now."""
    fields = Path("/proc/self/status").read_text().split()
    return int(fields[fields.index("VmRSS:") + 1]) / 1024


def actions(env: WebShop, session: WebShopSession, rng: random.Random, last: StepResult | None) -> str:
    """A clumsy shopper: mostly something clickable, sometimes a query of the instruction's words."""
    clicks = [a for a in (last.observation.legal if last else ()) if a.startswith("click[")]
    if not clicks or rng.random() < 0.15:
        words = session.visit.goal.instruction.split()
        return f"search[{' '.join(rng.choices(words, k=5))}]"
    return rng.choice(clicks)


def walk(env: WebShop, count: int) -> Iterator[tuple[str, float]]:
    """``(kind, CPU seconds)`` of resets and steps of random episodes."""
    rng = random.Random("benchmark")
    session = env.session()
    tasks = env.tasks("test" if "test" in env.splits() else "mini-test")
    done = 0
    while done < count:
        started = time.process_time()
        session.reset(rng.choice(tasks), done)
        yield "reset", time.process_time() - started
        last: StepResult | None = None
        while last is None or not (last.terminated or last.truncated):
            text = actions(env, session, rng, last)
            started = time.process_time()
            last = session.step(Action(text))
            yield "step", time.process_time() - started
            done += 1


def steps(env: WebShop) -> None:
    for _ in walk(env, 500):
        pass
    seconds: dict[str, list[float]] = {"reset": [], "step": []}
    for kind, spent in walk(env, 20_000):
        seconds[kind].append(spent)
    row(
        "text-mode steps (observation and legal actions)",
        len(seconds["step"]) / sum(seconds["step"]),
        "per CPU s",
    )
    row("reset, mean", 1e3 * sum(seconds["reset"]) / len(seconds["reset"]), "ms")


def search(env: WebShop, folder: Path | None) -> None:
    index = env.world.shop.index
    if folder is None or not (folder / RECORDED).is_file():
        queries = [g.instruction for g in env.world.goals[:2000]]
        row(
            "search, top 50, mean",
            1e3 * timed(lambda: [index.rank_rows(q, 50) for q in queries]) / len(queries),
            "ms",
        )
        return
    recorded = json.loads(gzip.open(folder / RECORDED).read())
    queries, wanted = recorded["queries"], recorded["top50"]
    found: list[list[tuple[int, float]]] = []
    spent = timed(lambda: found.extend(index.rank_rows(q, 50) for q in queries))
    ids = [[index.ids[r] for r, _ in hits] for hits in found]
    same = sum(a == [i for i, _ in b] for a, b in zip(ids, wanted, strict=True))
    row("search, top 50, mean", 1e3 * spent / len(queries), "ms")
    print(f"  identical top-50 order as Lucene: {same} of {len(queries)} recorded queries")


def timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def sessions(env: WebShop, idle: float) -> None:
    before = resident()
    tasks = env.tasks("test" if "test" in env.splits() else "mini-test")
    alive = [env.session() for _ in range(128)]
    for i, session in enumerate(alive):
        session.reset(tasks[i], i)
        for _ in range(3):
            session.step(Action(session.oracle()))
    row("128 sessions in mid-episode, memory of them", resident() - before, "MB")
    row("process in all (interpreter, libraries, shop, sessions)", resident(), "MB")
    row("of which before any shop was made", idle, "MB")


def recombined(products: tuple[Product, ...], count: int) -> Iterator[Product]:
    """Products made of parts of the given ones: title halves, description, bullets and options of others."""
    rng = random.Random("recombined")
    for number in range(count):
        a, b, c, d, e = (rng.choice(products) for _ in range(5))
        first, second = a.title.split(), b.title.split()
        title = " ".join(first[: (len(first) + 1) // 2] + second[len(second) // 2 :])
        yield replace(
            a,
            asin=f"R{number:09d}",
            title=title,
            description=c.description,
            bullets=d.bullets,
            options=e.options,
        )


def large(env: WebShop, count: int, real: bool) -> None:
    products = env.world.shop.products
    source = recombined(products, count) if real else iter(mini.catalogue(0, count))
    print(f"catalogue of {count:,} {'recombined' if real else 'generated'} products:")
    before = resident()
    made: list[BM25] = []
    row("index build", timed(lambda: made.append(BM25.build(p.document() for p in source))), "s")
    index = made[0]
    row("index arrays", index.nbytes / 1e6, "MB")
    row("memory grown by", resident() - before, "MB")
    queries = [g.instruction for g in env.world.goals[:500]]
    row(
        "search, top 50, mean",
        1e3 * timed(lambda: [index.rank_rows(q, 50) for q in queries]) / len(queries),
        "ms",
    )


if __name__ == "__main__":
    main()
