"""What the trainer needs of a language model, whatever its size.

Episodes go in, per-token log-probabilities come out; tokens, prompts and padding stay inside the backbone.
A :class:`Sample` is one row of a training batch: the tiny model makes one per episode (its transcript only
grows), chat models one per turn (their prompt is rebuilt each step, methods.md 1.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor
from torch.nn import Parameter

from seedbench.contracts import Environment, Policy
from seedbench.types import Episode


@dataclass(slots=True)
class Meter:
    """Tokens that a model and its frozen copies read or wrote in this process, padding not counted."""

    tokens: int = 0

    def add(self, rows: Iterable[Sequence[int]]) -> None:
        self.tokens += sum(map(len, rows))


@dataclass(frozen=True, slots=True)
class Sample:
    """One training row. ``turns[k]`` is the turn of decided token ``k``, ``old[k]`` its log-probability when
    sampled (at ``temperature``); ``length`` is the number of tokens a forward pass costs."""

    episode: int
    turns: tuple[int, ...]
    old: tuple[float, ...]
    temperature: float
    length: int
    skill: str | None = None
    data: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Scores:
    """(B, D) over decided tokens, right-padded: log-probability, entropy of the choice, and real positions."""

    logp: Tensor
    entropy: Tensor
    mask: Tensor


class Backbone(Protocol):
    """A trainable policy. ``score`` carries gradients unless called under ``torch.no_grad``.

    ``meter`` counts what ``score``, ``analyse`` and ``analysis_nll`` put through the model; actors do not use
    it, they may live in other processes.
    """

    name: str
    decoding: str
    meter: Meter
    #: where a chat model puts a privileged skill (:mod:`seedbench.prompt`); set by the runner from the method
    skill_position: str

    def actor(self, temperature: float) -> Policy: ...

    def samples(self, episodes: Sequence[Episode], environment: Environment) -> list[Sample]:
        """Rows for the tokens really sampled. ``acting_skill`` of an episode stays part of its prompt."""
        ...

    def score(self, samples: Sequence[Sample], skills: Sequence[str | None] | None = None) -> Scores:
        """Log-probabilities of the sampled tokens under each row's own prompt, or, with ``skills``, under
        the prompt that holds ``skills[i]`` (None: ordinary history) instead of the acting skill.

        Raises :class:`~seedbench.errors.ConfigError` when a prompt with its skill does not fit the context:
        a skill is never cut silently.
        """
        ...

    def analyse(self, episodes: Sequence[Episode], environment: Environment) -> list[str]:
        """Raw hindsight analyses (greedy), one per episode; parsing is the caller's."""
        ...

    def analysis_nll(
        self, episodes: Sequence[Episode], targets: Sequence[str], environment: Environment
    ) -> tuple[Tensor, int]:
        """Summed negative log-likelihood of ``targets`` as analyses, and their number of tokens."""
        ...

    def parameters(self) -> Iterator[Parameter]: ...

    def frozen(self) -> Backbone:
        """A copy without gradients and with the same meter: the KL reference, or a frozen analyzer."""
        ...

    def save(self, folder: Path) -> None: ...

    def restore(self, folder: Path) -> None: ...

    def sha256(self) -> str:
        """Hash of the weights."""
        ...

    def flops(self, tokens: int, backward: bool) -> float:
        """Estimated floating point operations (2 N per token forward, 6 N with backward)."""
        ...
