"""Bad input: a clear outcome each, nothing lost."""

from __future__ import annotations

import json
import lzma

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seedbench.envs.webshop import data
from seedbench.envs.webshop.env import Options, WebShop
from seedbench.envs.webshop.shop import OriginalCrash, split_action

from seedbench.errors import ConfigError, DataCorrupt, DataMissing, EpisodeOver
from seedbench.types import Action, History, Observation, PastTurn

OPTIONS = {
    "Size": [{"value": "a[b]"}, {"value": '5" x 5"'}],
    "Style": [{"value": "description"}, {"value": '5" x 5"'}],
}
PRODUCTS = [
    {
        "asin": f"B{i}", "name": f"warm boot {i}", "full_description": "d", "small_description": ["b", ""],
        "pricing": "$10.5", "category": "fashion", "query": "boots", "product_category": "a › b › c",
        "images": ["i"], "customization_options": OPTIONS,
    }
    for i in range(3)
]  # fmt: skip
ATTRIBUTES = {
    f"B{i}": {"attributes": ["warm"], "instruction": "Find me boots", "instruction_attributes": ["warm"]}
    for i in range(3)
}
NOUNS = {f"B{i}": ["boot"] for i in range(3)}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "items_shuffle_1000.json").write_text(json.dumps(PRODUCTS))
    (tmp_path / "items_ins_v2_1000.json").write_text(json.dumps(ATTRIBUTES))
    (tmp_path / "title_nouns_hand.json").write_text(json.dumps(NOUNS))
    return tmp_path


def shop(folder, variant="fixed", **more):
    return WebShop(Options(variant=variant, data=str(folder), **more))


def begin(env, split="test", place=0):
    session = env.session()
    session.reset(env.tasks(split)[place], 0)
    return session


MALFORMED = [
    "", " ", "[", "]", "[]", "search", "search[]", "click[]", "click[[[[]]]]", "buy now", "click[unknown]",
    "click[B000000000]", "think[x]", "search[x", "search x]", "\x00", "👩\u200d👧[★]", "点击[立即购买]",
    "click[" * 5000, "[" * 50_000 + "]" * 50_000, "click[" + "a" * 100_000 + "]", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("variant", ["mini", "faithful", "fixed"])
def test_malformed_actions_change_nothing(folder, variant):
    env = WebShop(Options()) if variant == "mini" else shop(folder, variant)
    session = begin(env, "mini-test" if variant == "mini" else "test")
    before = env.observe(session.visit)
    for text in MALFORMED[:14]:
        result = session.step(Action(text))
        assert not result.effect and result.observation == before and result.reward == 0
    session = begin(env, "mini-test" if variant == "mini" else "test")
    for text in MALFORMED[14:]:
        result = session.step(Action(text))
        assert not result.effect and result.observation == before


@pytest.mark.parametrize("variant", ["faithful", "fixed"])
@pytest.mark.parametrize(
    "query",
    [
        "x" * 100_000,
        "<script>alert(1)</script>",
        "★ 日本 \u202e \ud835",
        "a\nb",
        "' OR 1=1 --",
        "_" * 100_000,
    ],
)
def test_any_query_gives_a_page(folder, variant, query):
    env = shop(folder, variant, mode="html")
    session = begin(env)
    result = session.step(Action(f"search[{query}]"))
    assert "<script>alert" not in result.observation.text
    assert session.step(Action("search[boot]")).effect


def test_hidden_commands_crash_the_original_and_not_the_fixed_shop(folder):
    faithful, fixed = begin(shop(folder, "faithful")), begin(shop(folder, "fixed"))
    for query in ("<a> x", "<c>"):
        with pytest.raises(OriginalCrash, match="original shop crashes"):
            faithful.step(Action(f"search[{query}]"))
        assert fixed.step(Action(f"search[{query}]")).effect
    for query, hits in (("<c> fashion", 3), ("<q> boots", 3), ("<q> socks", 0), ("<r>", 3)):
        result = faithful.step(Action(f"search[{query}]"))
        assert f"Total results: {hits}" in result.observation.text


def test_random_products_are_a_function_of_the_seed(folder):
    env = shop(folder, "faithful")
    texts = []
    for seed in (1, 1, 2, 3, 4, 5, 6):
        session = env.session()
        session.reset(env.tasks("test")[0], seed)
        texts.append(session.step(Action("search[<r>]")).observation.text)
    assert texts[0] == texts[1] and len(set(texts)) > 1


def test_page_0_in_the_original_only(folder):
    """A query that names a page kind sends '< Prev' astray in the original."""
    texts = {}
    for variant in ("faithful", "fixed"):
        session = begin(shop(folder, variant))
        session.step(Action("search[boot search_results]"))
        session.step(Action("click[b1]"))
        session.step(Action("click[features]"))
        texts[variant] = session.step(Action("click[< prev]")).observation.text
    assert "Page 0" in texts["faithful"] and "Price: $10.50" in texts["fixed"]


def test_options_with_brackets_quotes_and_button_names(folder):
    faithful, fixed = begin(shop(folder, "faithful")), begin(shop(folder, "fixed"))
    for session in (faithful, fixed):
        session.step(Action("search[boot]"))
        session.step(Action("click[b1]"))
    assert not faithful.step(Action("click[a[b]]")).effect
    assert fixed.step(Action("click[a[b]]")).effect and fixed.visit.options == {"size": "a[b]"}
    # the same value in two groups: the original gives it to the later one, the fixed shop names the group
    faithful.step(Action('click[5" x 5"]'))
    assert faithful.visit.options == {"style": '5" x 5"'}
    assert fixed.step(Action('click[size: 5" x 5"]')).effect
    assert fixed.visit.options == {"size": '5" x 5"'}
    # an option named like a button opens that page in the original
    assert fixed.step(Action("click[style: description]")).effect and fixed.visit.kind == "item"
    faithful.step(Action("click[description]"))
    assert faithful.visit.kind == "sub"


def test_quoted_option_is_shown_as_chosen_in_the_fixed_shop_only(folder):
    shown = {}
    for variant in ("faithful", "fixed"):
        session = begin(shop(folder, variant, mode="text_rich"))
        session.step(Action("search[boot]"))
        session.step(Action("click[b1]"))
        click = 'click[5" x 5"]' if variant == "faithful" else 'click[size: 5" x 5"]'
        shown[variant] = session.step(Action(click)).observation.text.count("[clicked button]")
    assert shown == {"faithful": 0, "fixed": 1}


@pytest.mark.parametrize(
    ("text", "faithful", "fixed"),
    [
        ("search[foo] bar", ("search", "foo"), ("", "")),
        ("click[x[y]]", ("click[x", "y]"), ("click", "x[y]")),
        ("CLICK[Buy Now]", ("CLICK", "buy now"), ("click", "buy now")),
        ("search[a\nb]", ("", ""), ("search", "a b")),
        ("[x]", ("", ""), ("", "")),
        ("a[]", ("", ""), ("", "")),
    ],
)
def test_action_grammar(text, faithful, fixed):
    assert split_action(text, False) == faithful
    assert split_action(text, True) == fixed


@given(st.text(alphabet="ac[]\n ", max_size=24))
@settings(max_examples=500)
def test_linear_grammar_equals_the_expression_of_the_original(text):
    import re

    found = re.match(r"(.+)\[(.+)\]", text)
    assert split_action(text, False) == ((found[1], found[2].lower()) if found else ("", ""))


def test_missing_files_name_the_file_and_the_cure(folder, monkeypatch):
    """BR-110: each missing piece is named, without a traceback; mini runs without any of them."""
    monkeypatch.delenv("WEBSHOP_DATA", raising=False)
    with pytest.raises(DataMissing, match=r"not configured.*setup\.sh.*WEBSHOP_DATA"):
        WebShop(Options(variant="fixed"))
    with pytest.raises(DataMissing, match="is not a folder"):
        shop(folder / "nowhere")
    with pytest.raises(DataMissing, match=r"has no items_human_ins\.json"):
        shop(folder, goals="human")
    with pytest.raises(DataMissing, match=r"has no items_ins_v2\.json.*-d all"):
        shop(folder, catalogue="full")
    assert "not configured" in data.missing_files(None, "small", human=False)[0]
    assert data.missing_files(str(folder), "small", human=False) == []
    assert WebShop(Options()).splits()["mini-test"] == 200


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("items_shuffle_1000.json", b"[{", "cannot be read as JSON"),
        ("items_shuffle_1000.json", b"\xff\xfe\x00", "cannot be read as JSON"),
        ("items_shuffle_1000.json", b"{}", "should hold a list of products"),
        ("items_shuffle_1000.json", b"[]", "should hold a list of products"),
        ("items_shuffle_1000.json", b'[{"asin": "A"}]', "Product number 0"),
        ("items_shuffle_1000.json", b'[{"asin": "A", "pricing": "$x"}]', "Product number 0"),
        ("items_shuffle_1000.json", b"[3]", "Product number 0"),
        ("items_ins_v2_1000.json", b"[]", "should hold an object"),
        ("items_ins_v2_1000.json", b'{"a": ', "cannot be read as JSON"),
        ("title_nouns_hand.json", b"nonsense", "cannot be read as JSON"),
    ],
)
def test_corrupt_files(folder, name, content, message):
    (folder / name).write_bytes(content)
    with pytest.raises(DataCorrupt, match=message):
        shop(folder)


def test_corrupt_search_documents(folder):
    (folder / "items_shuffle_1000.json").unlink()
    target = folder / "documents_1k.jsonl.xz"
    target.write_bytes(b"not xz")
    with pytest.raises(DataCorrupt, match="xz-compressed"):
        shop(folder)
    target.write_bytes(lzma.compress(b'{"id": 1}\n'))
    with pytest.raises(DataCorrupt, match="lacks a product field"):
        shop(folder)


def test_goals_without_products(folder):
    (folder / "items_ins_v2_1000.json").write_text("{}")
    with pytest.raises(DataMissing, match="no synthetic goal"):
        shop(folder)


def test_human_instruction_without_a_field(folder):
    (folder / "items_human_ins.json").write_text(json.dumps({"B1": [{"instruction": "x"}]}))
    with pytest.raises(DataCorrupt, match="product B1 lacks"):
        shop(folder, goals="human")


def test_saved_index_is_used_and_checked(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("index") / "i"
    first = shop(folder, index=str(place))
    again = shop(folder, "faithful", index=str(place))
    assert (place / "index.json").is_file() and again.spec.details == first.spec.details
    (folder / "items_shuffle_1000.json").write_text(json.dumps(PRODUCTS[:2]))
    from seedbench.envs.webshop import worlds

    worlds._real.cache_clear()
    with pytest.raises(DataCorrupt, match="another catalogue"):
        shop(folder, index=str(place))


def test_unknown_split_and_settings(folder):
    env = shop(folder)
    with pytest.raises(ConfigError, match=r"no split 'mini-train'.*test \(12\)"):
        env.tasks("mini-train")
    for bad in ({"products": 3}, {"variant": "x"}, {"nonsense": 1}, {"mode": "pdf"}):
        with pytest.raises(ValueError):
            Options(**bad)


def test_step_before_reset_and_after_the_end(folder):
    session = shop(folder).session()
    for call in (session.outcome, session.oracle, lambda: session.step(Action("x"))):
        with pytest.raises(EpisodeOver):
            call()
    session = begin(shop(folder))
    while not session.step(Action(session.oracle())).terminated:
        pass
    assert session.outcome().score == 1.0
    with pytest.raises(EpisodeOver):
        session.step(Action("search[boot]"))
    session.close()
    with pytest.raises(EpisodeOver):
        session.outcome()


def test_long_prompts_fall_back_to_no_history(folder):
    env = shop(folder)
    long = Observation("y" * 9000, ("click[a]",))
    history = History("buy it", (PastTurn(long, "click[a]"),), long)
    (message,) = env.render(history)
    assert message.content.count("y" * 9000) == 1 and "buy it" in message.content
    short = History("buy it", (PastTurn(Observation("seen before"), "click[a]"),), long)
    assert "seen before" in env.render(short)[0].content


def test_prompt_holds_the_last_two_pairs_only(folder):
    env = shop(folder)
    past = tuple(PastTurn(Observation(f"page-{i}"), f"act-{i}") for i in range(5))
    text = env.render(History("buy it", past, Observation("now", ("click[a]",))))[0].content
    assert [f"page-{i}" in text for i in range(5)] == [False, False, False, True, True]
    assert "You have taken 5 action(s)" in text and "Observation 4: 'page-3', Action 4: 'act-3'" in text


def test_parsing_as_published(folder):
    env = shop(folder)
    assert env.parse("<think>a</think><action>Click[Buy Now]</action>") == Action("click[buy now]")
    fallback = env.parse("I would now do click[buy now] please")
    assert fallback == Action("I would now do click[buy now] please".lower()[-20:], False, "no_tags")
    assert env.parse("<action>search[x]</action>").reason == "no_think"
    assert WebShop(Options(require_think=False)).parse("<action>search[x]</action>") == Action("search[x]")
    assert not env.parse("<think>买</think><action>search[x]</action>").valid


def test_choices_are_sorted_and_bounded(folder):
    env = shop(folder)
    words = " ".join(f"word{i}" for i in range(200))
    for instruction in (words, "", "[[]]", "a the of", "i want a x , y"):
        got = env.choices(
            History(instruction, (), Observation("", ("search[<your query>]", "click[search]")))
        )
        assert list(got) == sorted(set(got)) and 1 <= len(got) <= 30
        assert all(split_action(a, True)[1] and split_action(a, False)[1] for a in got)
