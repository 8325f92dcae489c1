"""Episode -> record -> JSON -> record -> Episode loses nothing."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbench.errors import DataCorrupt
from seedbench.records import canonical_json, from_record, to_record
from seedbench.types import Episode, Observation, PublicTask, Skill, Turn

# Lone surrogates included; a high one directly before a low one is the character itself in JSON.
text = st.text(st.characters(codec=None, exclude_categories=[]), max_size=12).map(
    lambda s: s.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)
numbers = st.floats(allow_nan=False) | st.integers(-(10**6), 10**6)
skills = st.none() | st.builds(Skill, text, text, text)
actions = st.lists(
    st.sampled_from([f"go to {i}" for i in range(6)] + ["", "\u0000", "\ud835", "😀"]), max_size=8
)
observations = st.builds(Observation, text, actions.map(tuple))
turns = st.builds(
    Turn,
    observation=observations,
    completion=text,
    action=text,
    valid=st.booleans(),
    reason=text,
    effect=st.booleans(),
    reward=numbers,
    prompt_sha256=text,
    prompt_tokens=st.integers(0, 9999),
    new_tokens=st.integers(0, 9999),
    logprob=st.none() | st.floats(-50, 0).map(lambda x: round(x, 6)) | st.just(-math.inf),
)
episodes = st.builds(
    Episode,
    task=st.builds(PublicTask, text, text, text),
    seed=st.integers(0, 2**63),
    repeat=st.integers(0, 9),
    instruction=text,
    turns=st.lists(turns, max_size=5),
    last_observation=observations,
    status=st.sampled_from(["completed", "step_limit", "env_error", "interrupted"]),
    success=st.none() | st.booleans(),
    score=st.none() | numbers,
    metrics=st.dictionaries(text, numbers, max_size=3),
    error=text,
    acting_skill=skills,
    hindsight=skills,
    seconds=st.floats(0, 1e6),
)


@settings(max_examples=80, deadline=None)
@given(episodes)
def test_round_trip_is_lossless(episode: Episode) -> None:
    line = canonical_json(to_record(episode, "eval", 3))
    assert line.isascii() and "\n" not in line
    assert from_record(json.loads(line)) == episode


@settings(max_examples=60, deadline=None)
@given(st.lists(actions, min_size=2, max_size=6))
def test_legal_lists_come_back_in_their_order(lists: list[list[str]]) -> None:
    made = [Turn(Observation("o", tuple(legal)), "", "", True) for legal in lists]
    episode = Episode(PublicTask("t", "s", "g"), 0, turns=made)
    back = from_record(to_record(episode, "train", 0))
    assert [t.observation.legal for t in back.turns] == [tuple(x) for x in lists]


def test_small_changes_of_the_legal_list_are_stored_as_changes() -> None:
    before = tuple(f"go to shelf {i}" for i in range(30))
    after = (*before[:4], "open shelf 4", *before[5:])
    made = [Turn(Observation("a", before), "", "", True), Turn(Observation("b", after), "", "", True)]
    record = to_record(Episode(PublicTask("t", "s", "g"), 0, turns=made), "train", 0)
    assert record["turns"][1]["legal"] == {"-": [4], "+": [[4, "open shelf 4"]]}
    assert from_record(record).turns[1].observation.legal == after


def test_policy_traces_are_not_stored() -> None:
    made = [Turn(Observation("a"), "", "", True, trace={"secret": "canary"})]
    record = to_record(Episode(PublicTask("t", "s", "g"), 0, turns=made), "train", 0)
    assert "canary" not in canonical_json(record)


def test_numbers_that_json_lacks_survive() -> None:
    episode = Episode(PublicTask("t", "s", "g"), 0, metrics={"a": math.nan, "b": math.inf})
    back = from_record(json.loads(canonical_json(to_record(episode, "eval", 0))))
    assert math.isnan(back.metrics["a"]) and back.metrics["b"] == math.inf


@pytest.mark.parametrize("damage", [{"schema": 99}, {"turns": [{}]}, {"task": {"id": "x"}}, {"last": None}])
def test_malformed_records_are_refused(damage: dict) -> None:
    record = to_record(Episode(PublicTask("t", "s", "g"), 0), "eval", 0) | damage
    with pytest.raises(DataCorrupt):
        from_record(record)
