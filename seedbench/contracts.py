"""What an environment and a policy must offer.

Two objects make an environment:

* an :class:`Environment` holds what is shared and read-only (games, catalogue, index, protocol);
  one per process is enough.
* a :class:`Session` plays one episode at a time and owns a private random source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from seedbench.types import (
    Action,
    Episode,
    Generation,
    History,
    Message,
    Outcome,
    Skill,
    Start,
    StepResult,
    Task,
    View,
)

if TYPE_CHECKING:
    from seedbench.panel import Panel


@dataclass(frozen=True, slots=True)
class EnvSpec:
    """What a result row must name about its environment. ``fingerprint`` hashes data and protocol."""

    name: str
    variant: str
    protocol: str
    max_steps: int
    history_length: int
    invalid_penalty: float
    fingerprint: str
    details: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Session(Protocol):
    """One episode at a time. ``step`` after the end raises :class:`~seedbench.errors.EpisodeOver`."""

    def reset(self, task: Task, seed: int) -> Start: ...

    def step(self, action: Action) -> StepResult: ...

    def outcome(self) -> Outcome: ...

    def oracle(self) -> str:
        """Text of the next action of a shortest known solution. Reads hidden state: demonstrations only."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Environment(Protocol):
    """Shared, read-only half of an environment. ``render`` and ``choices`` are pure functions of history."""

    spec: EnvSpec
    #: reporting groups in table order, e.g. the six ALFWorld families
    groups: tuple[str, ...]

    def splits(self) -> Mapping[str, int]:
        """Split name -> number of tasks."""
        ...

    def tasks(self, split: str) -> Sequence[Task]:
        """Tasks of a split, sorted by id. Raises :class:`~seedbench.errors.DataMissing` with the cure."""
        ...

    def panel(self, name: str) -> Panel:
        """A named evaluation panel, or all of a split under the split's name."""
        ...

    def session(self) -> Session: ...

    def parse(self, completion: str) -> Action: ...

    def wrap(self, action: str) -> str:
        """A well-formed completion that parses to ``action`` (for scripted and constrained policies)."""
        ...

    def render(self, history: History) -> tuple[Message, ...]: ...

    def choices(self, history: History) -> tuple[str, ...]:
        """Candidate actions for constrained decoding, sorted, a pure function of ordinary history."""
        ...

    def annotate(self, episode: Episode) -> Skill:
        """Hindsight skill written by rules from the visible trajectory and its outcome alone."""
        ...

    def bank(self, group: str) -> Skill:
        """Static skill of a reporting group, written by this project. Raises when there is none."""
        ...


@runtime_checkable
class Policy(Protocol):
    """Anything that acts. ``privileged`` policies (the oracle) are never ranked.

    A ``constrained`` policy answers with one of ``view.choices``, others with a free completion.
    """

    name: str
    privileged: bool
    constrained: bool

    def act(self, views: Sequence[View]) -> Sequence[Generation]:
        """One generation per view, in order."""
        ...

    def forget(self, slots: Sequence[int]) -> None:
        """The episodes in these slots are over: drop what is cached for them."""
        ...


@dataclass(frozen=True, slots=True)
class Download:
    """A zip file the user may ask for with ``seedbench data get``: where it is, and what it holds."""

    url: str
    holds: str


@dataclass(frozen=True, slots=True)
class EnvironmentKind:
    """What an environment package exports as ``KIND``: a pydantic model of its options, and the maker."""

    name: str
    options: type
    make: Callable[[Any], Environment]
    #: split names used when a run names none: variant -> (training split, evaluation panel)
    default_splits: Mapping[str, tuple[str, str]]
    #: budget name -> {"train": {...}, "eval": {...}, "objective": {...}, "advantage": {...}, "warm_up": {...}}
    scales: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: official files that can be fetched on request, and the folder they are looked for in
    downloads: tuple[Download, ...] = ()
    download_folder: str = ""
