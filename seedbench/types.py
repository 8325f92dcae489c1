"""The vocabulary of the house: tasks, observations, actions, histories, episodes. What a policy may see is a type.

A policy is given :class:`View` objects and nothing else. There is no ``info`` dictionary: whatever an
environment knows beyond :class:`Observation` stays in :class:`HiddenTask`, in the session, or in the
:class:`Outcome` that only the scorer reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal[
    "completed",  # the environment ended the episode by its own rule
    "step_limit",  # the protocol's number of steps was used up
    "context_limit",  # the policy's context was full (overflow policy "stop")
    "env_error",  # the environment raised
    "model_error",  # the policy's backend raised or gave no output
    "timeout",  # the wall-clock limit of the episode was reached
    "interrupted",  # the run was stopped while the episode was in flight
]
#: Endings that say something about the agent; every other status is an infrastructure failure.
AGENT_ENDINGS: frozenset[str] = frozenset({"completed", "step_limit", "context_limit"})


@dataclass(frozen=True, slots=True)
class PublicTask:
    """What may be printed, logged and used to group results. Never shown to a policy.

    ``id`` is stable across machines; ``group`` is the reporting column (ALFWorld family, QA data set,
    product category).
    """

    id: str
    split: str
    group: str


@dataclass(frozen=True, slots=True)
class HiddenTask:
    """What only the environment and its oracle may read (game file, gold answers, goal product)."""

    payload: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Task:
    public: PublicTask
    hidden: HiddenTask = field(repr=False)

    @property
    def id(self) -> str:
        return self.public.id


@dataclass(frozen=True, slots=True)
class Observation:
    """What the environment says. ``legal`` lists the actions it announces, in its own order.

    An entry of ``legal`` may be a form to fill in, such as ``search[<your query>]``.
    """

    text: str
    legal: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Start:
    """The opening of an episode: the instruction (task sentence) and the first observation."""

    instruction: str
    observation: Observation


@dataclass(frozen=True, slots=True)
class Action:
    """What was understood from a completion.

    ``text`` is what is sent to the environment, ``valid`` whether the completion kept the protocol's
    format (an invalid one is still executed where the papers do so), ``reason`` why not
    (``"empty"``, ``"no_tags"``, ``"too_many_actions"`` ...).
    """

    text: str
    valid: bool = True
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StepResult:
    """``terminated``: ended by the task's own rule. ``truncated``: ended by the protocol's step limit.

    ``effect`` is False when a well-formed action was not possible here ("Nothing happens.").
    """

    observation: Observation
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    effect: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """Read by the scorer only. ``success`` is the task's own condition, ``score`` lies in [0, 1].

    ``metrics`` holds further named numbers (``em_strict``, ``n_searches`` ...).
    """

    success: bool
    score: float
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PastTurn:
    """One finished turn as later prompts may show it: what was seen, and the parsed action."""

    observation: Observation
    action: str


@dataclass(frozen=True, slots=True)
class History:
    """Ordinary history: the only material from which a prompt may be made at deployment."""

    instruction: str
    past: tuple[PastTurn, ...]
    observation: Observation

    @property
    def step(self) -> int:
        """Number of actions already taken."""
        return len(self.past)


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class View:
    """One request to a policy. ``slot`` identifies the running episode (for a policy's own cache),
    ``seed`` its private random stream, ``choices`` the candidate actions for constrained decoding.

    ``skill`` is None except where a *training* method conditions exploration on one.
    """

    slot: int
    seed: int
    history: History
    messages: tuple[Message, ...]
    choices: tuple[str, ...]
    skill: str | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """What a policy answered. ``prompt_sha256`` is taken from the tokens or text really fed to the model.

    ``trace`` is the policy's own training material (token ids as sampled, log-probabilities, candidate
    sets); it never reaches another policy or a log.
    """

    text: str
    prompt_sha256: str = ""
    prompt_tokens: int = 0
    new_tokens: int = 0
    logprob: float | None = None
    truncated: bool = False
    error: str = ""
    trace: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Skill:
    """A hindsight skill. ``source`` says who wrote it (``rules``, ``self``, ``bank``, a model's name)."""

    summary: str
    text: str
    source: str = ""


@dataclass(slots=True)
class Turn:
    """One turn of a recorded episode. ``truncated``: the completion was cut at the token limit."""

    observation: Observation
    completion: str
    action: str
    valid: bool
    reason: str = ""
    effect: bool = True
    reward: float = 0.0
    prompt_sha256: str = ""
    prompt_tokens: int = 0
    new_tokens: int = 0
    logprob: float | None = None
    truncated: bool = False
    trace: Any = field(default=None, repr=False, compare=False)


@dataclass(slots=True)
class Episode:
    """A finished (or broken off) episode. ``success`` and ``score`` are None on infrastructure errors."""

    task: PublicTask
    seed: int
    repeat: int = 0
    instruction: str = ""
    turns: list[Turn] = field(default_factory=list)
    last_observation: Observation = Observation("")
    status: Status = "interrupted"
    success: bool | None = None
    score: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    error: str = ""
    acting_skill: Skill | None = None
    hindsight: Skill | None = None
    seconds: float = 0.0

    @property
    def reward(self) -> float:
        """Sum of environment rewards (methods.md 1.2)."""
        return sum(t.reward for t in self.turns)

    def history(self, step: int | None = None) -> History:
        """The ordinary history before action ``step`` (default: after the last action)."""
        n = len(self.turns) if step is None else step
        past = tuple(PastTurn(t.observation, t.action) for t in self.turns[:n])
        now = self.turns[n].observation if n < len(self.turns) else self.last_observation
        return History(self.instruction, past, now)
