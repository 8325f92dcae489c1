"""How a policy is asked and how its answer is read: prompt, parsing, limits, rewards, as named settings.

Source: the published code of SDAR and SEED (limits, history length, structure of the prompt, parsing); the
wording of the prompt is this project's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from seedbench.envs.alfworld.engine import Dialect

from seedbench.panel import sha256_lines
from seedbench.parsing import parse_tagged
from seedbench.types import Action, History, Message

REWARD_WON = 10.0
FALLBACK_CHARS = 30


@dataclass(frozen=True, slots=True)
class Protocol:
    """``history_length``: past pairs in a prompt. ``max_steps``: actions per episode."""

    name: str
    max_steps: int
    history_length: int
    invalid_penalty: float = 0.1
    require_think: bool = True


PROTOCOLS: dict[str, Protocol] = {
    "seed": Protocol("seed", max_steps=30, history_length=5),
    "sdar": Protocol("sdar", max_steps=50, history_length=2),
}

_ROLE = "You are an agent that solves household tasks in a text version of the ALFRED world."
_NOW = "Your current observation is: {observation}\nThe actions you may take now are:\n{actions}"
_ASK = (
    "Choose your next action.\n"
    "First reason step by step about the situation, inside <think> </think> tags.\n"
    "Then give exactly one of the actions above, inside <action> </action> tags."
)
_PAST = (
    "Your task is to: {task}\n"
    "You have taken {steps} action(s) so far. "
    "The last {shown} observation(s) and the actions you took:\n{past}\n"
    "You are now at step {step}."
)
#: Part of the fingerprint: a changed word is another protocol.
TEMPLATE_SHA256 = sha256_lines([_ROLE, _NOW, _ASK, _PAST])


def render(history: History, protocol: Protocol) -> tuple[Message, ...]:
    """One user message: role, task and last pairs (after the first step), observation, actions, request."""
    parts = [_ROLE]
    if history.past:
        first = max(0, history.step - protocol.history_length)
        lines = [
            f"[Observation {i}: '{turn.observation.text}', Action {i}: '{turn.action}']"
            for i, turn in enumerate(history.past[first:], first + 1)
        ]
        parts.append(
            _PAST.format(
                task=history.instruction,
                steps=history.step,
                shown=len(lines),
                past="\n".join(lines),
                step=history.step + 1,
            )
        )
    actions = "\n".join(f"'{a}'" for a in choices(history))
    parts += [_NOW.format(observation=history.observation.text, actions=actions), _ASK]
    return (Message("user", "\n\n".join(parts)),)


def choices(history: History) -> tuple[str, ...]:
    """The admissible commands without ``help``, as the papers list them."""
    return tuple(a for a in history.observation.legal if a != "help")


def parse(completion: str, protocol: Protocol) -> Action:
    return parse_tagged(completion, fallback_chars=FALLBACK_CHARS, require_think=protocol.require_think)


def wrap(action: str) -> str:
    return f"<think></think><action>{action}</action>"


_PUT = re.compile(r"(?:put|move|place) (\S+ \d+) (?:in/on|into|onto|in|on|to) (\S+ \d+)")


def in_dialect(command: str, dialect: Dialect) -> str:
    """Any form of putting down, in the words of this text version; other commands unchanged.

    Only the verb and the preposition are rewritten, never a name (BR-042, BR-043).
    """
    found = _PUT.fullmatch(command.strip())
    return dialect.put.format(*found.groups()) if found else command
