"""WebShop behind the environment contract: the shared half and the session of one episode."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from seedbench.envs.webshop import buyer, layout, mini
from seedbench.envs.webshop import protocol as rules
from seedbench.envs.webshop.bank import bank
from seedbench.envs.webshop.goals import Goal
from seedbench.envs.webshop.hindsight import annotate
from seedbench.envs.webshop.render import Mode
from seedbench.envs.webshop.shop import Visit
from seedbench.envs.webshop.worlds import World, mini_world, real_world

from seedbench.contracts import EnvSpec
from seedbench.errors import ConfigError, EpisodeOver
from seedbench.panel import Panel, sha256_lines
from seedbench.types import (
    Action,
    Episode,
    HiddenTask,
    History,
    Message,
    Observation,
    Outcome,
    PublicTask,
    Skill,
    Start,
    StepResult,
    Task,
)


class Options(BaseModel):
    """Settings of a WebShop run.

    ``faithful`` equals the original program, ``fixed`` corrects its faults (docs/webshop.md); both need the
    official files. ``mini`` is generated: ``products`` and ``catalogue_seed`` are for it alone.
    """

    model_config = ConfigDict(extra="forbid")

    variant: Literal["mini", "faithful", "fixed"] = "mini"
    protocol: Literal["seed", "sdar"] = "seed"
    #: observation mode of the real shop; the papers use ``text``
    mode: Mode = "text"
    goals: Literal["synthetic", "human"] = "synthetic"
    catalogue: Literal["small", "full"] = "small"
    #: folder of the official files; default ``$WEBSHOP_DATA``
    data: str | None = None
    #: folder of a saved search index, made when absent; default: build in memory
    index: str | None = None
    products: int = Field(default=1000, ge=mini.SMALLEST, le=1_000_000)
    catalogue_seed: int = 0
    #: want a think block in a valid completion; default: what the protocol says (yes)
    require_think: bool | None = None


class WebShop:
    """Environment. Catalogue, index, goals, panels and protocol; read-only after construction."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.protocol = rules.PROTOCOLS[options.protocol]
        if options.require_think is not None:
            self.protocol = replace(self.protocol, require_think=options.require_think)
        self.world = _world(options)
        self.groups = self.world.groups
        self.spec = self._spec()
        self._tasks = lru_cache(None)(self._list)

    def splits(self) -> Mapping[str, int]:
        return {name: len(indices) for name, indices in self.world.splits.items()}

    def tasks(self, split: str) -> Sequence[Task]:
        if split not in self.world.splits:
            known = ", ".join(f"{name} ({n})" for name, n in self.splits().items())
            raise ConfigError(
                f"WebShop ({self.options.variant}, {len(self.world.goals)} goals) has no split '{split}'. "
                f"Splits: {known}."
            )
        return self._tasks(split)

    def panel(self, name: str) -> Panel:
        """All of a split, under its name."""
        return Panel.of(name, [t.id for t in self.tasks(name)])

    def session(self) -> WebShopSession:
        return WebShopSession(self)

    def goal(self, task: Task) -> Goal:
        return self.world.goals[task.hidden.payload]

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
        return bank(group, self.groups)

    def overlap(self, panel: str) -> list[str]:
        """One sentence per other split: how many products it shares with the panel."""
        return self.world.overlap(panel)

    def serve(self, host: str, port: int) -> None:
        """The shop as web pages, goals of the variant's evaluation split (``seedbench play webshop --web``)."""
        from seedbench.envs.webshop.site import play

        play(self, "mini-test" if self.options.variant == "mini" else "test", host=host, port=port)

    def observe(self, visit: Visit) -> Observation:
        text = (
            layout.compact(visit)
            if self.options.variant == "mini"
            else layout.brief(visit, self.options.mode)
        )
        return Observation(text, layout.legal(visit))

    def _list(self, split: str) -> tuple[Task, ...]:
        world = self.world
        return tuple(
            Task(PublicTask(f"{world.prefix}/{i:05d}", split, world.goals[i].category), HiddenTask(i))
            for i in sorted(world.splits[split])
        )

    def _spec(self) -> EnvSpec:
        o, p = self.options, self.protocol
        details = {
            "mode": "compact" if o.variant == "mini" else o.mode,
            "require_think": str(p.require_think).lower(),
            "template_sha256": rules.TEMPLATE_SHA256,
            **self.world.details,
        }
        numbers = f"{p.max_steps} {p.history_length} {p.invalid_penalty} {rules.REWARD_PERFECT}"
        limits = f"{rules.FALLBACK_CHARS} {rules.PROMPT_CHARS} {rules.MOST_QUERIES}"
        lines = [o.variant, o.protocol, numbers, limits, *(f"{k}={v}" for k, v in sorted(details.items()))]
        return EnvSpec(
            name="webshop",
            variant=o.variant,
            protocol=o.protocol,
            max_steps=p.max_steps,
            history_length=p.history_length,
            invalid_penalty=p.invalid_penalty,
            fingerprint=sha256_lines(lines),
            details=details,
        )


class WebShopSession:
    """One episode at a time. ``seed`` matters only for the original's hidden command for random products."""

    def __init__(self, env: WebShop) -> None:
        self._env = env
        self._visit: Visit | None = None
        self._steps = 0
        self._searches = 0
        self._over = True

    @property
    def visit(self) -> Visit:
        if self._visit is None:
            raise EpisodeOver("No WebShop episode was started. Call reset first.")
        return self._visit

    def reset(self, task: Task, seed: int) -> Start:
        env = self._env
        goal = env.goal(task)
        name = str(task.hidden.payload)
        self._visit = Visit(env.world.shop, goal, name, random.Random(f"webshop/{task.id}/{seed}"))
        self._steps, self._searches, self._over = 0, 0, False
        return Start(goal.instruction, env.observe(self._visit))

    def step(self, action: Action) -> StepResult:
        if self._over or self._visit is None:
            raise EpisodeOver("This WebShop episode is over (or was never started). Call reset first.")
        visit = self._visit
        effect = visit.act(action.text)
        self._steps += 1
        self._searches += effect and visit.kind == "results" and action.text.lstrip().startswith("search")
        truncated = not visit.done and self._steps >= self._env.protocol.max_steps
        self._over = visit.done or truncated
        perfect = visit.score is not None and visit.score.perfect
        return StepResult(
            self._env.observe(visit),
            reward=rules.REWARD_PERFECT if perfect else 0.0,
            terminated=visit.done,
            truncated=truncated,
            effect=effect,
        )

    def outcome(self) -> Outcome:
        """Nothing bought is a score of 0. ``metrics`` tell what the score is made of."""
        result = self.visit.score
        metrics = {"n_searches": float(self._searches), "bought": float(result is not None)}
        if result is None:
            return Outcome(success=False, score=0.0, metrics=metrics)
        metrics |= {
            "type_factor": result.type_factor,
            "attribute_hits": float(result.attribute_hits),
            "option_hits": float(result.option_hits),
            "price_hit": float(result.price),
        }
        return Outcome(success=result.perfect, score=result.value, metrics=metrics)

    def oracle(self) -> str:
        if self._over or self._visit is None:
            raise EpisodeOver("The oracle has no next action: the WebShop episode is over.")
        return buyer.next_action(self._visit)

    def close(self) -> None:
        self._visit, self._over = None, True


def _world(options: Options) -> World:
    if options.variant == "mini":
        return mini_world(options.catalogue_seed, options.products)
    return real_world(
        options.variant == "fixed", options.catalogue, options.goals, options.data, options.index
    )
