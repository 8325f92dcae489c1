"""Search engines side by side on the 20,000 real passages of the Search-QA mini set.

    python benchmarks/retrieval_quality.py [--data FOLDER] [--engines bm25 bm25s tantivy ...] [--passages N]

Each engine runs in a process of its own and is asked the same questions (those with known evidence):
CPU seconds to build, milliseconds of CPU a query, memory it adds, the share of questions with a piece of
evidence in the first 3 (hit@3), and the share of all evidence in the first 3 and 10 (recall@3, @10).
``dense`` encodes every passage (minutes per thousand on a CPU): give it --passages.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

from seedbench.envs.search_qa.data import VARIABLE, Folder
from seedbench.envs.search_qa.questions import SETS

from seedbench.search.base import Document
from seedbench.search.corpus import read_corpus

Search = Callable[[str, int], list[str]]
K = 10


def seedbench_bm25(documents: list[Document]) -> Search:
    from seedbench.search.bm25 import BM25

    index = BM25.build(documents)
    return lambda query, k: [h.id for h in index.search([query], k)[0]]


def bm25s(documents: list[Document]) -> Search:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    tokens = bm25s.tokenize(
        [d.contents for d in documents], stopwords="en", stemmer=stemmer, show_progress=False
    )
    index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    index.index(tokens, show_progress=False)
    ids = [d.id for d in documents]

    def search(query: str, k: int) -> list[str]:
        asked = bm25s.tokenize([query], stopwords="en", stemmer=stemmer, show_progress=False)
        rows, _ = index.retrieve(asked, k=k, show_progress=False)
        return [ids[r] for r in rows[0]]

    return search


def tantivy(documents: list[Document]) -> Search:
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_text_field("id", stored=True, tokenizer_name="raw")
    schema.add_text_field("contents", stored=False, tokenizer_name="en_stem")
    index = tantivy.Index(schema.build())
    writer = index.writer(heap_size=100_000_000, num_threads=1)
    for d in documents:
        writer.add_document(tantivy.Document(id=d.id, contents=d.contents))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(query: str, k: int) -> list[str]:
        words = "".join(c if c.isalnum() else " " for c in query)
        asked = index.parse_query(words.lower(), ["contents"])
        return [searcher.doc(a)["id"][0] for _, a in searcher.search(asked, k).hits]

    return search


def pyserini(documents: list[Document]) -> Search:
    """Needs an index built by pyserini from the same passages: set LUCENE_INDEX to its folder."""
    from seedbench.search.pyserini import Pyserini

    index = Pyserini(Path(os.environ["LUCENE_INDEX"]))
    return lambda query, k: [h.id for h in index.search([query], k)[0]]


def dense(documents: list[Document]) -> Search:
    from seedbench.search.dense import Dense

    index = Dense.build(documents)
    return lambda query, k: [h.id for h in index.search([query], k)[0]]


ENGINES = {"bm25": seedbench_bm25, "bm25s": bm25s, "tantivy": tantivy, "pyserini": pyserini, "dense": dense}


def measure(name: str, root: Path, passages: int, out: mp.Queue) -> None:  # type: ignore[type-arg]
    try:
        out.put(_measure(name, root, passages))
    except Exception as error:
        out.put({"engine": name, "absent": f"{type(error).__name__}: {error}"})


def _measure(name: str, root: Path, passages: int) -> dict:
    folder = Folder(root, True)
    questions = [q for q in folder.splits(SETS, None)["test"] if q.gold_ids]
    documents = list(read_corpus(folder.corpus()))
    if passages:
        gold = {g for q in questions for g in q.gold_ids}
        documents.sort(key=lambda d: (d.id not in gold, d.id))
        documents = documents[:passages]
    ENGINES[name](documents[:300])  # imports are no part of building
    before, began = _rss(), time.process_time()
    search = ENGINES[name](documents)
    built, rss = time.process_time() - began, _rss() - before
    began = time.process_time()
    found = [search(q.question, K) for q in questions]
    spent = time.process_time() - began
    hits: dict[str, list[float]] = {}
    recall3, recall10 = [], []
    for q, ids in zip(questions, found, strict=True):
        gold = set(q.gold_ids)
        hits.setdefault(q.data_source, []).append(float(bool(gold & set(ids[:3]))))
        recall3.append(len(gold & set(ids[:3])) / len(gold))
        recall10.append(len(gold & set(ids)) / len(gold))
    every = [h for v in hits.values() for h in v]
    return {
        "engine": name,
        "passages": len(documents),
        "questions": len(questions),
        "build_cpu_s": round(built, 2),
        "rss_mib": round(rss),
        "ms_per_query": round(1000 * spent / len(questions), 3),
        "hit@3": round(sum(every) / len(every), 4),
        "recall@3": round(sum(recall3) / len(recall3), 4),
        "recall@10": round(sum(recall10) / len(recall10), 4),
        "hit@3_by_set": {s: round(sum(v) / len(v), 3) for s, v in hits.items()},
    }


def _rss() -> float:
    """Resident MiB now (peak so far where the system does not tell)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 2**20
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get(VARIABLE))
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=["bm25", "bm25s", "tantivy"])
    parser.add_argument("--passages", type=int, default=0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.data is None:
        parser.error(f"name the folder with --data or {VARIABLE}")
    context, rows = mp.get_context("spawn"), []
    for name in args.engines:
        results = context.Queue()
        process = context.Process(target=measure, args=(name, Path(args.data), args.passages, results))
        process.start()
        rows.append(results.get())
        process.join()
        print(json.dumps(rows[-1]), flush=True)
    print(table(rows))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def table(rows: list[dict]) -> str:
    heads = ["engine", "passages", "build_cpu_s", "rss_mib", "ms_per_query", "hit@3", "recall@3", "recall@10"]
    lines = ["| " + " | ".join(heads) + " | speed |", "|---" * (len(heads) + 1) + "|"]
    base = rows[0].get("ms_per_query")
    for row in rows:
        ratio = (
            f"{base / row['ms_per_query']:.2f}x"
            if base and row.get("ms_per_query")
            else row.get("absent", "")
        )
        lines.append("| " + " | ".join(str(row.get(h, "")) for h in heads) + f" | {ratio} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
