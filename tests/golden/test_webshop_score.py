"""The score, with values worked out by hand (BR-044, BR-045) and its laws."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seedbench.envs.webshop.catalogue import Product, clean, price_numbers
from seedbench.envs.webshop.colours import COLOURS, first_colour
from seedbench.envs.webshop.goals import NO_LIMIT, Goal, human_goals, in_official_order, synthetic_goals
from seedbench.envs.webshop.reward import attribute_hits, score, similar, type_factor

SHOES = "Clothing › Men › Shoes"


def product(asin="P1", title="red boot", options=None, attributes=("warm",), price=20.0, **more) -> Product:
    fields = {
        "description": "", "bullets": (), "category": "fashion", "query": "boots", "path": SHOES,
        "options": options or {}, "attributes": attributes, "prices": (price,), "price": price,
    }  # fmt: skip
    return Product(asin=asin, title=title, **(fields | more))


def goal(options=(), attributes=("warm", "washable"), price_upper=30.0, **more) -> Goal:
    fields = {"asin": "P1", "instruction": "buy", "title": "red boot", "query": "boots", "path": SHOES}
    return Goal(
        attributes=attributes, options=options, price_upper=price_upper, category="f", **(fields | more)
    )


@pytest.mark.parametrize("fixed", [False, True])
def test_partial_credit_as_reported(fixed):
    """BR-044: one of two attributes, the option, the price -> 0.75; without options 0.6667."""
    bought = product(options={"size": ("small", "large")})
    nouns = ["boot"]
    with_option = score(bought, {"size": "large"}, goal((("size", "large"),)), nouns, nouns, fixed)
    assert with_option.value == 0.75 and not with_option.perfect
    without = score(bought, {}, goal(), nouns, nouns, fixed)
    assert without.value == pytest.approx(2 / 3)


@pytest.mark.parametrize("fixed", [False, True])
def test_extra_options_give_no_extra_credit(fixed):
    """BR-044: never above 1."""
    bought = product(attributes=("warm", "washable"))
    chosen = {"size": "large", "color": "red", "style": "large", "fit": "large"}
    assert score(bought, chosen, goal((("size", "large"),)), ["boot"], ["boot"], fixed).value == 1.0


def test_type_factor_table():
    same, other = product(), product(query="socks", path="Home › Kitchen")
    wanted = goal()
    assert type_factor(same, wanted, ["boot"], ["boot"]) == 1.0
    assert type_factor(other, wanted, ["boot"], ["boot", "x", "y", "z", "w", "v"]) == 0.5  # 1/6
    assert type_factor(other, wanted, ["boot"], ["boot", "x", "y", "z"]) == 1.0  # 1/4 > 0.2
    assert type_factor(same, wanted, ["boot"], ["boot", *"abcdefghij"]) == 0.1  # 1/11, overrides the query
    assert type_factor(same, wanted, ["sock"], ["boot"]) == 0.0
    assert type_factor(other, wanted, [], []) == 0.5  # no nouns wanted: overlap counts as 0.2
    assert type_factor(product(query="socks"), wanted, ["boot"], ["boot", *"abcdef"]) == 1.0  # shared path
    assert type_factor(other, wanted, ["boot"], ["boot", "x", "x", "x", "x", "x"]) == 0.5  # repeats count


def test_attributes_count_in_any_text():
    p = product(attributes=("machine wash",), description="Made for HEAVY duty", bullets=("anti slip",))
    assert attribute_hits(p, ["machine washing"]) == 1  # fuzzily
    assert attribute_hits(p, ["heavy duty", "anti slip", "red boot"]) == 3
    assert attribute_hits(p, ["vegan"]) == 0


def test_fuzzy_threshold_is_above_85():
    assert similar("dark blue", "blue") and similar("a b c", "c b a")
    assert not similar("", "") and not similar("x-large", "small")


def test_colours_of_values_and_pairs():
    assert len(COLOURS) == 102 and list(COLOURS) == sorted(COLOURS)
    assert first_colour("washed black") == "ash" and first_colour("xl") == "xl"
    assert first_colour(("color", "dark blue")) == ("color", "dark blue")
    assert first_colour(("color", "blue")) == "blue"


@pytest.mark.parametrize(
    ("chosen", "wanted", "faithful", "fixed"),
    [
        ({"size": "large"}, ("size", "x-large"), 1, 0),  # over-lenient
        ({"size": "10"}, ("size", "10.5"), 1, 0),
        ({"color": "washed black"}, ("color", "ash grey"), 1, 0),
        ({"color": "black2626"}, ("color", "black2626"), 0, 1),  # unreachable
        ({"style": "large"}, ("size", "large"), 1, 0),  # the wrong group
        ({"color": "blue"}, ("color", "blue"), 1, 1),
    ],
)
def test_option_match_faithful_and_fixed(chosen, wanted, faithful, fixed):
    nouns = ["boot"]
    for value, rules in ((faithful, False), (fixed, True)):
        got = score(product(), chosen, goal((wanted,)), nouns, nouns, rules)
        assert got.option_hits == value, (chosen, wanted, rules)


def test_success_is_a_perfect_score_only():
    """BR-045: rewards [0.2, 1.0, 0.0] are one success of three and a mean of 0.4."""
    from seedbench.envs.webshop.reward import Score

    values = [Score(v, 1.0, 0, 0, 0) for v in (0.2, 1.0, 0.0)]
    assert [s.perfect for s in values] == [False, True, False]
    assert sum(s.value for s in values) / 3 == pytest.approx(0.4)


TEXT = st.text(alphabet="abc é-/'", min_size=1, max_size=8)


@given(
    st.dictionaries(TEXT, TEXT, max_size=4),
    st.lists(st.tuples(TEXT, TEXT), max_size=4),
    st.lists(TEXT, min_size=1, max_size=4),
    st.floats(0, 100),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_score_lies_between_0_and_1(chosen, options, attributes, price, fixed):
    got = score(
        product(price=price),
        chosen,
        goal(tuple(options), tuple(attributes)),
        ["boot"],
        ["boot", "red"],
        fixed,
    )
    assert 0.0 <= got.value <= 1.0
    assert got.option_hits <= len(options) and got.attribute_hits <= len(attributes)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("$19.99 $27.99", (19.99, 27.99)),
        ("$1,024.50", (1024.5,)),
        ("", (100.0,)),
        (None, (100.0,)),
        ("$14.0", (14.0,)),
    ],
)
def test_price_strings(text, want):
    assert price_numbers(text) == want


RAW = {
    "asin": "A1", "name": "Boot", "full_description": None, "small_description": "one bullet",
    "pricing": "$44.99 $33.98", "category": "fashion", "query": " Boots ", "product_category": "a › b",
    "customization_options": {"Color": [{"value": " Red/Blue "}], "Size": None}, "images": [],
}  # fmt: skip


def test_cleaning_rules():
    raw = [RAW, RAW | {"name": "again"}, RAW | {"asin": "nan"}, RAW | {"asin": "longer-than-ten"}]
    (only,) = clean(raw, {}, random.Random(0))
    assert only.bullets == ("one bullet",) and only.query == "boots" and only.attributes == ("DUMMY_ATTR",)
    assert only.options == {"color": ("red | blue",)}
    assert only.price_tag == "$44.99 to $33.98" and 33.98 <= only.price <= 44.99
    assert only.document().contents == "boot  one bullet color: red | blue"


def test_goal_draws_and_order():
    products = clean([RAW | {"asin": "A1", "pricing": "$985"}], {}, random.Random(0))
    record = {"A1": {"instruction": "Find me boots", "instruction_attributes": ["warm"]}}
    (dear,) = synthetic_goals(products, record, random.Random(0))
    assert dear.price_upper == NO_LIMIT and dear.instruction == "Find me boots with color: red | blue"
    human = {"A1": [
        {"instruction": "i want boots.", "instruction_attributes": [], "instruction_options": []},
        {"instruction": "i want boots.", "instruction_attributes": ["warm"], "instruction_options": ["red"]},
    ]}  # fmt: skip
    (written,) = human_goals(products, human, random.Random(0))
    assert written.instruction == "i want boots" and written.options == (("", "red"),)
    many = [goal(instruction=str(i)) for i in range(50)]
    assert in_official_order(many) == in_official_order(many) != many
