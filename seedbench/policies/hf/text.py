"""From messages to token ids and back, with the model's own chat template."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from seedbench.errors import ConfigError
from seedbench.policies.hf.options import Truncation
from seedbench.train.analysis_prompt import analysis_messages
from seedbench.types import Episode, Message

Ids = tuple[int, ...]


@dataclass(slots=True)
class ChatTrace:
    """One turn in tokens, as fed and as sampled; nothing here is ever encoded again (BR-077, BR-080).

    ``response`` holds the end token only when it was sampled (BR-021, BR-028). ``positions`` index it: all of
    it in free decoding, the real decisions in ``choices`` decoding, where ``allowed`` has the candidate ids of
    each. ``logprobs`` are those at ``temperature`` (BR-030).
    """

    prompt: Ids
    response: Ids
    positions: Ids
    logprobs: tuple[float, ...]
    temperature: float
    allowed: tuple[Ids, ...] = ()


class ChatText:
    """A tokenizer with its chat template. ``stop`` are the ids that end a response."""

    def __init__(self, tokenizer: Any, stop: Iterable[int], enable_thinking: bool) -> None:
        self.tokenizer = tokenizer
        self.stop = frozenset(stop)
        self.end: int = tokenizer.eos_token_id
        self._thinking = enable_thinking
        if not tokenizer.chat_template:
            raise ConfigError(
                "This model's tokenizer has no chat template: it is not an instruction-tuned model. "
                "Choose its instruct version."
            )

    def render(self, messages: Sequence[Message]) -> str:
        """Text of the prompt, the opening of the assistant's turn included."""
        return self.tokenizer.apply_chat_template(
            [{"role": m.role, "content": clean(m.content)} for m in messages],
            add_generation_prompt=True,
            tokenize=False,
            enable_thinking=self._thinking,
        )

    def prompt(self, messages: Sequence[Message]) -> Ids:
        return self.encode(self.render(messages))

    def opened(self, messages: Sequence[Message]) -> str:
        """``<think>`` where the template has already opened the reasoning, else nothing.

        The tag belongs to the prompt, so it is not sampled; the recorded completion gets it back, or its
        closing tag would stand alone (BR-082).
        """
        return "<think>" if self.render(messages).rstrip().endswith("<think>") else ""

    def encode(self, text: str) -> Ids:
        return tuple(self.tokenizer(clean(text), add_special_tokens=False)["input_ids"])

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def analysis(self, episode: Episode, room: int) -> Ids | None:
        """The analysis request of an episode in at most ``room`` tokens, or None if that cannot be.

        Steps are left out from the middle, with a line that says how many (BR-091).
        """
        shown = len(episode.turns)
        while True:
            ids = self.prompt(analysis_messages(episode, shown))
            if len(ids) <= room:
                return ids
            if shown == 0:
                return None
            shown = min(shown - 1, int(shown * room / len(ids)))


def clean(text: str) -> str:
    """``text`` without lone surrogates, which no tokenizer and no wire format takes (BR-106)."""
    return text.encode("utf-8", "replace").decode("utf-8")


def truncated(ids: Ids, limit: int, how: Truncation) -> Ids | None:
    """``ids`` within ``limit`` tokens by a cutting policy, or None where the policy is not to cut (BR-084)."""
    if len(ids) <= limit:
        return ids
    if how == "left":
        return ids[-limit:]
    if how == "middle":
        return (*ids[: limit // 2], *ids[len(ids) - (limit - limit // 2) :])
    return None
