"""What every environment must hold, tried on the mini variant of each registered one."""

from __future__ import annotations

import hashlib
import os
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import get_args

import pytest

from seedbench.contracts import Environment
from seedbench.errors import EpisodeOver, SeedbenchError
from seedbench.panel import assert_disjoint, sha256_lines
from seedbench.policies.hf.actor import conditioned
from seedbench.prompt import SkillPosition
from seedbench.registry import ENVIRONMENTS
from seedbench.rollout import Job
from seedbench.rollout import play as play_jobs
from seedbench.types import (
    Action,
    Episode,
    Generation,
    History,
    Observation,
    PastTurn,
    Skill,
    Task,
    Turn,
    View,
)

NAMES = ENVIRONMENTS.names()
ROOT = Path(__file__).resolve().parents[2]
each = pytest.mark.parametrize("name", NAMES)


@lru_cache(None)
def environment(name: str) -> Environment:
    kind = ENVIRONMENTS.get(name)
    env = kind.make(kind.options())
    assert env.spec.variant == "mini"
    return env


def panel(name: str) -> list[Task]:
    return list(environment(name).tasks(ENVIRONMENTS.get(name).default_splits["mini"][1]))


def play(env: Environment, task: Task, seed: int, chooser: random.Random | None) -> Episode:
    """One episode: random choices, or the oracle if ``chooser`` is None."""
    session = env.session()
    start = session.reset(task, seed)
    episode = Episode(task.public, seed, instruction=start.instruction, last_observation=start.observation)
    over = False
    while not over:
        history = episode.history()
        text = session.oracle() if chooser is None else chooser.choice(env.choices(history))
        action = env.parse(env.wrap(text))
        result = session.step(action)
        episode.turns.append(
            Turn(
                history.observation,
                env.wrap(text),
                action.text,
                action.valid,
                effect=result.effect,
                reward=result.reward,
            )
        )
        episode.last_observation = result.observation
        over = result.terminated or result.truncated
        assert not (result.terminated and result.truncated)
    outcome = session.outcome()
    episode.success, episode.score, episode.metrics = outcome.success, outcome.score, dict(outcome.metrics)
    episode.status = "completed" if result.terminated else "step_limit"
    session.close()
    return episode


def transcript(env: Environment, episode: Episode) -> list[str]:
    lines = [episode.instruction]
    for step in range(len(episode.turns) + 1):
        history = episode.history(step)
        lines += [history.observation.text, *history.observation.legal, *env.choices(history)]
        lines += [m.content for m in env.render(history)]
    return [*lines, str(episode.success), str(episode.score), str(episode.reward)]


def digest(name: str) -> str:
    """Hash of three random episodes, with prompts and choices, and of what the environment says it is."""
    env = environment(name)
    lines = [env.spec.fingerprint]
    for task in panel(name)[:3]:
        episode = play(env, task, 7, random.Random(f"digest/{task.id}"))
        lines += [*transcript(env, episode), env.annotate(episode).text]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@lru_cache(None)
def digests_elsewhere(hash_seed: str) -> dict[str, str]:
    """Digests of all environments from a fresh process with another string hashing."""
    code = (
        "import sys; sys.path.insert(0, 'tests/contract'); import test_env_contract as t\n"
        "for n in t.NAMES: print(n, t.digest(n))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split() for line in done.stdout.splitlines())


@each
@pytest.mark.parametrize("hash_seed", ["1", "4242"])
def test_another_process_gives_the_same_bytes(name: str, hash_seed: str) -> None:
    """BR-068, BR-070: task and seed fix every text, whatever the process."""
    assert digests_elsewhere(hash_seed)[name] == digest(name)


@each
def test_tasks_are_sorted_unique_and_as_many_as_said(name: str) -> None:
    env = environment(name)
    for split, number in env.splits().items():
        ids = [task.id for task in env.tasks(split)]
        assert ids == sorted(ids) and len(set(ids)) == len(ids) == number > 0
        assert {task.public.split for task in env.tasks(split)} == {split}
        assert {task.public.group for task in env.tasks(split)} <= set(env.groups)


@each
def test_no_task_is_in_two_splits(name: str) -> None:
    env = environment(name)
    splits = list(env.splits())
    for i, one in enumerate(splits):
        for other in splits[i + 1 :]:
            assert_disjoint([t.id for t in env.tasks(one)], [t.id for t in env.tasks(other)])


@each
def test_panels_hold_tasks_of_their_split_under_a_hash(name: str) -> None:
    env = environment(name)
    split, evaluated = ENVIRONMENTS.get(name).default_splits["mini"]
    frozen = env.panel(evaluated)
    assert frozen == env.panel(evaluated) and frozen.sha256 == sha256_lines(frozen.ids)
    assert set(frozen.ids) <= {task.id for task in env.tasks(evaluated)}
    assert_disjoint([task.id for task in env.tasks(split)], frozen.ids)
    with pytest.raises(SeedbenchError, match="nonesuch"):
        env.panel("nonesuch")


@each
def test_unknown_split_is_a_clear_error(name: str) -> None:
    with pytest.raises(SeedbenchError, match="nonesuch"):
        environment(name).tasks("nonesuch")


@each
def test_the_oracle_solves_the_panel(name: str) -> None:
    env = environment(name)
    for task in panel(name)[::4]:
        episode = play(env, task, 0, None)
        assert episode.success and episode.status == "completed", task.id
        assert episode.score == 1.0
        assert all(turn.valid for turn in episode.turns)


@each
def test_random_play_ends_and_counts(name: str) -> None:
    """BR-061: reward and outcome agree; no chooser of announced actions breaks an environment."""
    env = environment(name)
    for task in panel(name)[:20]:
        episode = play(env, task, 1, random.Random(task.id))
        assert 1 <= len(episode.turns) <= env.spec.max_steps
        assert episode.score is not None and 0.0 <= episode.score <= 1.0
        assert (episode.reward > 0) == bool(episode.success)
        assert all(turn.reward == 0 for turn in episode.turns[:-1])


@each
def test_choices_are_what_the_observation_announces(name: str) -> None:
    env = environment(name)
    for task in panel(name)[:10]:
        episode = play(env, task, 2, random.Random(task.id))
        for step in range(len(episode.turns)):
            history = episode.history(step)
            choices = env.choices(history)
            assert choices and list(choices) == sorted(set(choices))
            for choice in choices:
                assert announced(choice, history.observation), (choice, history.observation.legal)
        listed = [turn for turn in episode.turns if turn.action in turn.observation.legal]
        assert all(turn.effect for turn in listed), "an announced action had no effect"


def announced(action: str, observation: Observation) -> bool:
    """Whether an action is in the list, or begins like a form of it such as ``search[<your query>]``."""
    forms = [re.split(r"<?\s*your ", x)[0] for x in observation.legal if "your " in x]
    return action in observation.legal or any(action.startswith(form.strip()) for form in forms)


@each
def test_wrapping_and_parsing_an_action_gives_it_back(name: str) -> None:
    env = environment(name)
    for task in panel(name)[:5]:
        history = History("", (), env.session().reset(task, 0).observation)
        for choice in env.choices(history):
            assert env.parse(env.wrap(choice)) == Action(choice)


@each
def test_prompts_are_a_pure_function_of_history(name: str) -> None:
    """BR-064: the first prompt shows instruction and first observation; equal histories, equal prompts."""
    env = environment(name)
    start = env.session().reset(panel(name)[0], 0)
    history = History(start.instruction, (), start.observation)
    before = env.render(history)
    play(env, panel(name)[1], 0, random.Random(0))
    assert env.render(history) == before == env.render(History(start.instruction, (), start.observation))
    assert start.instruction in "".join(m.content for m in before)


@each
def test_prompts_show_no_more_than_the_declared_history(name: str) -> None:
    env = environment(name)
    n = env.spec.history_length
    past = tuple(PastTurn(Observation(f"sight{i:03d}"), f"act{i:03d}") for i in range(n + 3))
    prompt = "".join(m.content for m in env.render(History("a task", past, Observation("now", ("look",)))))
    shown = [i for i in range(n + 3) if f"act{i:03d}" in prompt]
    assert shown == list(range(3, n + 3))


@each
def test_stepping_after_the_end_or_before_the_start_raises(name: str) -> None:
    """BR-062: nothing is added to an episode that is over, and no new task begins by itself."""
    env = environment(name)
    session = env.session()
    with pytest.raises(EpisodeOver):
        session.step(Action("look"))
    session.reset(panel(name)[0], 0)
    while True:
        result = session.step(Action(session.oracle()))
        if result.terminated or result.truncated:
            break
    outcome = session.outcome()
    with pytest.raises(EpisodeOver):
        session.step(Action("look"))
    assert session.outcome() == outcome
    assert session.reset(panel(name)[0], 0) == env.session().reset(panel(name)[0], 0)


GARBAGE = (
    "",
    "   \n",
    "x" * 100_000,
    "\u202e\u0000\ud7ff𝔘𝔫𝔦 ☃ 你好",
    "<action>",
    "</action><action></action>",
    "<action>[[[]]]</action>",
    "<think>",
    "<search></search>",
    "click[",
    "search[]",
)


@each
@pytest.mark.parametrize("completion", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_costs_steps_and_ends_by_the_limit(name: str, completion: str) -> None:
    """BR-040, BR-041: senseless output never crashes, loops or wins; it is counted as invalid."""
    env = environment(name)
    session = env.session()
    session.reset(panel(name)[0], 0)
    invalid = helpful = steps = 0
    while True:
        action = env.parse(completion)
        result = session.step(action)
        steps += 1
        invalid += not action.valid
        helpful += action.valid and result.effect
        if result.terminated or result.truncated:
            break
    assert result.truncated and steps == env.spec.max_steps
    assert helpful == 0 and not session.outcome().success
    if not completion.strip():
        assert invalid == env.spec.max_steps and env.parse(completion).reason == "empty"


@each
def test_two_sessions_share_nothing(name: str) -> None:
    """BR-075, BR-076: solving a task in one session leaves its twin where it was."""
    env = environment(name)
    task = panel(name)[0]
    solver, idler = env.session(), env.session()
    solver.reset(task, 0)
    start = idler.reset(task, 0)
    while True:
        result = solver.step(Action(solver.oracle()))
        if result.terminated or result.truncated:
            break
    assert solver.outcome().success and not idler.outcome().success
    assert idler.reset(task, 0) == start


@each
def test_threads_play_as_one_thread_does(name: str) -> None:
    """BR-073: eight sessions in threads give the transcripts of eight played in turn."""
    env = environment(name)
    tasks = panel(name)[:8]

    def run(task: Task) -> list[str]:
        return transcript(env, play(env, task, 3, random.Random(task.id)))

    alone = [run(task) for task in tasks]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, tasks)) == alone


@each
def test_the_rule_annotator_reads_only_what_was_visible(name: str) -> None:
    """The same visible episode under another id, seed and hidden score gives the same skill."""
    env = environment(name)
    for task in panel(name)[:6]:
        episode = play(env, task, 4, random.Random(task.id))
        skill = env.annotate(episode)
        assert skill.text and skill.summary and skill.source == "rules"
        episode.task = panel(name)[9].public
        episode.seed, episode.score, episode.metrics = 99, None, {}
        assert env.annotate(episode) == skill


class Reader:
    """Plays at random and keeps what a model would have been sent."""

    name, privileged, constrained = "reader", False, True

    def __init__(self, position: str) -> None:
        self.position, self.sent = position, []

    def act(self, views: Sequence[View]) -> list[Generation]:
        for view in views:
            self.sent.append("\n".join(m.content for m in conditioned(view, self.position)))
        return [Generation(random.Random(v.seed + v.history.step).choice(v.choices)) for v in views]

    def forget(self, slots: Sequence[int]) -> None:
        pass


@each
@pytest.mark.parametrize("position", get_args(SkillPosition))
def test_a_skill_is_in_every_prompt_when_there_is_one_and_in_none_otherwise(name: str, position: str) -> None:
    """BR-092: in one program an environment's prompts never held the memory that was written for them."""
    task, skill = panel(name)[0], Skill("s", "remember ZXQ-1 and go on", "bank")
    for given in (skill, None):
        reader = Reader(position)
        play_jobs(environment(name), reader, [Job(task, 3, 3, 0, given)])
        assert len(reader.sent) > 1
        assert {"ZXQ-1" in text for text in reader.sent} == {given is not None}
