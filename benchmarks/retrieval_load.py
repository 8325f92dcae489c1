"""Load on the retrieval server: concurrent clients, and a count of lost and crossed answers.

    python benchmarks/retrieval_load.py [--data FOLDER] [--clients 1 4 16 64] [--seconds 10]

A server process holds the 20,000 real passages of the mini set; each client thread asks questions of its
own over keep-alive connections, as Search-R1 does (8 queries a request) and as verl-agent does (one). Every
answer is compared with the retriever's own. Refusals (503) are counted; the client waits and asks again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import random
import socket
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import urllib3
from seedbench.envs.search_qa.data import VARIABLE, Folder
from seedbench.envs.search_qa.questions import SETS

from seedbench.search.bm25 import BM25
from seedbench.search.corpus import read_corpus


def server(index: Path, port: int) -> None:
    from seedbench.search.server import serve

    serve(BM25.load(index), port=port)


@dataclass(slots=True)
class Tally:
    requests: int = 0
    queries: int = 0
    refused: int = 0
    lost: int = 0
    crossed: int = 0
    seconds: list[float] = field(default_factory=list)


def client(
    url: str, questions: list[str], truth: dict[str, list[str]], batch: int, until: float, seed: int
) -> Tally:
    rng, tally = random.Random(seed), Tally()
    pool = urllib3.PoolManager(retries=False, timeout=30)
    while time.monotonic() < until:
        asked = rng.sample(questions, batch)
        wish = {"queries": asked} if batch > 1 else {"query": asked[0]}
        body = json.dumps({**wish, "topk": 3, "return_scores": True})
        began = time.perf_counter()
        try:
            answer = pool.request("POST", url, body=body, headers={"Content-Type": "application/json"})
        except urllib3.exceptions.HTTPError:
            tally.lost += 1
            continue
        if answer.status == 503:
            tally.refused += 1
            time.sleep(float(answer.headers["Retry-After"]))
            continue
        tally.seconds.append(time.perf_counter() - began)
        tally.requests += 1
        tally.queries += batch
        result = json.loads(answer.data).get("result", []) if answer.status == 200 else []
        got = [[h["document"]["id"] for h in one] for one in result]
        tally.lost += max(0, batch - len(got))
        tally.crossed += sum(ids != truth[q] for q, ids in zip(asked, got, strict=False))
    return tally


def load(
    url: str, questions: list[str], truth: dict[str, list[str]], clients: int, batch: int, seconds: float
) -> dict:
    until, tallies = time.monotonic() + seconds, []

    def work(seed: int) -> None:
        tallies.append(client(url, questions, truth, batch, until, seed))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(clients)]
    began = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    spent = time.monotonic() - began
    times = sorted(s for t in tallies for s in t.seconds)
    return {
        "clients": clients,
        "queries_per_request": batch,
        "requests_per_s": round(sum(t.requests for t in tallies) / spent),
        "queries_per_s": round(sum(t.queries for t in tallies) / spent),
        "p50_ms": round(1000 * times[len(times) // 2], 1),
        "p99_ms": round(1000 * times[int(len(times) * 0.99)], 1),
        "refused": sum(t.refused for t in tallies),
        "lost": sum(t.lost for t in tallies),
        "crossed": sum(t.crossed for t in tallies),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get(VARIABLE))
    parser.add_argument("--clients", nargs="+", type=int, default=[1, 4, 16, 64, 128])
    parser.add_argument("--seconds", type=float, default=10)
    args = parser.parse_args()
    if args.data is None:
        parser.error(f"name the folder with --data or {VARIABLE}")
    folder = Folder(Path(args.data), True)
    questions = sorted({q.question for q in folder.splits(SETS, None)["test"]})
    local = BM25.build(read_corpus(folder.corpus()))
    truth = {q: [h.id for h in hits] for q, hits in zip(questions, local.search(questions, 3), strict=True)}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as scratch:
        local.save(Path(scratch) / "index")
        process = mp.get_context("spawn").Process(
            target=server, args=(Path(scratch) / "index", port), daemon=True
        )
        process.start()
        base, pool = f"http://127.0.0.1:{port}", urllib3.PoolManager()
        pool.request("GET", f"{base}/health", retries=urllib3.Retry(300, backoff_factor=0.1, backoff_max=0.5))
        for batch in (1, 8):
            for clients in args.clients:
                row = load(f"{base}/retrieve", questions, truth, clients, batch, args.seconds)
                print(json.dumps(row), flush=True)
        process.terminate()
        process.join()


if __name__ == "__main__":
    main()
