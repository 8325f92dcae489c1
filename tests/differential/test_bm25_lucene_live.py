"""Our search against a running Lucene, where pyserini's jar, pyjnius and Java are installed."""

from __future__ import annotations

import importlib.util
import random
import zipfile

import pytest

from seedbench.errors import ExtraMissing
from seedbench.search import lucene
from seedbench.search.analysis import terms
from seedbench.search.base import Document
from seedbench.search.bm25 import BM25

INSTALLED = all(importlib.util.find_spec(m) for m in ("pyserini", "jnius")) and lucene.java_present() >= 11
live = [
    pytest.mark.reference,
    pytest.mark.skipif(not INSTALLED, reason="needs pyserini's jar, pyjnius and Java"),
]
WORDS = (
    "Red shirt's SHIRTS o'neil U.S.A. 1,000.5 12:30 x_y __ café naïve Σίσυφος İstanbul 日本語 カタカナ ひらがな 한국어 "
    "สวัสดี ★ ☆ 😀 👩‍👩‍👧 👍🏽 #️⃣ 🇩🇪 ½ ² ™ © a.b,c;d e:f g'h “quoted” x’s ＡＢＣ １２３ ℃ ﬁne flies dying generously "
    "relational conditional rational valenci hesitanci digitizer conformabli radicalli differentli vileli "
    "analogousli vietnamization predication operator feudalism decisiveness hopefulness callousness formaliti "
    "sensitiviti sensibiliti triplicate formative formalize electriciti electrical hopeful goodness revival "
    "allowance inference airliner gyroscopic adjustable defensible irritant replacement adjustment dependent "
    "adoption homologou communism activate angulariti homologous effective bowdlerize probate rate cease "
    "controll roll analogies geology hopping falling hissing fizzed failing filing the is was there"
).split()


def sample(rng: random.Random) -> str:
    return "".join(
        rng.choice(WORDS) + rng.choice((" ", " ", " ", "-", "/", ".", ",", "'", "")) for _ in range(12)
    )


@pytest.mark.parametrize("mark", [pytest.param(0, marks=live)])
def test_terms_and_ranking_agree_with_a_running_lucene(mark, tmp_path):
    rng = random.Random("lucene")
    texts = [sample(rng) for _ in range(2000)] + ["x" * 700, "1." * 400, "a'" * 300]
    assert [t for t in texts if terms(t) != lucene.lucene_terms(t)] == []
    documents = [Document(f"d{i:04}", t) for i, t in enumerate(texts)]
    theirs = lucene.Lucene(documents, tmp_path / "lucene")
    ours = BM25.build(documents)
    queries = [sample(rng) for _ in range(200)]
    for a, b in zip(ours.search(queries, 20), theirs.search(queries, 20), strict=True):
        assert [h.id for h in a] == [h.id for h in b]
        assert all(abs(x.score - y.score) < 6e-5 for x, y in zip(a, b, strict=True))


def test_java_version_is_read_from_the_jar(tmp_path):
    jar = tmp_path / "anserini-x-fatjar.jar"
    with zipfile.ZipFile(jar, "w") as z:
        z.writestr("io/anserini/search/SimpleSearcher.class", b"\xca\xfe\xba\xbe\x00\x00\x00\x41")
    assert lucene.java_needed(jar) == 21


@pytest.mark.parametrize(
    ("present", "message"), [(17, "needs Java 21.*Java 17 is installed"), (0, "no `java`")]
)
def test_too_old_a_java_is_told(monkeypatch, tmp_path, present, message):
    jar = tmp_path / "anserini-1.6.0-fatjar.jar"
    with zipfile.ZipFile(jar, "w") as z:
        z.writestr("io/anserini/search/SimpleSearcher.class", b"\xca\xfe\xba\xbe\x00\x00\x00\x41")
    monkeypatch.setattr(lucene, "java_present", lambda: present)
    with pytest.raises(ExtraMissing, match=message):
        lucene.check_java(jar)


def test_missing_package_is_told(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ExtraMissing, match="pip install"):
        lucene.find_jar()
