"""ALFWorld behind the environment contract: the shared half and the session of one episode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict
from seedbench.envs.alfworld import protocol as rules
from seedbench.envs.alfworld.bank import bank
from seedbench.envs.alfworld.engine import DIALECTS, Dialect, World
from seedbench.envs.alfworld.game import FAMILIES, Game
from seedbench.envs.alfworld.hindsight import annotate
from seedbench.envs.alfworld.panels import paper128
from seedbench.envs.alfworld.planner import solve
from seedbench.envs.alfworld.sources import GameSource, MiniSource

from seedbench.contracts import EnvSpec
from seedbench.errors import ConfigError, EpisodeOver
from seedbench.panel import Panel, sha256_lines
from seedbench.types import (
    Action,
    Episode,
    History,
    Message,
    Observation,
    Outcome,
    Skill,
    Start,
    StepResult,
    Task,
)


class Options(BaseModel):
    """Settings of an ALFWorld run. ``size`` is for the mini variant, ``data`` for the official one."""

    model_config = ConfigDict(extra="forbid")

    variant: Literal["mini", "official"] = "mini"
    protocol: Literal["seed", "sdar"] = "seed"
    text: Literal["2.1.1", "2.1.2"] = "2.1.2"
    engine: Literal["native", "textworld"] = "native"
    size: Literal["small", "medium", "large"] = "small"
    #: folder of the official games; default ``$ALFWORLD_DATA``, then ``~/.cache/alfworld``
    data: str | None = None
    #: want a think block in a valid completion; default: what the protocol says (yes)
    require_think: bool | None = None


class Player(Protocol):
    """What a session needs of an engine: :class:`.engine.World` or the reference engine."""

    won: bool

    @property
    def commands(self) -> tuple[str, ...]: ...

    def reset(self) -> str: ...

    def step(self, command: str) -> str: ...


class AlfWorld:
    """Environment. Games, panels and protocol; read-only after construction."""

    groups = FAMILIES

    def __init__(self, options: Options) -> None:
        self.options = options
        self.dialect: Dialect = DIALECTS[options.text]
        self.protocol = rules.PROTOCOLS[options.protocol]
        if options.require_think is not None:
            self.protocol = replace(self.protocol, require_think=options.require_think)
        self.source: GameSource = _source(options)
        self.spec = self._spec()

    def splits(self) -> Mapping[str, int]:
        return self.source.splits()

    def tasks(self, split: str) -> Sequence[Task]:
        if split not in self.splits():
            known = ", ".join(self.splits())
            raise ConfigError(f"ALFWorld ({self.options.variant}) has no split '{split}'. Splits: {known}.")
        return self.source.tasks(split)

    def panel(self, name: str) -> Panel:
        """A split as a panel, or ``paper128``: the papers' 128 draws from the seen split."""
        if name == "paper128":
            seen = {"mini": "mini-seen", "official": "valid_seen"}[self.options.variant]
            return paper128([task.id for task in self.tasks(seen)])
        return Panel.of(name, [task.id for task in self.tasks(name)])

    def session(self) -> AlfWorldSession:
        return AlfWorldSession(self)

    def game(self, task: Task) -> Game:
        """The compiled game of a task; shared and immutable."""
        return self.source.game(task)

    def parse(self, completion: str) -> Action:
        return rules.parse(completion, self.protocol)

    def wrap(self, action: str) -> str:
        return rules.wrap(action)

    def render(self, history: History) -> tuple[Message, ...]:
        return rules.render(history, self.protocol)

    def choices(self, history: History) -> tuple[str, ...]:
        return rules.choices(history)

    def annotate(self, episode: Episode) -> Skill:
        return annotate(episode)

    def bank(self, group: str) -> Skill:
        return bank(group)

    def _spec(self) -> EnvSpec:
        o, p = self.options, self.protocol
        details = {
            "text": o.text,
            "engine": o.engine,
            "require_think": str(p.require_think).lower(),
            "template_sha256": rules.TEMPLATE_SHA256,
            **self.source.details(),
        }
        numbers = (
            f"{p.max_steps} {p.history_length} {p.invalid_penalty} {rules.REWARD_WON} {rules.FALLBACK_CHARS}"
        )
        lines = [o.variant, o.protocol, numbers, *(f"{k}={v}" for k, v in sorted(details.items()))]
        return EnvSpec(
            name="alfworld",
            variant=o.variant,
            protocol=o.protocol,
            max_steps=p.max_steps,
            history_length=p.history_length,
            invalid_penalty=p.invalid_penalty,
            fingerprint=sha256_lines(lines),
            details=details,
        )


class AlfWorldSession:
    """One episode at a time. A game has no chance in it: the seed changes nothing."""

    def __init__(self, env: AlfWorld) -> None:
        self._env = env
        self._open: Callable[[Task], Player] = _opener(env)
        self._player: Player | None = None
        self._shadow: World | None = None  # native twin that the oracle plans on
        self._steps = 0
        self._over = True
        self._plan: list[str] = []

    def reset(self, task: Task, seed: int) -> Start:
        self.close()
        game = self._env.game(task)
        player = self._open(task)
        self._shadow = player if isinstance(player, World) else World(game, self._env.dialect)
        text = player.reset()
        self._player, self._steps, self._over, self._plan = player, 0, False, []
        return Start(game.task, Observation(text, player.commands))

    def step(self, action: Action) -> StepResult:
        player = self._player
        if self._over or player is None:
            raise EpisodeOver("This ALFWorld episode is over (or was never started). Call reset first.")
        command = rules.in_dialect(action.text, self._env.dialect)
        effect = command.strip() in player.commands
        text = player.step(command)
        if self._shadow is not player and self._shadow is not None:
            self._shadow.step(command)
        self._plan = self._plan[1:] if self._plan[:1] == [command.strip()] else []
        self._steps += 1
        truncated = not player.won and self._steps >= self._env.protocol.max_steps
        self._over = player.won or truncated
        return StepResult(
            Observation(text, player.commands),
            reward=rules.REWARD_WON if player.won else 0.0,
            terminated=player.won,
            truncated=truncated,
            effect=effect,
        )

    def outcome(self) -> Outcome:
        if self._player is None:
            raise EpisodeOver("No ALFWorld episode was started. Call reset first.")
        won = self._player.won
        return Outcome(success=won, score=float(won))

    def oracle(self) -> str:
        """Next command of a shortest plan from here; ``look`` if the task can no longer be solved."""
        if self._over or self._shadow is None:
            raise EpisodeOver("The oracle has no next action: the ALFWorld episode is over.")
        if not self._plan:
            self._plan = solve(self._shadow) or ["look"]
        return self._plan[0]

    def close(self) -> None:
        close = getattr(self._player, "close", None)
        if close is not None:
            close()
        self._player = self._shadow = None
        self._over = True


def _source(options: Options) -> GameSource:
    if options.variant == "mini":
        return MiniSource(options.size)
    from seedbench.envs.alfworld.data import OfficialSource

    return OfficialSource(options.data)


def _opener(env: AlfWorld) -> Callable[[Task], Player]:
    if env.options.engine == "native":
        return lambda task: World(env.game(task), env.dialect)
    from seedbench.envs.alfworld.reference import opener

    return opener(env.source, env.dialect)
