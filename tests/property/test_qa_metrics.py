"""Answer metrics against an independent reading of the same rule, and the recorded corner cases."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seedbench.envs.search_qa import metrics


def slow_normalize(text: str) -> str:
    """The papers' normalisation written out letter by letter, without regular expressions."""
    kept = [c for c in text.lower() if c not in string.punctuation]
    words: list[str] = []
    word = ""
    for c in [*kept, " "]:
        # a word ends where Python's \b would end it: at anything that is neither letter, digit nor _
        if c.isalnum() or c == "_":
            word += c
        else:
            words += [" " if word in ("a", "an", "the") else word, c]
            word = ""
    return " ".join("".join(words).split())


WORDS = (
    "The the A an An Paris paris New York U.S. AC/DC 3,000 3000 2010–2011 Beyoncé don't don’t l'eau a-ha _x_ "
    "ß İstanbul ... 42 4.2 yes no 東京 A+ --- e\u0301 x_a the_ “quoted”"
).split(" ") + ["\u00a0", "\t"]


def sentence(rng: random.Random) -> str:
    glue = rng.choice([" ", "  ", "", "-", ", ", "\n"])
    return glue.join(rng.choice(WORDS) for _ in range(rng.randint(0, 5)))


def test_exact_match_agrees_with_an_independent_implementation_on_10000_pairs():
    rng, equal = random.Random("em pairs"), 0
    for _ in range(10_000):
        answer, golds = sentence(rng), [sentence(rng) for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.4:  # near copies, so that both outcomes are common
            golds[0] = rng.choice([answer.upper(), f"the {answer}", answer + ".", f" {answer} ", answer])
        expected = float(any(slow_normalize(answer) == slow_normalize(g) for g in golds))
        assert metrics.em(answer, golds) == expected, (answer, golds)
        equal += int(expected)
    assert 2_000 < equal < 8_000


@given(st.text(max_size=40))
def test_normalisation_agrees_on_any_text(text):
    assert metrics.normalize(text) == slow_normalize(text)


@given(st.text(max_size=30), st.lists(st.text(max_size=30), min_size=1, max_size=3))
def test_relations_between_metrics(answer, golds):
    got = metrics.score(answer, golds)
    assert all(0 <= v <= 1 for v in got.values())
    assert got["em_strict"] <= got["em"] or any(not metrics.normalize(g) for g in golds)
    assert got["em"] <= got["sub_em"]
    assert got["em_strict"] <= got["sub_em_strict"]
    assert metrics.score(None, golds) == dict.fromkeys(got, 0.0)


@pytest.mark.parametrize("gold", ["A", "The", "...", "A+", ")", "---", "*", "The The", "!!!"])
def test_golds_that_normalise_to_nothing(gold):  # BR-047
    if metrics.normalize(gold) == "":
        assert metrics.em("", [gold]) == 1.0  # the papers' metric, fault included
        assert metrics.sub_em("anything", [gold]) == 1.0
        assert metrics.em_strict("", [gold]) == 0.0
    assert metrics.em_strict("B", [gold]) == 0.0 and metrics.sub_em_strict("B", [gold]) == 0.0
    assert metrics.em_strict(gold, [gold]) == 1.0 and metrics.sub_em_strict(gold, [gold]) == 1.0


def test_white_space_left_by_removals_is_collapsed():  # BR-048
    assert metrics.em("( B )", ["(B)"]) == 1.0
    assert metrics.em("New  York", ["New York"]) == 1.0


def test_unicode_forms():  # BR-049: em as the papers, em_folded forgives
    pairs = [("STRASSE", "straße"), ("café", "cafe\u0301"), ("don’t", "don't"), ("2010–2011", "2010-2011")]
    for a, b in pairs:
        assert metrics.em(a, [b]) == 0.0, (a, b)
        assert metrics.em_folded(a, [b]) == 1.0, (a, b)
    assert metrics.em_folded("8.540", ["9.540"]) == 0.0
    assert metrics.em_folded("Beyonce", ["Beyoncé"]) == 0.0  # another letter stays another letter


def test_numbers_are_not_matched_by_their_ends():  # BR-050
    assert metrics.em("711", ["11"]) == 0.0 and metrics.sub_em_strict("711", ["11"]) == 0.0
    assert metrics.em("(42).", ["42"]) == 1.0
    assert metrics.sub_em_strict("The answer is (42).", ["42"]) == 1.0
    assert metrics.em("3,000", ["3000"]) == 1.0


def test_f1_of_yes_and_no():
    assert metrics.f1("yes", ["yes"]) == 1.0
    assert metrics.f1("yes it is", ["yes"]) == 0.0  # FlashRAG: a closed answer matches only itself
    assert metrics.f1("the river Nile", ["Nile"]) == pytest.approx(2 / 3)
    assert metrics.f1("", ["x"]) == 0.0


def test_macro_and_pooled_means_are_both_given():  # BR-053
    sizes, rates = (4705, 3077, 3107, 3153), (24.21, 23.82, 21.71, 21.31)
    values = {f"s{i}": [r] * n for i, (n, r) in enumerate(zip(sizes, rates, strict=True))}
    macro, pooled = metrics.means(values)
    assert macro == pytest.approx(22.7625) and pooled == pytest.approx(22.920, abs=5e-4)
    with pytest.raises(ValueError, match="without a single value"):
        metrics.means({"nq": []})


def test_answers_are_found_in_text_as_whole_words():
    assert metrics.mentions("He was born in New-York.", ["newyork"])
    assert not metrics.mentions("711 people", ["11"])
    assert not metrics.mentions("anything", ["---"])
