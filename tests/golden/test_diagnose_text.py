"""Diagnostics without a model: reading skills, and what the oracle calls useful. Values worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seedbench.diagnose import verdict
from seedbench.diagnose.material import Item, load, random_text, shuffled
from seedbench.diagnose.text import contradicts, copied, faithful_of, lexical, read_skills, repeated
from seedbench.diagnose.useful import Judge
from seedbench.errors import DataMissing
from seedbench.rollout import derive_seed
from seedbench.store import Run
from seedbench.types import Episode, Observation, PublicTask, Skill, Turn
from tests.red_team import TRAIN, environment, write_run


def episode(success: bool = True, task: str = "t1") -> Episode:
    turns = [Turn(Observation("you see a red mug on shelf 2"), "take mug", "take mug", True)]
    return Episode(
        PublicTask(task, "train", "g"),
        seed=1,
        instruction="bring the mug",
        turns=turns,
        last_observation=Observation("you hold the red mug"),
        status="completed",
        success=success,
        score=float(success),
    )


def test_a_summary_contradicts_when_it_tells_the_other_outcome() -> None:
    assert contradicts(Skill("won after 3 steps", "x"), episode(False))
    assert contradicts(Skill("failed after 3 steps", "x"), episode(True))
    assert not contradicts(Skill("won after 3 steps", "x"), episode(True))
    assert not contradicts(Skill("the mug was found", "x"), episode(False))
    assert not contradicts(Skill("failed at first , then won", "x"), episode(False))


def test_support_copies_and_repetition_by_hand() -> None:
    e = episode()
    assert lexical(Skill("", "take the red mug"), e) == 1.0
    assert lexical(Skill("", "take blue plate"), e) == pytest.approx(1 / 3)
    assert copied(Skill("", "see a red mug"), e) == 1.0
    assert copied(Skill("", "mug red a see"), e) == 0.0
    assert repeated(Skill("", "a b c a b c")) == pytest.approx(1 - 3 / 4)
    assert repeated(Skill("", "a b")) == 0.0


def test_numbers_per_update_and_outcome() -> None:
    good, bad = Skill("won", "take the red mug"), Skill("won", "take the blue plate now")
    items = [Item(0, episode(), good), Item(3, episode(False, "t2"), bad)]

    class Plain:
        """An environment that brings no measure of its own."""

    numbers = read_skills(items, {0: (2, 1), 3: (2, 2)}, Plain())  # type: ignore[arg-type]
    assert numbers["measure"] == "words of the skill in the trajectory"
    assert numbers["parse_rate"] == 0.75 and numbers["distinct"] == 1.0
    assert [r["unsupported"] for r in numbers["by_update"]] == [0.0, pytest.approx(3 / 4)]
    assert [r["parse_rate"] for r in numbers["by_update"]] == [0.5, 1.0]
    assert numbers["by_outcome"]["failure"]["contradicts"] == 1.0
    assert numbers["overall"]["words"] == 4.5


def test_controls_cut_the_link_to_the_trajectory() -> None:
    items = [Item(0, episode(task=f"t{i}"), Skill("", f"word{i} again{i}")) for i in range(6)]
    assert all(text != item.skill.text for text, item in zip(shuffled(items, 0), items, strict=True))
    noise = random_text(items, 0)
    assert [len(t.split()) for t in noise] == [2] * 6
    assert noise == random_text(items, 0) != random_text(items, 1)


def test_the_environments_own_measure_is_preferred() -> None:
    measure, name = faithful_of(environment())
    assert name == "teach.faithful of the environment" and measure.__module__.endswith("search_qa.teach")


def test_useful_idle_and_harmful_by_the_oracle() -> None:
    env = environment()
    task = next(t for t in env.tasks(TRAIN) if t.public.group == "hotpotqa")
    judge = Judge(env, task, 0, 0)
    session = env.session()
    session.reset(task, derive_seed(0, "world", 0, task.id))
    plan: list[str] = []
    while True:
        plan.append(session.oracle())
        result = session.step(env.parse(plan[-1]))
        if result.terminated:
            break
    assert [judge.distance(plan[:k]) for k in range(len(plan) + 1)] == list(range(len(plan), -1, -1))
    assert judge.best([]) == plan[0] and judge.label([], plan[0]) == "useful"
    assert judge.label([], "<answer>surely not</answer>") == "harmful"
    turns = [Turn(Observation(""), text, text, True) for text in plan]
    assert judge.labels(Episode(task.public, 0, turns=turns)) == ["useful"] * len(plan)


def test_a_run_without_skills_says_what_to_diagnose_instead(tmp_path: Path) -> None:
    path = write_run(tmp_path / "r")
    (path / "episodes" / "train.jsonl").unlink()
    with pytest.raises(DataMissing, match="holds no hindsight skill"):
        load(Run(path), 8, 0)


def numbers() -> dict:  # type: ignore[type-arg]
    """A diagnosis without a fault."""
    condition = {"auc": 0.9, "gap_useful": 0.4, "gap_idle": 0.0, "gap_harmful": -0.3, "states": 40}
    control = {**condition, "auc": 0.5}
    gate = {
        "gate_within_state_std": 0.2,
        "gap_above_0.1": 0.4,
        "harmful_rewarded": 0.1,
        "harmful_tokens": 100,
        "gate_mean": 0.6,
        "gate_std": 0.2,
        "upweighted": 0.6,
        "upweighted_useful": 0.7,
        "tokens": 1000,
        "gap_mean": 0.1,
        "gap_std": 0.3,
    }
    texts = {"unsupported": 0.01, "contradicts": 0.0, "words": 12.0, "repeated": 0.0, "copy": 0.0}
    return {
        "subject": "seed on toy",
        "items": 64,
        "checkpoint": "u00024",
        "gate": gate,
        "support": {"states": 40, "conditions": {"own": condition, "shuffled": control, "random": control}},
        "skills": {
            "measure": "m",
            "overall": texts,
            "distinct": 0.9,
            "parse_rate": 0.95,
            "by_update": [{"update": 0, "unsupported": 0.0}, {"update": 23, "unsupported": 0.02}],
        },
        "gradients": {"cosine": 0.3},
        "warnings": [],
    }


def test_no_warning_where_nothing_is_wrong() -> None:
    assert verdict.warnings(numbers()) == []
    assert "No warning." in verdict.words(numbers())


@pytest.mark.parametrize(
    ("part", "change", "said"),
    [
        ("gate", {"gate_within_state_std": 0.004}, "gate is flat"),
        ("gate", {"gap_above_0.1": 0.02}, "hardly differs"),
        ("gate", {"harmful_rewarded": 0.8}, "rewards harm"),
        ("skills", {"distinct": 0.05}, "repeat themselves"),
    ],
)
def test_each_warning_has_its_cause(part: str, change: dict, said: str) -> None:  # type: ignore[type-arg]
    spoiled = numbers()
    spoiled[part].update(change)
    (warning,) = verdict.warnings(spoiled)
    assert said in warning


def test_support_no_better_than_the_controls_is_no_support() -> None:
    spoiled = json.loads(json.dumps(numbers()))
    spoiled["support"]["conditions"]["shuffled"]["auc"] = 0.88
    (warning,) = verdict.warnings(spoiled)
    assert "No support beyond the controls" in warning
