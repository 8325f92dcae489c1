"""Acting with a chat model: one prompt per turn, rebuilt from ordinary history, many episodes side by side."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seedbench.policies.hf.model import ChatModel
from seedbench.policies.hf.options import HfOptions
from seedbench.policies.hf.sampling import Sampled, sample_choices, sample_free, side_by_side
from seedbench.policies.hf.text import ChatText, ChatTrace, Ids, truncated
from seedbench.policies.tiny.actor import ids_sha256
from seedbench.prompt import SkillPosition, with_skill
from seedbench.types import Generation, Message, View


@dataclass(slots=True)
class Request:
    """One view in tokens. ``candidates`` (token ids -> action text) only in ``choices`` decoding."""

    view: View
    prompt: Ids
    opened: str
    candidates: dict[Ids, str]

    @property
    def stream(self) -> random.Random:
        """Fresh for each turn of each episode; a function of the episode's seed and the step alone."""
        return random.Random(f"act/{self.view.seed}/{self.view.history.step}")


def conditioned(view: View, position: SkillPosition) -> tuple[Message, ...]:
    """The messages of a view, with the acting skill where a training method gave one."""
    if view.skill is None:
        return view.messages
    return with_skill(view.messages, view.skill, position, view.history.instruction)


Sample = Callable[[Sequence[Request]], list[Sampled]]


class HfActor:
    """A policy that keeps nothing between turns. ``sample`` continues prompts: this process, or an engine."""

    privileged = False

    def __init__(
        self,
        text: ChatText,
        options: HfOptions,
        room: int,
        temperature: float,
        sample: Sample,
        forkable: bool,
        skill_position: SkillPosition,
    ) -> None:
        """``room``: tokens a prompt may have. ``forkable``: False where the weights sit on a GPU, because a
        process that holds one cannot be forked."""
        self.text, self.options, self.room, self.temperature = text, options, room, temperature
        self.name, self.forkable = "hf", forkable
        self.constrained = options.decoding == "choices"
        self.skill_position = skill_position
        self._sample = sample

    def forget(self, slots: Sequence[int]) -> None:
        pass

    def act(self, views: Sequence[View]) -> list[Generation]:
        """One generation per view; what cannot be asked gets an ``error`` and costs only its own episode."""
        asked = [self._request(v) for v in views]
        requests = [(i, r) for i, r in enumerate(asked) if isinstance(r, Request)]
        answers: dict[int, Generation] = {i: a for i, a in enumerate(asked) if isinstance(a, Generation)}
        lengths = [len(r.prompt) + self._growth(r) for _, r in requests]
        for batch in side_by_side(lengths, self.options.batch_tokens):
            part = [requests[k] for k in batch]
            sampled = self._sample([r for _, r in part])
            answers |= {i: self._answer(r, s) for (i, r), s in zip(part, sampled, strict=True)}
        return [answers[i] for i in range(len(views))]

    def _request(self, view: View) -> Request | Generation:
        messages = conditioned(view, self.skill_position)
        whole = self.text.prompt(messages)
        prompt = truncated(whole, self.room, self.options.truncation)
        if prompt is None and self.options.truncation == "stop":
            return Generation("", ids_sha256(whole), len(whole), error="context_limit")
        if prompt is None:
            message = f"the prompt has {len(whole)} tokens, the limit is {self.room} (truncation = 'error')"
            return Generation("", ids_sha256(whole), len(whole), error=message)
        candidates = self._candidates(view.choices) if self.constrained else {}
        if self.constrained and not candidates:
            return Generation(
                "", ids_sha256(prompt), len(prompt), error="the environment announced no action"
            )
        return Request(view, prompt, self.text.opened(messages), candidates)

    def _candidates(self, choices: Sequence[str]) -> dict[Ids, str]:
        return {choice_ids(self.text, self.options, c): c for c in reversed(choices)}

    def _growth(self, request: Request) -> int:
        return max(map(len, request.candidates), default=self.options.max_new_tokens)

    def _answer(self, request: Request, sampled: Sampled) -> Generation:
        ids = tuple(sampled.ids)
        trace = ChatTrace(
            request.prompt, ids, tuple(sampled.positions), tuple(sampled.logprobs), self.temperature or 1.0,
            tuple(sampled.allowed),
        )  # fmt: skip
        text = request.candidates[ids] if self.constrained else request.opened + self.text.decode(ids)
        return Generation(
            text=text,
            prompt_sha256=ids_sha256(request.prompt),
            prompt_tokens=len(request.prompt),
            new_tokens=len(ids),
            logprob=math.fsum(sampled.logprobs),
            truncated=sampled.truncated,
            trace=trace,
        )


def sample_here(
    model: ChatModel, text: ChatText, options: HfOptions, temperature: float, requests: Sequence[Request]
) -> list[Sampled]:
    """Continue prompts with the weights of this process."""
    prompts = [r.prompt for r in requests]
    streams = [r.stream for r in requests]
    if options.decoding == "choices":
        return sample_choices(model, prompts, streams, [list(r.candidates) for r in requests], temperature)
    return sample_free(model, prompts, streams, text.stop, options.max_new_tokens, temperature)


def choice_ids(text: ChatText, options: HfOptions, choice: str) -> Ids:
    """Tokens of one candidate answer, the end token last."""
    return (*text.encode(options.choice_prefix + choice), text.end)
