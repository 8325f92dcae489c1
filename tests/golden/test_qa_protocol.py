"""The two dialects: parsing, observations, prompts, limits. Cases from the sources and from bug reports."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seedbench.envs.search_qa import KIND, protocol
from seedbench.envs.search_qa.protocol import DIALECTS, MAX_QUERY_CHARS

from seedbench.panel import sha256_lines
from seedbench.search.base import Hit
from seedbench.types import History, Observation, PastTurn

SDAR, R1 = DIALECTS["sdar"], DIALECTS["search-r1"]

# completion -> (action, valid, reason) in the sdar dialect
SDAR_CASES = [
    ("<think>x</think><search> q </search>", "<search>q</search>", True, ""),
    (
        "<think>x</think><answer>Paris</answer>",
        "<answer>Paris</answer>",
        True,
        "",
    ),  # BR-032: one tag is enough
    ("<answer>Paris</answer>", "<answer>Paris</answer>", True, ""),  # thinking is not enforced
    ("<SEARCH>q</Search>", "<search>q</search>", True, ""),
    ("<answer>x</answer> <search>q</search>", "<search>q</search>", False, "both_tags"),
    ("<search>q</search> <answer>x</answer>", "<search>q</search>", False, "both_tags"),
    ("<search>q1</search> .. <search>q2</search>", "<search>q1</search>", False, "repeated_tag"),  # BR-036
    ("<answer>1</answer><answer>2</answer>", "<answer>1</answer>", False, "repeated_tag"),  # BR-035
    ("<search>q", "", False, "no_tags"),
    ("<answer>Paris", "", False, "no_tags"),
    ("no tag at all", "", False, "no_tags"),
    ("", "", False, "empty"),  # BR-040
    (" \n", "", False, "empty"),
    ("<search>  </search>", "<search></search>", False, "empty_query"),
    ("<search>" + "x" * (MAX_QUERY_CHARS + 1) + "</search>", "", False, "query_too_long"),
    # BR-034: a tag quoted in closed reasoning is not an action, and a stray quote changes nothing
    (
        '<think>I must write <answer>X</answer> "</think><answer>Paris</answer>',
        "<answer>Paris</answer>",
        True,
        "",
    ),
    ("a </think><search>q</search>", "<search>q</search>", True, ""),  # BR-082: opening tag was in the prompt
    ("<answer>a\nb</answer>", "<answer>a\nb</answer>", True, ""),
    ("<search>Beyoncé – 東京 \ud835</search>", "<search>Beyoncé – 東京 \ud835</search>", True, ""),  # BR-106
]


@pytest.mark.parametrize(("completion", "action", "valid", "reason"), SDAR_CASES)
def test_sdar_parsing(completion, action, valid, reason):
    got = protocol.parse(completion, SDAR)
    assert (got.text, got.valid, got.reason) == (action, valid, reason)


def test_search_r1_parsing_keeps_the_transcript_and_takes_the_first_block():
    text = "<think>a</think>\n<search> q </search> more <answer>x</answer>"
    got = protocol.parse(text, R1)
    assert got.valid and got.text == "<think>a</think>\n<search> q </search>"
    assert protocol.act_of(got.text) == ("search", "q")
    # cut at the first </search>; the first whole block of what is left counts
    got = protocol.parse("<answer>x</answer> <search>q</search>", R1)
    assert got.valid and protocol.act_of(got.text) == ("answer", "x")
    got = protocol.parse("<think>say <answer>X</answer></think><answer>Y</answer>", R1)
    assert protocol.act_of(got.text) == ("answer", "Y")
    got = protocol.parse("only words", R1)
    assert (got.text, got.valid, got.reason) == ("only words", False, "no_tags")


@given(st.text(max_size=200))
def test_parsing_never_fails_and_is_stable(text):
    for dialect in DIALECTS.values():
        action = protocol.parse(text, dialect)
        kind, inner = protocol.act_of(action.text)
        assert kind in ("search", "answer", "")
        if action.valid:
            assert kind and protocol.parse(action.text, dialect).valid
            assert protocol.act_of(protocol.parse(action.text, dialect).text) == (kind, inner)


HITS = [Hit("7", '"Röntgen"\nHe won "it".\nIn 1901.', 2.0), Hit("8", '"X"\nY', 1.0)]


def test_json_observation_is_verl_agents():
    text = protocol.observation(HITS, "json")
    inner = text.removeprefix("<information>").removesuffix("</information>")
    assert json.loads(inner) == {"result": 'Doc 1: "Röntgen"\nHe won "it".\nIn 1901.\nDoc 2: "X"\nY'}
    assert r"\u00f6" in inner and r"\n" in inner and r"\"" in inner


def test_transcript_observation_is_search_r1s():
    assert protocol.observation(HITS, "transcript") == (
        '\n\n<information>Doc 1(Title: "Röntgen") He won "it".\nIn 1901.\n'
        'Doc 2(Title: "X") Y</information>\n\n'
    )


def test_no_hits():
    assert (
        protocol.observation([], "json")
        == '<information>{"result": "No search results found."}</information>'
    )
    assert protocol.observation([], "transcript") == "\n\n<information></information>\n\n"


@pytest.mark.parametrize("form", ["json", "plain", "transcript"])
def test_documents_are_read_back_from_every_form(form):
    expected = (("Röntgen", 'He won "it".\nIn 1901.'), ("X", "Y"))
    assert protocol.documents(protocol.observation(HITS, form)) == expected
    assert protocol.documents(protocol.observation([], form)) == ()
    assert protocol.documents("") == () and protocol.documents("<information>{broken</information>") == ()


def history(n: int) -> History:
    past = tuple(PastTurn(Observation(f"o{i}"), f"<search>q{i}</search>") for i in range(n))
    return History("who?", past, Observation(f"o{n}"))


def test_sdar_prompt_holds_question_and_last_four_steps_with_absolute_numbers():  # BR-087
    (first,) = protocol.render(history(0), SDAR)
    assert "who?" in first.content and "already taken" not in first.content
    (message,) = protocol.render(history(6), SDAR)
    assert "already taken 6 step(s)" in message.content
    assert [i for i in range(7) if f"Step {i}:<search>q{i - 1}</search> o{i}\n" in message.content] == [
        3,
        4,
        5,
        6,
    ]
    assert message.role == "user" and "<search>" in message.content and "<answer>" in message.content


def test_search_r1_prompt_is_one_growing_transcript():
    (user,) = protocol.render(history(0), R1)
    assert user.content.endswith("Question: who?\n")
    (again, transcript) = protocol.render(history(2), R1)
    assert again == user and transcript.role == "assistant"
    assert transcript.content == "<search>q0</search>o1<search>q1</search>o2"
    longer = protocol.render(history(3), R1)[1].content
    assert longer.startswith(transcript.content)
    question = History(" who ", (), Observation(""))
    assert "Question: who?\n" in protocol.render(question, R1)[0].content  # stripped, one question mark


def test_limits_and_penalties_of_the_protocols():
    got = {n: (d.max_steps, d.history_length, d.invalid_penalty, d.topk) for n, d in DIALECTS.items()}
    assert got == {"sdar": (4, 4, 0.01, 3), "seed": (4, 4, 0.01, 3), "search-r1": (5, 4, 0.0, 3)}
    assert KIND.options().protocol == "sdar"


def test_prompts_and_panels_are_frozen():
    """Change these only together with a new protocol name or world: results are compared by them."""
    text = [m.content for d in (SDAR, R1) for n in (0, 2) for m in protocol.render(history(n), d)]
    assert sha256_lines(text) == "3c1c60219958346d3d7fff4541706dd3e0c38a2f584fbe7b733977251e6610ce"
    env = KIND.make(KIND.options())
    panels = {s: env.spec.details[f"split {s}"] for s in env.splits()}
    assert panels == {
        "mini-train": "2100 tasks, sha256 264fc4258e845116a6c8e497d00c17041faac3a5a90bfb507053221a5dacb35f",
        "mini-test": "350 tasks, sha256 9ba0fa931e1122c16aa4b276cbfef5279af1ab8b0ecd3091f5bdaf7eae14eeb6",
    }
    asked = sha256_lines(t.hidden.payload.question for t in env.tasks("mini-test"))
    assert asked == "f507535238d044912d5fa883d45c7428e430229900162bdaf8e952396aa03913"
