"""A thin :class:`gymnasium.Env` over any environment, for people who come from there.

Observations and actions are texts. The adapter adds nothing: tasks, steps and rewards are those of the
session. ``info`` holds only what a policy may see.
"""

from __future__ import annotations

from typing import Any

import gymnasium

from seedbench.contracts import Environment
from seedbench.errors import ConfigError
from seedbench.types import Action, Start

MOST_CHARACTERS = 1_000_000


class AnyText(gymnasium.spaces.Text):
    """Every string up to a length; sampling draws from a plain charset."""

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        length = int(self.np_random.integers(self.min_length, 33))
        return "".join(self.np_random.choice(list(self.character_set), size=length))


class GymEnv(gymnasium.Env[str, str]):
    """Plays tasks of one split. ``reset`` draws a task, or takes ``options={"task": id}``.

    The first observation starts with the task's instruction. ``step`` takes a command as the environment
    understands it, without tags. ``info["legal"]`` lists the announced actions.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 (gymnasium's own class attribute)

    def __init__(self, env: Environment, split: str, render_mode: str | None = None) -> None:
        if render_mode not in (None, "ansi"):
            raise ConfigError(f"render_mode '{render_mode}' is not offered. Use 'ansi' or None.")
        self.environment, self.split, self.render_mode = env, split, render_mode
        self.tasks = {task.id: task for task in env.tasks(split)}
        self._ids = list(self.tasks)
        self._session = env.session()
        self._text = ""
        self.observation_space = AnyText(min_length=0, max_length=MOST_CHARACTERS)
        self.action_space = AnyText(min_length=0, max_length=MOST_CHARACTERS)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        number = int(self.np_random.integers(len(self._ids)))
        episode_seed = int(self.np_random.integers(2**31))
        wanted = (options or {}).get("task", self._ids[number])
        if wanted not in self.tasks:
            raise ConfigError(f"Split '{self.split}' has no task '{wanted}'. Its first is '{self._ids[0]}'.")
        start = self._session.reset(self.tasks[wanted], episode_seed)
        self._text = _opening(start)
        return self._text, {"task": wanted, "legal": start.observation.legal}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        result = self._session.step(Action(action))
        self._text = result.observation.text
        info: dict[str, Any] = {"legal": result.observation.legal}
        return self._text, float(result.reward), result.terminated, result.truncated, info

    def render(self) -> str | None:  # type: ignore[override]
        return self._text if self.render_mode == "ansi" else None

    def close(self) -> None:
        self._session.close()


def _opening(start: Start) -> str:
    text = start.observation.text
    return text if start.instruction in text else f"{start.instruction}\n\n{text}"
