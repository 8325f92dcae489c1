"""Our search against recordings of Lucene (Anserini SimpleSearcher, k1 0.9, b 0.4) on the 1,000 products."""

from __future__ import annotations

import gzip
import json
import lzma

import pytest

from seedbench.search.analysis import terms
from seedbench.search.base import Document
from seedbench.search.bm25 import BM25

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def recorded(shared_data):
    path = shared_data("webshop") / "lucene_reference_2615_queries.json.gz"
    return json.loads(gzip.open(path).read())


@pytest.fixture(scope="module")
def index(shared_data):
    with lzma.open(shared_data("webshop") / "documents_1k.jsonl.xz", "rt", encoding="utf-8") as f:
        return BM25.build(Document(d["id"], d["contents"]) for d in map(json.loads, f))


def test_terms_of_all_recorded_queries(recorded):
    assert [terms(q) for q in recorded["queries"]] == recorded["query_tokens"]


def test_order_and_scores_of_all_recorded_queries(recorded, index):
    assert len(recorded["queries"]) == 2615
    for query, want, got in zip(
        recorded["queries"], recorded["top50"], index.search(recorded["queries"], 50), strict=True
    ):
        assert [h.id for h in got] == [i for i, _ in want], query
        # Anserini rounds its scores to four decimals
        assert max(abs(h.score - s) for h, (_, s) in zip(got, want, strict=True)) < 6e-5, query


def test_saved_index_ranks_the_same(recorded, index, tmp_path):
    index.save(tmp_path / "index")
    loaded = BM25.load(tmp_path / "index")
    some = recorded["queries"][:200]
    assert loaded.search(some, 50) == index.search(some, 50)
    assert loaded.fingerprint == index.fingerprint
