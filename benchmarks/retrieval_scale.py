"""How search grows: 20 k, 100 k and 1 M passages on this machine.

    python benchmarks/retrieval_scale.py bm25  [--data FOLDER] [--sizes 20000 100000 1000000]
    python benchmarks/retrieval_scale.py dense [--sizes ...] [--layouts flat hnsw ivfpq] [--vectors FILE.npy]

``bm25``: passages are made by recombining sentences of the real corpus (three at a time, by seed), so word
statistics are real and every passage is new. Prints build CPU and peak memory, size on disk, the time to
open the saved index memory-mapped, CPU a query, and resident memory after the queries.

``dense``: unit vectors of 384 dimensions. Without an encoder for a million passages they are made: points
around 1,000 centres (or around the rows of --vectors, real embeddings), and queries near passages. Prints
build CPU, index bytes, CPU a query and recall of the exact top 3 and top 10. One thread throughout.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing as mp
import os
import random
import re
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from seedbench.envs.search_qa.data import VARIABLE, Folder
from seedbench.envs.search_qa.questions import SETS

from seedbench.search.base import Document

DIMENSIONS = 384


def recombined(root: Path, count: int, seed: int = 0) -> Iterator[Document]:
    """``count`` passages of three sentences drawn from the real corpus, under a real title."""
    from seedbench.search.corpus import read_corpus

    titles, sentences = [], []
    for d in read_corpus(Folder(root, False).corpus()):
        title, _, text = d.contents.partition("\n")
        titles.append(title)
        sentences += [s for s in re.split(r"(?<=[.!?]) ", text) if len(s) > 30]
    rng = random.Random(seed)
    for i in range(count):
        yield Document(str(i), f"{rng.choice(titles)}\n{' '.join(rng.choices(sentences, k=4))}")


def bm25(root: Path, size: int, results: mp.Queue) -> None:  # type: ignore[type-arg]
    from seedbench.search.bm25 import BM25

    questions = [q.question for q in Folder(root, True).splits(SETS, None)["test"]]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "index"
        began = time.process_time()
        built = BM25.build(recombined(root, size))
        build = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        built.save(folder)
        expected = built.search(questions[:50], 10)
        del built
        gc.collect()
        base, began = _rss(), time.perf_counter()
        index = BM25.load(folder)
        opened = time.perf_counter() - began
        assert index.search(questions[:50], 10) == expected  # the saved index ranks as the built one
        began = time.process_time()
        for q in questions:
            index.search([q], 3)
        spent = time.process_time() - began
        row = {
            "engine": "bm25",
            "passages": size,
            "build_cpu_s": round(build, 1),
            "peak_mib": round(peak),
            "disk_mib": round(sum(p.stat().st_size for p in folder.iterdir()) / 2**20),
            "open_s": round(opened, 3),
            "ms_per_query": round(1000 * spent / len(questions), 2),
            "resident_mib": round(_rss() - base),
        }
        results.put(row)


def vectors(size: int, real: Path | None, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """``(passages, 200 queries)``: unit rows around centres."""
    rng = np.random.default_rng(seed)
    centres = np.load(real) if real else rng.standard_normal((1000, DIMENSIONS), dtype=np.float32)
    centres = _unit(centres.astype(np.float32))
    passages = np.empty((size, centres.shape[1]), np.float32)
    for start in range(0, size, 100_000):
        n = min(100_000, size - start)
        a, b = centres[rng.integers(len(centres), size=n)], centres[rng.integers(len(centres), size=n)]
        noise = rng.standard_normal(a.shape, dtype=np.float32) * (0.6 / np.sqrt(a.shape[1]))
        passages[start : start + n] = _unit(0.7 * a + 0.3 * b + noise)
    near = passages[rng.integers(size, size=200)]
    noise = rng.standard_normal(near.shape, dtype=np.float32) * (0.5 / np.sqrt(near.shape[1]))
    return passages, _unit(near + noise)


def dense(size: int, layout: str, real: Path | None, results: mp.Queue) -> None:  # type: ignore[type-arg]
    from seedbench.search.dense import DenseSettings, load_faiss, make_index, tune

    faiss = load_faiss()
    faiss.omp_set_num_threads(1)
    passages, queries = vectors(size, real)
    exact = faiss.IndexFlatIP(passages.shape[1])
    exact.add(passages)
    _, truth = exact.search(queries, 10)
    del exact
    settings = DenseSettings(layout=layout)  # type: ignore[arg-type]
    began = time.process_time()
    index = make_index(passages, settings)
    build = time.process_time() - began
    tune(index, settings)
    began = time.process_time()
    _, found = index.search(queries, 10)
    spent = time.process_time() - began
    row = {
        "engine": layout,
        "passages": size,
        "build_cpu_s": round(build, 1),
        "index_mib": round(faiss.serialize_index(index).nbytes / 2**20)
        if size <= 200_000
        else _size(faiss, index),
        "ms_per_query": round(1000 * spent / len(queries), 2),
        "recall@3": round(_recall(truth[:, :3], found[:, :3]), 3),
        "recall@10": round(_recall(truth, found), 3),
        "vectors": real.name if real else "synthetic",
    }
    results.put(row)


def _size(faiss, index) -> int:  # type: ignore[no-untyped-def]
    with tempfile.NamedTemporaryFile() as file:
        faiss.write_index(index, file.name)
        return round(Path(file.name).stat().st_size / 2**20)


def _recall(truth: np.ndarray, found: np.ndarray) -> float:
    return float(np.mean([len(set(t) & set(f)) / len(t) for t, f in zip(truth, found, strict=True)]))


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _rss() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["bm25", "dense"])
    parser.add_argument("--data", type=Path, default=os.environ.get(VARIABLE))
    parser.add_argument("--sizes", nargs="+", type=int, default=[20_000, 100_000, 1_000_000])
    parser.add_argument("--layouts", nargs="+", default=["flat", "hnsw", "ivfpq"])
    parser.add_argument("--vectors", type=Path)
    args = parser.parse_args()
    if args.what == "bm25" and args.data is None:
        parser.error(f"name the folder with --data or {VARIABLE}")
    jobs = (
        [(bm25, (Path(args.data), size)) for size in args.sizes]
        if args.what == "bm25"
        else [(dense, (size, layout, args.vectors)) for size in args.sizes for layout in args.layouts]
    )
    context = mp.get_context("spawn")
    for work, arguments in jobs:
        results = context.Queue()
        process = context.Process(target=work, args=(*arguments, results))
        process.start()
        print(json.dumps(results.get()), flush=True)
        process.join()


if __name__ == "__main__":
    main()
