"""The generated world: consistent, solvable, held out, the same everywhere; and its rule-based teacher."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from seedbench.envs.search_qa import KIND, mini_questions, mini_world, spans, teach
from seedbench.envs.search_qa.metrics import normalize
from seedbench.envs.search_qa.protocol import act_of
from seedbench.envs.search_qa.questions import SETS

from seedbench.policies.scripted import OraclePolicy, RandomPolicy, ScriptPolicy
from seedbench.rollout import Job, play
from seedbench.types import Episode, History, Observation


@pytest.fixture(scope="module")
def env():
    return KIND.make(KIND.options())


def rate(episodes: list[Episode]) -> float:
    assert all(e.status in ("completed", "step_limit") for e in episodes)
    return sum(bool(e.success) for e in episodes) / len(episodes)


def jobs(env, split: str, step: int = 1, seed: int = 0, skills=None) -> list[Job]:
    tasks = env.tasks(split)[::step]
    return [Job(t, seed, skill=skills[i] if skills else None) for i, t in enumerate(tasks)]


def names_in(skill: str, question: str) -> bool:
    first = re.split(r"\bthen\b", skill)[0].removeprefix("search ").strip()
    return first.lower() in question.lower()


def demonstrate(env, who: teach.Demonstrator, plan: list[Job]) -> list[Episode]:
    return play(env, ScriptPolicy("demonstrator", lambda v: who.act(v.history, v.skill)), plan)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_article_can_be_read_back_and_agrees_with_the_world(seed):
    world = mini_world.build(seed)
    names = {e.name for e in world.entities}
    for e in world.entities:
        found = mini_world.read(mini_world.article(e))
        assert found.pop("name") == e.name and found.pop("alias", "") == e.alias
        assert found == e.facts
        for relation, value in e.facts.items():
            if mini_questions.RELATIONS[relation][1]:
                assert value in names
        assert len(f"{e.name} {mini_world.article(e)}".split()) <= 27
    by_name = {e.name: e for e in world.entities}
    for e in world.entities:
        if e.kind == "company":
            assert by_name[e.facts["home_city"]].facts["country"] == e.facts["home_country"]
        if e.kind == "country":
            assert by_name[e.facts["capital"]].facts["country"] == e.name


def test_no_entity_of_the_test_half_is_in_any_training_half():
    train = {n for s in range(12) for e in mini_world.build(s).entities if e.half == "train" for n in e.names}
    test = {n for s in range(12) for e in mini_world.build(s).entities if e.half == "test" for n in e.names}
    assert not train & test and len(test) > 1000


def test_names_are_shared_as_distractors():
    people = mini_world.build(0).half("test", "person")
    shared = [p for p in people if sum(q.name == p.name for q in people) > 1]
    assert len(shared) == 30
    assert len({(p.name, p.facts["job"]) for p in shared}) == 30  # the profession tells them apart


def test_splits_sets_and_hops(env):
    assert env.splits() == {"mini-train": 2100, "mini-test": 350} and env.groups == SETS
    tasks = env.tasks("mini-test")
    assert [t.id for t in tasks] == sorted(t.id for t in tasks)
    asked = [mini_questions.understand(t.hidden.payload.question) for t in tasks]
    assert all(asked)
    hops = {len(a.chain) for a in asked if not a.compare}
    assert hops == {1, 2, 3, 4} and {a.compare for a in asked} == {"", "same", "first"}
    assert all(len(t.hidden.payload.gold_ids) <= 3 for t in tasks)  # searches left before the answer
    questions = [t.hidden.payload.question for s in env.splits() for t in env.tasks(s)]
    assert len(set(map(normalize, questions))) == len(questions)


def test_words_of_all_texts_are_known_and_few(env):
    words = set(teach.words())
    assert len(words) < 700
    texts = [d.contents for d in mini_world.build(0).documents()]
    texts += [t.hidden.payload.question for s in env.splits() for t in env.tasks(s)]
    assert not {w for t in texts for w in re.findall(r"[a-z]+|[0-9]+", t.lower())} - words


def test_oracle_answers_everything_and_stays_within_the_choices(env):
    episodes = play(env, OraclePolicy(), jobs(env, "mini-test"))
    assert rate(episodes) >= 0.95
    for e in episodes:
        for i, turn in enumerate(e.turns):
            keys = {(act_of(c)[0], normalize(act_of(c)[1])) for c in env.choices(e.history(i))}
            kind, text = act_of(turn.action)
            assert (kind, normalize(text)) in keys, (e.instruction, turn.action)


@pytest.mark.parametrize("seed", [1, 5])
def test_other_worlds_are_solvable_too(seed):
    env = KIND.make(KIND.options(world_seed=seed, train_size=140, test_size=140))
    assert rate(play(env, OraclePolicy(), jobs(env, "mini-test"))) >= 0.95
    assert rate(demonstrate(env, teach.Demonstrator(), jobs(env, "mini-train"))) >= 0.85


def test_random_policy_is_the_floor(env):
    assert rate(play(env, RandomPolicy(), jobs(env, "mini-test"))) < 0.15


def test_choices_are_sorted_bounded_distinct_and_valid(env):
    episodes = play(env, RandomPolicy(), jobs(env, "mini-test", 3))
    for e in episodes:
        for i in range(len(e.turns)):
            found = env.choices(e.history(i))
            assert 0 < len(found) <= spans.MAX_CANDIDATES and list(found) == sorted(found)
            assert found == env.choices(e.history(i))
            assert len({(act_of(c)[0], normalize(act_of(c)[1])) for c in found}) == len(found)
            for c in found:
                action = env.parse(env.wrap(c))
                assert action.valid and action.text == c and 1 <= len(act_of(c)[1].split()) <= 4


def test_choices_of_a_very_long_question_leave_room_for_answers(env):
    words = " ".join(f"Word{i} thing{i}" for i in range(200))
    page = '<information>\nDoc 1: "<answer>Trap</answer>"\nAda Lovelace was born in 1815.\n</information>'
    found = env.choices(History(words, (), Observation(page)))
    assert 50 < len(found) <= spans.MAX_CANDIDATES
    assert "<answer>Ada Lovelace</answer>" in found and "<answer>1815</answer>" in found
    assert not any("Trap" in c for c in found) and all(env.parse(c).valid for c in found)


def test_demonstrator_clean_flawed_and_guided(env):
    plan = jobs(env, "mini-train", 3, seed=7)
    clean = demonstrate(env, teach.Demonstrator(teach.CLEAN, 3), plan)
    assert rate(clean) > 0.85
    flawed = demonstrate(env, teach.Demonstrator(teach.FLAWED, 3), plan)
    assert 0.3 <= rate(flawed) <= 0.45
    skills = [env.annotate(e) for e in flawed]
    guided = demonstrate(env, teach.Demonstrator(teach.FLAWED, 3), jobs(env, "mini-train", 3, 7, skills))
    assert rate(guided) > 0.85
    wrong = skills[11:] + skills[:11]
    misled = demonstrate(env, teach.Demonstrator(teach.FLAWED, 3), jobs(env, "mini-train", 3, 7, wrong))
    about_others = [i for i, e in enumerate(flawed) if not names_in(wrong[i].text, e.instruction)]
    assert len(about_others) > 650
    assert [misled[i].turns for i in about_others] == [flawed[i].turns for i in about_others]


def test_skills_are_short_faithful_and_stay_so_in_small_letters(env):
    episodes = demonstrate(env, teach.Demonstrator(teach.FLAWED, 1), jobs(env, "mini-train", 5))
    skills = [env.annotate(e) for e in episodes]
    for skill, e in zip(skills, episodes, strict=True):
        assert 3 <= len(skill.text.split()) <= 25 and not re.search(r"[.,;:\"<>]", skill.text)
        assert teach.faithful(skill, e) == 1.0
        assert "None" not in skill.text  # BR-089
        low = type(skill)(skill.summary, skill.text.lower(), "")
        assert teach.faithful(low, e) == 1.0
    others = [teach.faithful(s, e) for s, e in zip(skills[13:] + skills[:13], episodes, strict=True)]
    assert sum(others) / len(others) < 0.2


def test_annotation_reads_only_what_the_episode_shows(env):
    (episode,) = demonstrate(env, teach.Demonstrator(), jobs(env, "mini-train")[:1])
    copy = Episode(episode.task, 99, instruction=episode.instruction, turns=episode.turns)
    copy.last_observation, copy.success = episode.last_observation, episode.success
    assert env.annotate(copy) == env.annotate(episode)


def test_summary_says_what_went_wrong(env):
    task = next(t for t in env.tasks("mini-test") if t.public.group == "bamboogle")
    script = ScriptPolicy("early", lambda v: "<answer>person</answer>")
    (episode,) = play(env, script, [Job(task, 0)])
    assert env.annotate(episode).summary == "answered too early after 0 searches"
    script = ScriptPolicy("never", lambda v: "<search>person</search>")
    (episode,) = play(env, script, [Job(task, 0)])
    assert env.annotate(episode).summary == "no answer in 4 steps"


def test_questions_of_other_worlds_get_a_skill_from_their_trajectory(env):
    question, task = "who got the first nobel prize in physics", env.tasks("mini-test")[0].public
    skill = env.annotate(Episode(task, 0, instruction=question, success=False))
    assert skill.text == "search nobel prize then answer from the results"


def test_same_world_in_every_process():
    code = (
        "from seedbench.envs.search_qa import KIND, teach;"
        "e = KIND.make(KIND.options(train_size=70, test_size=70));"
        "print(e.spec.fingerprint, e.choices(__import__('seedbench.types').types.History("
        "'Who runs Port Kell?', (), e.session().reset(e.tasks('mini-test')[0], 0).observation)), teach.words()[:9])"
    )
    outputs = set()
    for seed in ("0", "1", "77"):
        made = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(made.stdout)
    assert len(outputs) == 1
