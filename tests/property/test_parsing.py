"""Reading actions and analyses out of completions: the published corner cases, and properties of any text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbench.parsing import parse_tagged, strip_reasoning, tag_counts
from seedbench.train.skills import parse_analysis, to_analysis
from seedbench.types import Action, Skill


def parse(text: str, think: bool = False) -> Action:
    return parse_tagged(text, fallback_chars=30, require_think=think)


def test_the_plain_form() -> None:
    assert parse("<think>why</think><action> Go To Desk 1 </action>", True) == Action("go to desk 1")
    assert parse("<ACTION>look</ACTION>") == Action("look")


def test_tags_quoted_in_the_reasoning_do_not_count() -> None:
    """BR-034: reasoning first removed; a stray quote in it changes nothing."""
    quoted = '<think>I must write <action>X</action> "</think><action>open box 2</action>'
    assert parse(quoted, True) == Action("open box 2")
    assert strip_reasoning("<think>I must write <answer>X</answer></think><answer>Paris</answer>") == (
        "<answer>Paris</answer>"
    )


def test_a_closing_tag_without_an_opening_one_ends_prefilled_reasoning() -> None:
    """BR-082: the opening tag belonged to the generation prompt."""
    assert strip_reasoning("r</think>ans") == "ans"
    assert parse("maybe <action>x</action></think><action>look</action>") == Action("look")


def test_duplicated_tags_are_not_well_formed() -> None:
    """BR-035, BR-036, BR-038: the first action is what is executed, the format is broken, the count is there."""
    twice = parse("<action>go north</action><action>go south</action>")
    assert twice == Action("go north", False, "too_many_actions")
    assert tag_counts("<think>a</think><think>b</think><answer>1</answer>", "think", "answer") == {
        "think": 2,
        "answer": 1,
    }
    glued = "<think>a</think><action>1</action>" * 2
    assert not parse(glued, True).valid


def test_two_reasoning_blocks_are_not_well_formed() -> None:
    """BR-035: exactly one block of each is asked for where reasoning is required."""
    assert not parse("<think>a</think><think>b</think><action>look</action>", True).valid


def test_unclosed_reasoning_gives_no_action() -> None:
    """BR-037: cut in the middle of thinking: nothing after it can have been meant as an action."""
    got = parse("<think>first I would <action>open box 1</action> but", True)
    assert not got.valid


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_empty_output_is_named(text: str) -> None:
    """BR-040."""
    assert parse(text) == Action("", False, "empty")


@pytest.mark.parametrize(
    "text", ["<action></action>", "<action>   </action>", "<think>x</think><action></action>"]
)
def test_an_empty_action_is_named(text: str) -> None:
    assert parse(text) == Action("", False, "empty")


@pytest.mark.parametrize("text", ["look", "<action>look", "look</action>", "</action>look<action>"])
def test_missing_tags_send_the_tail_on_and_are_invalid(text: str) -> None:
    """Methods page 4: the last characters are executed, as the papers do, and the step is invalid."""
    got = parse(text)
    assert (got.text, got.valid, got.reason) == (text.lower()[-30:], False, "no_tags")


def test_missing_reasoning_and_cjk_are_named() -> None:
    assert parse("<action>look</action>", True) == Action("look", False, "no_think")
    assert parse("<think>x</think><action>look \u4e2d</action>", True).reason == "cjk"


@given(st.text(max_size=200), st.integers(1, 40), st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_text_gives_an_action_and_a_reason_when_invalid(text: str, tail: int, think: bool) -> None:
    got = parse_tagged(text, fallback_chars=tail, require_think=think)
    assert got.valid == (got.reason == "")
    if got.reason == "no_tags":
        assert len(got.text) <= tail
    if got.valid:
        assert got.text
        assert got.text == got.text.strip().lower()


PIECES = [
    "<think>",
    "</think>",
    "<action>",
    "</action>",
    "<Think>",
    "look",
    "open box 1",
    " ",
    "\n",
    '"',
    "\ud835",
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@settings(max_examples=300, deadline=None)
def test_tag_soup_never_puts_a_tag_into_a_valid_action(text: str) -> None:
    got = parse(text, True)
    if got.valid:
        assert "<action>" not in got.text
        assert "</action>" not in got.text
        assert "</think>" not in got.text
        assert text.lower().count("<action>") >= 1


def test_a_very_long_completion_is_parsed_quickly() -> None:
    """100 kB of opening tags must not backtrack for minutes."""
    assert not parse("<think>" * 20_000).valid
    assert parse("<think>" + "x" * 200_000 + "</think><action>look</action>", True) == Action("look")


# -- analyses ------------------------------------------------------------------------------------------------
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)


@given(TEXT, st.lists(TEXT, min_size=3, max_size=8))
@settings(max_examples=150, deadline=None)
def test_a_written_analysis_reads_back(summary: str, words: list[str]) -> None:
    text = " ".join(w.strip() or "x" for w in words)
    skill = Skill(summary.strip(), text.strip(), "self")
    found = parse_analysis(to_analysis(skill), "self")
    if len(skill.text.split()) >= 3:
        assert found == skill
    else:
        assert found is None


def test_prose_and_fences_around_an_analysis_do_no_harm() -> None:
    body = json.dumps({"episode_summary": "s", "episode_skill": "open the second box"})
    for text in (body, f"Here it is:\n```json\n{body}\n```", f"{body} and then some {{more}}"):
        assert parse_analysis(text, "x") == Skill("s", "open the second box", "x")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "{",
        '{"episode_summary": "s"}',
        '{"episode_summary": "s", "episode_skill": ""}',
        '{"episode_summary": "s", "episode_skill": "too short"}',
        '{"episode_summary": "s", "episode_skill": null}',
        '{"episode_summary": "s", "episode_skill": "None"}',
        '{"episode_summary": 3, "episode_skill": "open the second box"}',
        '["episode_summary", "episode_skill"]',
        '{"episode_summary": "s", "episode_skill": "cut in the midd',
        '{"a": ' * 5000,
    ],
)
def test_a_broken_or_empty_analysis_is_no_skill(text: str) -> None:
    """2.6: no distillation term, never the word "None" in a prompt (BR-089)."""
    assert parse_analysis(text, "self") is None


@given(st.text(max_size=120))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_skill_or_none(text: str) -> None:
    found = parse_analysis(text, "self")
    assert found is None or len(found.text.split()) >= 3
