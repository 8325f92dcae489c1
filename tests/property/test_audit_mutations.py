"""No change of a prompt-relevant byte of a record goes unnoticed, and overlap is found exactly."""

from __future__ import annotations

from functools import lru_cache

from hypothesis import given, settings
from hypothesis import strategies as st

from seedbench.audit.overlap import SIMILAR, _rarest, similarity, triples
from seedbench.audit.prompts import action_faults, prompt_faults
from seedbench.audit.rebuild import Rebuilder, ids_sha256
from seedbench.audit.replay import replay_faults
from seedbench.policies.tiny.transcript import prompt_ids
from seedbench.records import from_record, to_record
from seedbench.types import Episode, Observation
from tests.red_team import backbone, environment, evaluation, tokenizer

REBUILDER = Rebuilder(
    "tiny", True, lambda env, history, skill: (ids_sha256(prompt_ids(tokenizer(), history, skill)),)
)


@lru_cache(None)
def played() -> tuple[dict, ...]:  # type: ignore[type-arg]
    tasks = environment().tasks("mini-test")[:6]
    return tuple(to_record(e, "eval", 1) for e in evaluation(environment(), backbone().actor(1.0), tasks))


def faults(episode: Episode) -> list[str]:
    env = environment()
    task = next(t for t in env.tasks("mini-test") if t.id == episode.task.id)
    found = [*prompt_faults(env, REBUILDER, episode), *action_faults(env, episode)]
    return [*found, *replay_faults(env, task, episode)]


def changed(text: str, data: st.DataObject) -> str:
    """``text`` with one character replaced, dropped or put in."""
    place = data.draw(st.integers(0, len(text)))
    new = data.draw(st.characters(exclude_categories=["Cs"]))
    kind = data.draw(st.sampled_from(["replace", "drop", "insert"]))
    if kind == "insert" or place == len(text):
        return text[:place] + new + text[place:]
    return text[:place] + ("" if kind == "drop" else new) + text[place + 1 :]


def test_untouched_records_have_no_fault() -> None:
    assert [f for r in played() for f in faults(from_record(r))] == []


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_changed_byte_is_noticed(data: st.DataObject) -> None:
    episode = from_record(data.draw(st.sampled_from(played())))
    turn = data.draw(st.sampled_from(episode.turns))
    part = data.draw(st.sampled_from(["instruction", "text", "legal", "action", "hash", "last", "order"]))
    before = to_record(episode, "eval", 1)
    seen = turn.observation
    if part == "instruction":
        episode.instruction = changed(episode.instruction, data)
    elif part == "text":
        turn.observation = Observation(changed(seen.text, data), seen.legal)
    elif part == "legal" and seen.legal:
        i = data.draw(st.integers(0, len(seen.legal) - 1))
        turn.observation = Observation(
            seen.text, (*seen.legal[:i], changed(seen.legal[i], data), *seen.legal[i + 1 :])
        )
    elif part == "action":
        turn.action = changed(turn.action, data)
    elif part == "hash":
        turn.prompt_sha256 = changed(turn.prompt_sha256, data)
    elif part == "last":
        episode.last_observation = Observation(changed(episode.last_observation.text, data))
    elif part == "order":
        episode.turns.reverse()
    if to_record(episode, "eval", 1) != before:
        assert faults(episode), part


words = st.lists(st.sampled_from("a b c d e f".split()), min_size=3, max_size=40).map(" ".join)


@given(one=words, other=words)
def test_the_prefix_filter_loses_no_near_duplicate(one: str, other: str) -> None:
    a, b = triples(one), triples(other)
    if similarity(a, b) >= SIMILAR:
        assert set(_rarest(b, {g: 1 for g in b})) & a


def test_similarity_ignores_case_and_punctuation_only() -> None:
    assert similarity(triples("Put a Mug, in the sink."), triples("put a mug in the sink")) == 1.0
    assert similarity(triples("put a mug in the sink"), triples("put a cup in the sink")) < SIMILAR
