"""Generated games: always solvable, never won at the start, shortest plans, and the engine's laws."""

from __future__ import annotations

import copy
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seedbench.envs.alfworld import KIND, mini
from seedbench.envs.alfworld.engine import DIALECTS, NOTHING, World
from seedbench.envs.alfworld.game import KIND_OF_FAMILY, compile_game, parse_problem
from seedbench.envs.alfworld.memory import read_task
from seedbench.envs.alfworld.pddl import problem_text
from seedbench.envs.alfworld.planner import solve

games = st.tuples(
    st.sampled_from(sorted(mini.SPLITS)), st.sampled_from(sorted(mini.SIZES)), st.integers(0, 10**9)
)
few = settings(max_examples=60, deadline=None)


def new_world(key: tuple[str, str, int], text: str = "2.1.2") -> World:
    return World(compile_game(mini.generate(*key)), DIALECTS[text])


def wander(world: World, rng: random.Random, steps: int) -> None:
    for _ in range(steps):
        if world.won:
            break
        world.step(rng.choice(world.commands))


@settings(max_examples=300, deadline=None)
@given(games, st.sampled_from(sorted(DIALECTS)))
def test_every_game_is_solved_by_the_planner(key: tuple[str, str, int], text: str) -> None:
    world = new_world(key, text)
    assert not world.won
    plan = solve(world)
    assert plan is not None and 3 <= len(plan) <= 12
    for command in plan:
        assert command in world.commands and not world.won
        world.step(command)
    assert world.won


@few
@given(games, st.integers(0, 2**32), st.integers(0, 25))
def test_plans_are_shortest_from_every_state(key: tuple[str, str, int], seed: int, steps: int) -> None:
    """No command leads to a state that is more than one step nearer: with valid plans, that is optimality."""
    world = new_world((key[0], "small", key[2]))
    wander(world, random.Random(seed), steps)
    plan = solve(world)
    assert plan is not None
    for command in world.commands:
        twin = copy_of(world)
        twin.step(command)
        after = solve(twin)
        assert after is not None and len(after) >= len(plan) - 1
        if plan and command == plan[0]:
            assert len(after) == len(plan) - 1


def copy_of(world: World) -> World:
    """The same state reached in another object."""
    twin = World(world.game, world.dialect)
    for name in ("place", "held"):
        setattr(twin, name, getattr(world, name))
    for name in ("contents", "lying_at", "taken_from", "opened", "toggled", "sliced", "clean", "hot", "cool"):
        setattr(twin, name, copy.deepcopy(getattr(world, name)))
    twin._changed()
    assert twin.commands == world.commands and twin.won == world.won
    return twin


@few
@given(games, st.integers(0, 2**32))
def test_laws_of_the_engine(key: tuple[str, str, int], seed: int) -> None:
    world, rng = new_world(key), random.Random(seed)
    game_before = repr(world.game)
    for _ in range(40):
        commands = world.commands
        assert list(commands) == sorted(set(commands)) and {"look", "inventory", "help"} <= set(commands)
        for nonsense in ("", "fly", "go to moon 1", "take", commands[0] + " now"):
            assert world.step(nonsense) == NOTHING and world.commands == commands
        assert world.step(rng.choice(commands)) != NOTHING
    assert repr(world.game) == game_before, "the compiled game is immutable"
    start = world.reset()
    assert start == new_world(key).reset() and start.endswith(f"Your task is to: {world.game.task}")


@few
@given(games)
def test_the_pddl_form_reads_back_to_the_same_game(key: tuple[str, str, int]) -> None:
    description = mini.generate(*key)
    assert parse_problem(problem_text(description), description.task) == description


@few
@given(games)
def test_the_sentence_tells_the_goal(key: tuple[str, str, int]) -> None:
    description = mini.generate(*key)
    assert read_task(description.task) == description.goal
    assert description.goal.kind == KIND_OF_FAMILY[mini.family_of(key[2])]


def test_no_game_is_in_two_splits() -> None:
    seen: dict[tuple, str] = {}
    for split, number in mini.SPLITS.items():
        for n in range(number):
            facts = tuple(sorted(mini.generate(split, "small", n).facts))
            assert seen.setdefault(facts, split) == split


@pytest.mark.parametrize("split", ["mini-train", "mini-seen", "mini-unseen"])
def test_held_out_rooms_are_only_in_the_unseen_split(split: str) -> None:
    def rooms(name: str) -> set[tuple[str, ...]]:
        made = (mini.generate(name, "small", n) for n in range(134))
        return {tuple(sorted(a[0] for p, a in d.facts if p == "receptacletype")) for d in made}

    assert (rooms("mini-unseen") & rooms(split) == set()) == (split != "mini-unseen")


def test_random_play_seldom_wins() -> None:
    env = KIND.make(KIND.options())
    wins = 0
    for n, task in enumerate(env.tasks("mini-train")[:300]):
        world = World(env.game(task), env.dialect)
        wander(world, random.Random(n), env.spec.max_steps)
        wins += world.won
    assert wins / 300 < 0.03


@pytest.mark.parametrize(("size", "fewest", "most"), [("small", 8, 14), ("large", 10, 42)])
def test_rooms_are_as_large_as_their_size_says(size: str, fewest: int, most: int) -> None:
    env = KIND.make(KIND.options(size=size))
    numbers = [len(env.game(task).receptacles) for task in env.tasks("mini-seen")]
    assert fewest <= min(numbers) and max(numbers) <= most
    if size == "large":
        assert any(len(g) > 1 for t in env.tasks("mini-seen")[:20] for g in env.game(t).receptacles_at)
