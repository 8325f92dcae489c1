"""The gymnasium adapter passes gymnasium's own checker for every environment."""

from __future__ import annotations

import warnings

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from seedbench.errors import ConfigError, EpisodeOver
from seedbench.gym import GymEnv
from seedbench.registry import ENVIRONMENTS


def adapter(name: str, **more: str) -> GymEnv:
    kind = ENVIRONMENTS.get(name)
    env = kind.make(kind.options())
    return GymEnv(env, kind.default_splits["mini"][1], **more)


@pytest.mark.parametrize("name", ENVIRONMENTS.names())
def test_passes_the_checker_of_gymnasium(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", message=".*(render|spec|registered).*")
        check_env(adapter(name, render_mode="ansi"), skip_render_check=True)


def test_plays_the_task_it_is_asked_for_again() -> None:
    """BR-063: the same task, chosen by id, whatever was played before."""
    env = adapter("alfworld")
    first, info = env.reset(options={"task": "mini-seen/00007"})
    env.reset(seed=5)
    again, _ = env.reset(options={"task": "mini-seen/00007"})
    assert first == again and info["task"] == "mini-seen/00007"
    assert "Your task is to: " in first


def test_reward_and_end_are_those_of_the_session() -> None:
    env = adapter("alfworld")
    env.reset(options={"task": "mini-seen/00000"})
    total, over = 0.0, False
    while not over:
        _, reward, terminated, truncated, info = env.step(env._session.oracle())
        total, over = total + reward, terminated or truncated
        assert "look" in info["legal"]
    assert terminated and total == 10.0
    with pytest.raises(EpisodeOver):
        env.step("look")


def test_unknown_task_and_render_mode_are_refused() -> None:
    with pytest.raises(ConfigError, match="no task 'nope'"):
        adapter("alfworld").reset(options={"task": "nope"})
    with pytest.raises(ConfigError, match="render_mode"):
        adapter("alfworld", render_mode="human")
    assert isinstance(adapter("alfworld"), gymnasium.Env)
