"""The generated shop: solvable, reproducible, held out, small enough to read, and teachable."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seedbench.envs.webshop import lexicon, mini, teach
from seedbench.envs.webshop.env import Options, WebShop
from seedbench.envs.webshop.panels import official_ranges

from seedbench.errors import EpisodeOver
from seedbench.search.analysis import terms
from seedbench.types import Action, Episode, History, PastTurn, Skill, Turn


@pytest.fixture(scope="module")
def env() -> WebShop:
    return WebShop(Options())


def play(env: WebShop, task, say, seed: int = 0) -> Episode:
    """One episode of ``say(history, session)``; every action must be a choice that parses to itself."""
    session = env.session()
    start = session.reset(task, seed)
    episode = Episode(task.public, seed, instruction=start.instruction, last_observation=start.observation)
    over = False
    while not over:
        past = tuple(PastTurn(t.observation, t.action) for t in episode.turns)
        history = History(start.instruction, past, episode.last_observation)
        text = say(history, session)
        assert text in env.choices(history)
        action = env.parse(env.wrap(text))
        assert action == Action(text)
        result = session.step(action)
        episode.turns.append(
            Turn(history.observation, "", text, True, effect=result.effect, reward=result.reward)
        )
        episode.last_observation = result.observation
        over = result.terminated or result.truncated
    outcome = session.outcome()
    episode.success, episode.score = outcome.success, outcome.score
    return episode


def test_oracle_reaches_1_on_every_goal_through_offered_choices(env):
    """BR-108: the oracle scores 1.0 on every goal and is paid once; doing nothing scores 0."""
    for split, step in (("mini-train", 5), ("mini-dev", 1), ("mini-test", 1)):
        for task in env.tasks(split)[::step]:
            episode = play(env, task, lambda history, session: session.oracle())
            assert episode.success and episode.score == 1.0 and episode.reward == 10.0


def test_buying_nothing_scores_0(env):
    session = env.session()
    session.reset(env.tasks("mini-test")[0], 0)
    for i in range(15):
        result = session.step(Action(""))
        assert not result.effect and result.truncated == (i == 14)
    assert session.outcome().score == 0.0 and not session.outcome().success
    with pytest.raises(EpisodeOver):
        session.step(Action("search[x]"))


@pytest.mark.parametrize("seed", [1, 2])
def test_other_catalogues_are_solvable_too(seed):
    env = WebShop(Options(catalogue_seed=seed, products=300))
    for task in env.tasks("mini-test")[::10]:
        assert play(env, task, lambda history, session: session.oracle()).success


def test_splits_share_no_product_and_no_instruction(env):
    world = env.world
    parts = {s: [world.goals[i] for i in world.splits[s]] for s in mini.SPLITS}
    assert env.splits() == dict(mini.SPLITS)
    for a, b in combinations(parts, 2):
        assert not {g.asin for g in parts[a]} & {g.asin for g in parts[b]}
    texts = [g.instruction for g in world.goals]
    assert len(parts["mini-test"]) == len({g.instruction for g in parts["mini-test"]})
    assert len({t.id for s in mini.SPLITS for t in env.tasks(s)}) == len(texts)
    ids = [t.id for t in env.tasks("mini-train")]
    assert ids == sorted(ids)


def test_catalogue_size_and_departments(env):
    assert len(lexicon.DEPARTMENTS) >= 12 and set(env.groups) == {d.name for d in lexicon.DEPARTMENTS}
    assert len(env.world.shop.products) == 1000
    assert {t.public.group for t in env.tasks("mini-test")} == set(env.groups)


def test_words_are_distinct_words():
    words = {w for d in lexicon.DEPARTMENTS for w in (*d.nouns, *d.attributes, *d.choice[1])}
    words |= set(lexicon.COLOURS)
    for d in lexicon.DEPARTMENTS:
        for attribute in d.attributes:
            assert not any(attribute in w for w in words - {attribute})
    stems = [tuple(terms(w)) for w in sorted(words)]
    assert len(set(stems)) == len(stems)


def test_observations_are_small(env):
    for task in env.tasks("mini-test")[::4]:
        episode = play(env, task, lambda history, session: session.oracle())
        for turn in episode.turns:
            words = turn.observation.text.replace(" . ", " ").split()
            assert len(words) <= (40 if words[0] == "page" else 30)


def test_sub_pages_lead_back_and_do_not_sell(env):
    """BR-067: a description page offers the way back and no purchase; buying there is a wasted step."""
    session = env.session()
    session.reset(env.tasks("mini-test")[0], 0)
    session.step(Action(session.oracle()))
    session.step(Action("click[item 1]"))
    page = session.step(Action("click[description]"))
    assert page.observation.legal == ("click[back to search]", "click[< prev]")
    bought = session.step(Action("click[buy now]"))
    assert not bought.effect and not bought.terminated and bought.reward == 0
    item = session.step(Action("click[< prev]"))
    assert "click[buy now]" in item.observation.legal


def test_same_bytes_in_another_process_and_hash_seed(env):
    code = (
        "from seedbench.envs.webshop.env import *\n"
        "e = WebShop(Options())\n"
        "s = e.session(); t = e.tasks('mini-test')[7]; x = s.reset(t, 3)\n"
        "r = s.step(Action(s.oracle()))\n"
        "print(e.spec.fingerprint, x.instruction, r.observation.text)"
    )
    out = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        ).stdout
        for seed in ("0", "1")
    }  # fmt: skip
    assert len(out) == 1
    assert env.spec.fingerprint in out.pop()


def test_global_random_state_is_left_alone():
    random.seed(5)
    before = random.getstate()
    env = WebShop(Options(catalogue_seed=77, products=200))
    play(env, env.tasks("mini-train")[0], lambda history, session: session.oracle())
    assert random.getstate() == before


def test_record_names_catalogue_size_goals_and_nouns(env):
    """BR-105: another catalogue size is another fingerprint, and the record tells it."""
    small = WebShop(Options(products=300))
    assert env.spec.details["products"] == "1000" and small.spec.details["products"] == "300"
    assert env.spec.details["goal_count"] == "2400" and env.spec.details["nouns"] == "lexicon"
    prints = {
        env.spec.fingerprint, small.spec.fingerprint, WebShop(Options(protocol="sdar")).spec.fingerprint,
        WebShop(Options(require_think=False)).spec.fingerprint,
    }  # fmt: skip
    assert len(prints) == 4


def test_workers_with_other_seeds_have_the_same_goals(env):
    """BR-100: a goal belongs to its id, whatever seed an episode has."""
    task = env.tasks("mini-test")[3]
    starts = [WebShop(Options()).session().reset(task, seed) for seed in (0, 1, 2**40)]
    assert len({s.instruction for s in starts}) == 1


def test_official_ranges():
    """BR-099: 2,000 goals are 500 + 1,000 + 500, and 13 goals are a test split only."""
    ranges = official_ranges(2000)
    assert {k: len(r) for k, r in ranges.items()} == {"test": 500, "dev": 1000, "train": 500}
    for a, b in combinations(ranges.values(), 2):
        assert not set(a) & set(b)
    assert {k: len(r) for k, r in official_ranges(13).items()} == {"test": 13}


def test_sessions_do_not_meet(env):
    a, b = env.session(), env.session()
    tasks = env.tasks("mini-test")
    a.reset(tasks[0], 0)
    alone = [a.step(Action(a.oracle())) for _ in range(4)]
    a.reset(tasks[0], 0)
    b.reset(tasks[1], 0)
    mixed = []
    for _ in range(4):
        mixed.append(a.step(Action(a.oracle())))
        b.step(Action(b.oracle()))
    assert alone == mixed


# --- teaching material -----------------------------------------------------------------------------------


def demonstrate(env, tasks, flaws, skills=None) -> list[Episode]:
    out = []
    for i, task in enumerate(tasks):
        actor = teach.Demonstrator(flaws, i)
        skill = skills[i] if skills else None
        out.append(play(env, task, lambda h, s, actor=actor, skill=skill: actor.act(h, skill), i))
    return out


def rate(episodes: list[Episode]) -> float:
    return sum(bool(e.success) for e in episodes) / len(episodes)


@pytest.fixture(scope="module")
def attempts():
    env = WebShop(Options(catalogue_seed=3))
    tasks = env.tasks("mini-train")[:250]
    return env, tasks, demonstrate(env, tasks, teach.FLAWED)


def test_demonstrator_clean_and_flawed(attempts):
    env, tasks, flawed = attempts
    assert rate(demonstrate(env, tasks[:120], teach.CLEAN)) > 0.85
    assert 0.25 < rate(flawed) < 0.5


def test_right_skills_help_and_wrong_ones_change_nothing(attempts):
    env, tasks, flawed = attempts
    skills = [teach.annotate(e) for e in flawed]
    assert rate(demonstrate(env, tasks, teach.FLAWED, skills)) > rate(flawed) + 0.2
    others = skills[7:] + skills[:7]
    misled = demonstrate(env, tasks, teach.FLAWED, others)
    assert [e.turns for e in misled] == [e.turns for e in flawed]


def test_skills_are_short_faithful_and_of_known_words(attempts):
    env, _, flawed = attempts
    known = set(teach.words()) | {"item"}
    for e in flawed:
        skill = env.annotate(e)
        assert 3 <= len(skill.text.split()) <= 25 and skill.source == "rules"
        assert teach.faithful(skill, e) == 1.0
        assert {w for w in skill.text.split() if w.isalpha()} <= known
    made_up = Skill("", "search frozen unicorn then open item 4 then buy")
    assert teach.faithful(made_up, flawed[0]) < 0.5


def test_annotation_reads_the_visible_trajectory_only(attempts):
    _, _, flawed = attempts
    e = flawed[0]
    same = Episode(e.task, e.seed + 1, instruction=e.instruction, turns=e.turns)
    same.last_observation, same.success = e.last_observation, e.success
    assert teach.annotate(same) == teach.annotate(e)


@given(st.text(max_size=80), st.text(max_size=80))
@settings(max_examples=100, deadline=None)
def test_demonstrator_and_annotator_survive_any_text(instruction, observation):
    from seedbench.types import Observation, PublicTask

    seen = Observation(observation, ("click[buy now]",))
    history = History(instruction, (PastTurn(seen, observation),), seen)
    assert teach.Demonstrator().act(history, observation) == "click[buy now]"
    e = Episode(PublicTask("x", "s", "g"), 0, instruction=instruction, last_observation=seen, success=False)
    e.turns.append(Turn(seen, "", observation, True))
    assert teach.annotate(e).text
