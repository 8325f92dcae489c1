"""BM25 against a plain second implementation, and the laws an index must keep."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbench.errors import ConfigError, DataCorrupt, DataMissing
from seedbench.search.analysis import terms, words
from seedbench.search.base import Document
from seedbench.search.bm25 import BM25, Settings, corpus_fingerprint, stored_length

LETTERS = st.sampled_from(
    "red green blue shirt shirts lamp lamps running run café 日本 10.5 u.s.a o'neil's _x_".split()
)
TEXT = st.lists(LETTERS, max_size=60).map(" ".join)
CORPUS = st.lists(TEXT, min_size=1, max_size=12).map(
    lambda ts: [Document(f"d{i:02}", t) for i, t in enumerate(ts)]
)


def slow_scores(docs: list[Document], query: str, k1: float = 0.9, b: float = 0.4) -> dict[str, float]:
    """Textbook BM25 in double precision, written without looking at the code under test."""
    bags = {d.id: terms(d.contents) for d in docs}
    filled = [bag for bag in bags.values() if bag]
    out: dict[str, float] = {}
    for name, bag in bags.items():
        score = 0.0
        for word, boost in Counter(terms(query)).items():
            df = sum(word in other for other in bags.values())
            tf = bag.count(word)
            if tf:
                average = sum(map(len, filled)) / len(filled)
                norm = k1 * (1 - b + b * stored_length(len(bag)) / average)
                score += boost * math.log(1 + (len(filled) - df + 0.5) / (df + 0.5)) * tf / (tf + norm)
        if score:
            out[name] = score
    return out


@given(CORPUS, TEXT)
@settings(max_examples=150, deadline=None)
def test_scores_agree_with_a_plain_implementation(docs, query):
    hits = BM25.build(docs).search([query], 50)[0]
    want = slow_scores(docs, query)
    assert {h.id for h in hits} == set(want)
    for h in hits:
        assert h.score == pytest.approx(want[h.id], rel=1e-5)
    assert hits == sorted(hits, key=lambda h: (-h.score, h.id))
    for h in hits:
        assert h.contents == next(d.contents for d in docs if d.id == h.id)


@given(CORPUS, TEXT, st.integers(1, 6))
@settings(max_examples=80, deadline=None)
def test_fewer_hits_are_a_prefix_and_corpus_order_is_no_matter(docs, query, k):
    index = BM25.build(docs)
    assert index.search([query], k)[0] == index.search([query], 50)[0][:k]
    assert BM25.build(docs[::-1]).search([query], 50) == index.search([query], 50)


@given(st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_analysis_never_fails_and_gives_clean_terms(text):
    for t in terms(text):
        assert t and not t.isspace()
    assert all(len(w) <= 255 for w in words(text))


@given(
    st.text(
        alphabet="aB1_'.,\u00e9\u0301\u200d\u2605\u65e5\u30ab\U0001f469\U0001f3fd \u00a0\u3000\u202f\t",
        max_size=40,
    )
)
@settings(max_examples=500, deadline=None)
def test_terms_by_pieces_equal_terms_of_the_whole_text(text):
    from seedbench.search.analysis import term

    assert terms(text) == [t for w in words(text) if (t := term(w))]


@given(st.text(alphabet="ab1_'.,:; \u00e9", max_size=120))
@settings(max_examples=300, deadline=None)
def test_fast_ascii_path_equals_the_general_one(text):
    from seedbench.search import analysis

    ascii_text = text.replace("\u00e9", "e")
    general = [w for w in analysis._UNICODE.findall(ascii_text) if w]
    assert words(ascii_text) == general


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("O'Neil's dogs' U.S.A. 1,000.5 12:30", ["o'neil", "dog", "u.s.a", "1,000.5", "12", "30"]),
        ("possibly geology generically happy", ["possibl", "geologi", "gener", "happi"]),
        ("analogies conformably it is", ["analog", "conform"]),
        ("the an IT will", []),
        ("日本語 カタカナ ひら", ["日", "本", "語", "カタカナ", "ひ", "ら"]),
        ("★ 👩\u200d👧 🇩🇪 #\ufe0f\u20e3", ["★", "👩\u200d👧", "🇩🇪", "#\ufe0f\u20e3"]),
        ("ΣΑΣ İstanbul", ["σασ", "istanbul"]),
        ("a_b __ _1_", ["a_b", "_1_"]),
        ("", []),
    ],
)
def test_terms(text, want):
    assert terms(text) == want


@pytest.mark.parametrize(
    "text", ["_" * 100_000, "a'" * 50_000, "é_'" * 40_000, "\u0301" * 100_000, "x" * 100_000]
)
def test_hostile_text_is_linear_and_cut(text):
    assert all(len(w) <= 255 for w in words(text))


@pytest.mark.parametrize(
    ("n", "want"), [(0, 0), (1, 1), (39, 39), (40, 40), (41, 40), (56, 56), (57, 56), (100, 96)]
)
def test_stored_length(n, want):
    assert stored_length(n) == want


def test_empty_corpus_and_empty_query(tmp_path):
    empty = BM25.build([])
    assert empty.search(["red shirt"], 5) == [[]]
    empty.save(tmp_path / "i")
    assert BM25.load(tmp_path / "i").search(["red"], 5) == [[]]
    index = BM25.build([Document("a", ""), Document("b", "red shirt")])
    assert index.search(["", "the", "unknownword"], 5) == [[], [], []]
    assert [h.id for h in index.search(["shirts"], 5)[0]] == ["b"]


def test_fingerprint_names_order_text_and_settings():
    docs = [Document("a", "red"), Document("b", "blue")]
    prints = {
        BM25.build(docs).fingerprint,
        BM25.build(docs[::-1]).fingerprint,
        BM25.build([Document("a", "re"), Document("db", "blue")]).fingerprint,
        BM25.build(docs, Settings(k1=1.2)).fingerprint,
    }
    assert len(prints) == 4
    assert BM25.build(docs).fingerprint == corpus_fingerprint(iter(docs))


def test_errors_are_clear(tmp_path):
    with pytest.raises(DataCorrupt, match="'a' occurs twice"):
        BM25.build([Document("a", "x"), Document("a", "y")])
    with pytest.raises(ConfigError, match="k is the number"):
        BM25.build([Document("a", "x")]).search(["x"], 0)
    with pytest.raises(ConfigError, match="k1 > 0"):
        BM25.build([], Settings(k1=-1))
    with pytest.raises(DataMissing, match="No search index"):
        BM25.load(tmp_path / "none")


@pytest.mark.parametrize("damage", ["truncate", "flip", "json", "version", "remove"])
def test_damaged_index_is_refused(tmp_path, damage):
    folder = tmp_path / "index"
    BM25.build([Document(f"{i}", f"red shirt {i}") for i in range(50)]).save(folder)
    target = folder / "docs.npy"
    if damage == "truncate":
        target.write_bytes(target.read_bytes()[:100])
    elif damage == "flip":
        raw = bytearray(target.read_bytes())
        raw[-1] ^= 1
        target.write_bytes(raw)
    elif damage == "json":
        (folder / "index.json").write_text("{")
    elif damage == "version":
        (folder / "index.json").write_text('{"format": 99}')
    else:
        target.unlink()
    with pytest.raises(DataCorrupt, match="Build the index again"):
        BM25.load(folder, verify=True)


def test_save_replaces_an_index_but_nothing_else(tmp_path):
    index = BM25.build([Document("a", "red")])
    index.save(tmp_path / "index")
    index.save(tmp_path / "index")
    (tmp_path / "mine").mkdir()
    with pytest.raises(ConfigError, match="no search index"):
        index.save(tmp_path / "mine")
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
