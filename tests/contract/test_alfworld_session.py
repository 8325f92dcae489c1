"""Sessions of ALFWorld: success, effect, limits, dialects, oracle, panels."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from seedbench.envs.alfworld import KIND
from seedbench.envs.alfworld.engine import NOTHING
from seedbench.envs.alfworld.env import AlfWorld
from seedbench.envs.alfworld.game import FAMILIES
from seedbench.envs.alfworld.panels import OFFICIAL

from seedbench.errors import EpisodeOver
from seedbench.panel import assert_disjoint, group_counts, sha256_lines
from seedbench.types import Action, StepResult, Task


def make(**options: object) -> AlfWorld:
    return KIND.make(KIND.options(**options))


def task(env: AlfWorld, number: int = 0, split: str = "mini-train") -> Task:
    return env.tasks(split)[number]


@pytest.mark.parametrize(("protocol", "limit"), [("seed", 30), ("sdar", 50)])
def test_the_step_limit_is_no_success(protocol: str, limit: int) -> None:
    """BR-001: done is not won. An episode cut at the limit has success False and reward 0."""
    env = make(protocol=protocol)
    session = env.session()
    session.reset(task(env), 0)
    results = [session.step(Action("look")) for _ in range(limit)]
    assert [r.truncated for r in results] == [False] * (limit - 1) + [True]
    assert not any(r.terminated or r.reward for r in results)
    assert not session.outcome().success and session.outcome().score == 0.0
    with pytest.raises(EpisodeOver):
        session.step(Action("look"))


def test_the_reward_comes_once_with_the_winning_step() -> None:
    """BR-060, BR-061."""
    env = make()
    session = env.session()
    for number in range(6):
        session.reset(task(env, number), 0)
        results: list[StepResult] = []
        while not (results and results[-1].terminated):
            results.append(session.step(Action(session.oracle())))
        assert [r.reward for r in results] == [0.0] * (len(results) - 1) + [10.0]
        assert session.outcome().success and session.outcome().score == 1.0


def test_winning_with_the_last_step_is_a_win() -> None:
    env = make()
    session = env.session()
    session.reset(task(env, 1), 0)
    plan: list[str] = []
    while True:
        plan.append(session.oracle())
        if session.step(Action(plan[-1])).terminated:
            break
    session.reset(task(env, 1), 0)
    for _ in range(env.spec.max_steps - len(plan)):
        session.step(Action("look"))
    last = [session.step(Action(command)) for command in plan][-1]
    assert last.terminated and not last.truncated and session.outcome().success


def test_effect_is_decided_by_the_admissible_list() -> None:
    """BR-066: of two receptacles at one place, going to the other has no effect, though it is well-formed."""
    env = make(size="large")
    for candidate in env.tasks("mini-seen"):
        game = env.game(candidate)
        shared = next((group for group in game.receptacles_at if len(group) > 1), None)
        if shared:
            break
    assert shared
    one, other = (game.receptacles[r] for r in shared[:2])
    session = env.session()
    session.reset(candidate, 0)
    arrived = session.step(Action(f"go to {one}"))
    assert arrived.effect and arrived.observation.text.startswith(f"You arrive at {one}. ")
    again = session.step(Action(f"go to {other}"))
    assert not again.effect and again.observation.text == NOTHING
    assert f"examine {other}" in again.observation.legal
    assert session.step(Action(f"examine {other}")).effect


@pytest.mark.parametrize("text", ["2.1.1", "2.1.2"])
def test_a_session_takes_either_way_of_putting_down(text: str) -> None:
    """BR-042, BR-043."""
    env = make(text=text)
    session = env.session()
    session.reset(task(env, 0), 0)
    while not (command := session.oracle()).startswith(("put ", "move ")):
        session.step(Action(command))
    assert command.startswith("put " if text == "2.1.1" else "move ")
    words = command.split()
    thing, place = " ".join(words[1:3]), " ".join(words[-2:])
    result = session.step(
        Action(f"put {thing} on {place}" if text == "2.1.2" else f"move {thing} to {place}")
    )
    assert result.effect and result.terminated


def test_opening_and_arrival_of_both_text_versions() -> None:
    for text, said in (("2.1.1", "You arrive at loc "), ("2.1.2", "You arrive at ")):
        env = make(text=text)
        session = env.session()
        start = session.reset(task(env), 0)
        assert start.observation.text.startswith(
            "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle"
        )
        assert start.observation.text.endswith(f"Your task is to: {start.instruction}")
        assert ("help" in start.observation.legal) == (text == "2.1.2")
        assert session.step(Action(start.observation.legal[0])).observation.text.startswith(said)


def test_the_oracle_finds_its_way_back_from_any_detour() -> None:
    env = make(protocol="sdar")
    session = env.session()
    for number, candidate in enumerate(env.tasks("mini-unseen")[:60]):
        rng = random.Random(number)
        observation = session.reset(candidate, 0).observation
        for _ in range(15):
            result = session.step(Action(rng.choice(observation.legal)))
            observation = result.observation
        while not (result.terminated or result.truncated):
            command = session.oracle()
            assert command == session.oracle() and command in observation.legal
            result = session.step(Action(command))
            observation = result.observation
        assert result.terminated, candidate.id


def test_order_of_play_changes_nothing() -> None:
    """BR-063."""
    env = make()
    session = env.session()
    first = session.reset(task(env, 5), 0)
    session.step(Action(first.observation.legal[0]))
    session.reset(task(env, 8), 0)
    assert session.reset(task(env, 5), 1) == first
    assert session.reset(task(env, 8), 0) != first


def test_first_tasks_of_a_split_are_balanced_over_families() -> None:
    env = make()
    for split in env.splits():
        assert group_counts(env.tasks(split)[:60]) == dict.fromkeys(FAMILIES, 10)


def test_the_papers_draw_is_a_fixed_list() -> None:
    env = make()
    panel = env.panel("paper128")
    assert len(panel.ids) == 128 and panel == env.panel("paper128")
    assert set(panel.ids) <= {t.id for t in env.tasks("mini-seen")}
    repeats = [repeat for _, repeat in panel.entries()]
    assert max(repeats) > 0 and len(set(panel.entries())) == 128
    assert env.panel("mini-seen").ids == tuple(t.id for t in env.tasks("mini-seen"))


@pytest.mark.real
def test_official_splits_have_their_official_games(shared_data: Callable[[str], Path]) -> None:
    """BR-065 and the counts of the paper: 3,553 / 140 / 134 with the families as published."""
    env = make(variant="official", data=str(shared_data("alfworld")))
    unseen = group_counts(env.tasks("valid_unseen"))
    assert [unseen[f] for f in FAMILIES] == [24, 18, 31, 23, 21, 17]
    for split, expected in OFFICIAL.items():
        tasks = env.tasks(split)
        counts = group_counts(tasks)
        assert tuple(counts[f] for f in FAMILIES) == expected.families
        assert sha256_lines([t.id for t in tasks]) == expected.sha256
        assert (
            len(tasks)
            == env.splits()[split]
            == {"train": 3553, "valid_seen": 140, "valid_unseen": 134}[split]
        )
    assert env.splits() == {"train": 3553, "valid_seen": 140, "valid_unseen": 134}
    train = [t.id for t in env.tasks("train")]
    for panel in ("valid_seen", "valid_unseen", "paper128"):
        assert_disjoint(train, env.panel(panel).ids)
    assert env.panel("paper128").sha256 == "3fa01f11e860fc9a50a4091ee9c0c5d58f874e79f1b28b454c0aaaf33d5a78e7"


@pytest.mark.real
def test_the_oracle_wins_every_official_validation_game(shared_data: Callable[[str], Path]) -> None:
    env = make(variant="official", data=str(shared_data("alfworld")))
    session = env.session()
    lengths = []
    for candidate in [*env.tasks("valid_seen"), *env.tasks("valid_unseen")]:
        session.reset(candidate, 0)
        steps = 1
        while not session.step(Action(session.oracle())).terminated:
            steps += 1
        lengths.append(steps)
    assert len(lengths) == 274 and max(lengths) <= 11


@pytest.mark.real
@pytest.mark.slow
def test_the_oracle_wins_every_official_training_game(shared_data: Callable[[str], Path]) -> None:
    env = make(variant="official", data=str(shared_data("alfworld")))
    session = env.session()
    for candidate in env.tasks("train"):
        session.reset(candidate, 0)
        while not session.step(Action(session.oracle())).terminated:
            pass
        assert session.outcome().success
