"""How a policy is asked and how its answer is read: prompt, parsing, limits, reward, as named settings.

Source: the published code of SDAR and SEED (limits, history length, structure of the prompt, parsing,
reward); the wording of the prompt is this project's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from seedbench.envs.webshop.layout import SEARCH_FORM

from seedbench.panel import sha256_lines
from seedbench.parsing import parse_tagged
from seedbench.types import Action, History, Message

#: Paid once, for a purchase whose score is exactly 1.
REWARD_PERFECT = 10.0
FALLBACK_CHARS = 20
#: A longer prompt is made again without past turns.
PROMPT_CHARS = 13_000
MOST_QUERIES = 30


@dataclass(frozen=True, slots=True)
class Protocol:
    """``history_length``: past pairs in a prompt. ``max_steps``: actions per episode."""

    name: str
    max_steps: int = 15
    history_length: int = 2
    invalid_penalty: float = 0.1
    require_think: bool = True


PROTOCOLS: dict[str, Protocol] = {"seed": Protocol("seed"), "sdar": Protocol("sdar")}

_ROLE = "You are an agent that shops in the WebShop online store."
_TASK = "You have to buy what this instruction asks for: {task}"
_PAST = (
    "You have taken {steps} action(s) so far. "
    "The last {shown} observation(s) and the actions you took:\n{past}\n"
    "You are now at step {step}."
)
_NOW = "Your current observation is: {observation}\nThe actions you may take now are:\n{actions}"
_ASK = (
    "Choose your next action.\n"
    "First reason step by step about the situation, inside <think> </think> tags.\n"
    "Then give exactly one of the actions above, inside <action> </action> tags."
)
#: Part of the fingerprint: a changed word is another protocol.
TEMPLATE_SHA256 = sha256_lines([_ROLE, _TASK, _PAST, _NOW, _ASK])


def render(history: History, protocol: Protocol) -> tuple[Message, ...]:
    """One user message: role, task, last pairs (after the first step), observation, actions, request."""
    text = _prompt(history, protocol.history_length)
    if len(text) > PROMPT_CHARS:
        text = _prompt(history, 0)
    return (Message("user", text),)


def _prompt(history: History, length: int) -> str:
    parts = [_ROLE, _TASK.format(task=history.instruction)]
    if history.past and length:
        first = max(0, history.step - length)
        lines = [
            f"[Observation {i}: '{turn.observation.text}', Action {i}: '{turn.action}']"
            for i, turn in enumerate(history.past[first:], first + 1)
        ]
        past = "\n".join(lines)
        parts.append(_PAST.format(steps=history.step, shown=len(lines), past=past, step=history.step + 1))
    actions = "\n".join(f"'{a}'" for a in history.observation.legal)
    parts += [_NOW.format(observation=history.observation.text, actions=actions), _ASK]
    return "\n\n".join(parts)


def parse(completion: str, protocol: Protocol) -> Action:
    return parse_tagged(completion, fallback_chars=FALLBACK_CHARS, require_think=protocol.require_think)


def wrap(action: str) -> str:
    return f"<think></think><action>{action}</action>"


#: Words that begin or end no query.
_DULL = frozenset(
    "i a an the want need find me am looking for with and in of to under price lower than dollars color "
    "colour size".split()
)
_STOPS = ",.:;$()"


def choices(history: History) -> tuple[str, ...]:
    """The announced clicks, and where a search is announced also queries made of the instruction's words."""
    legal = history.observation.legal
    out = {a for a in legal if a not in (SEARCH_FORM, "click[search]")}
    if SEARCH_FORM in legal:
        out |= {f"search[{q}]" for q in queries(history.instruction)}
    return tuple(sorted(out))


def queries(instruction: str) -> list[str]:
    """Spans of one to three neighbouring words, longest first, at most :data:`MOST_QUERIES`.

    A span does not cross a comma or another stop, and neither begins nor ends with a dull word.
    """
    spans = [s for n in (3, 2, 1) for s in _spans(instruction, n)]
    found = list(dict.fromkeys(spans))[:MOST_QUERIES]
    return found or [
        " ".join(instruction.lower().replace("[", " ").replace("]", " ").split())[:200] or "item"
    ]


def _spans(instruction: str, n: int) -> Iterator[str]:
    words = [w for w in instruction.lower().replace("[", " ").replace("]", " ").split()]
    for i in range(len(words) - n + 1):
        span = words[i : i + n]
        if any(w[-1] in _STOPS or w[0] in _STOPS for w in span[:-1]):
            continue
        span[-1] = span[-1].strip(_STOPS)
        if n == 1 and span[0].isdecimal():
            continue
        if span[-1] and span[0] not in _DULL and span[-1] not in _DULL:
            yield " ".join(span)
