"""Acting and annotating through an OpenAI-compatible server (a hosted model, vLLM, SGLang, llama.cpp ...).

``OPENAI_BASE_URL`` and ``OPENAI_API_KEY`` say where and as whom. Evaluation only: no weights, no training.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from seedbench.config import validated
from seedbench.errors import ExtraMissing
from seedbench.rollout import derive_seed
from seedbench.types import Generation, Message, View

#: Beginning of the names of models behind a server.
PREFIX = "openai:"


class OpenAiOptions(BaseModel):
    """``max_new_tokens`` in the server's tokens; ``timeout`` in seconds per attempt; ``retries`` after timeouts,
    lost connections, 429 and 5xx, with growing pauses; ``concurrency`` requests in flight.

    ``seed``: send a seed derived from the episode and the step; servers that honour it repeat a run.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: str = ""
    max_new_tokens: int = Field(512, ge=1)
    timeout: float = Field(120.0, gt=0)
    retries: int = Field(4, ge=0)
    concurrency: int = Field(8, ge=1)
    seed: bool = True


class ChatServer:
    """A client that never shows its key: messages of errors are cleaned of it before they are recorded."""

    def __init__(self, model: str, options: OpenAiOptions) -> None:
        """Raises :class:`ExtraMissing` without the openai package."""
        try:
            import openai
        except ImportError as error:
            raise ExtraMissing(
                "Models named 'openai:...' need the openai package: pip install 'seedbench[openai]'."
            ) from error
        self.model, self.options = model, options
        self.failure: type[Exception] = openai.OpenAIError
        self._key = os.environ.get("OPENAI_API_KEY") or "none"
        self._client = openai.OpenAI(
            api_key=self._key,
            base_url=options.base_url or None,
            max_retries=options.retries,
            timeout=options.timeout,
        )

    def ask(self, messages: Sequence[Message], temperature: float, tokens: int, seed: int | None) -> Any:
        """One chat completion (the package's own object). Raises ``self.failure``."""
        return self._client.chat.completions.create(
            model=self.model,
            messages=wire(messages),  # type: ignore[arg-type]
            temperature=temperature,
            max_tokens=tokens,
            **({} if seed is None else {"seed": seed}),
        )

    def reason(self, error: Exception) -> str:
        """One line about a failure, without the key."""
        text = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        return text if self._key == "none" else text.replace(self._key, "***")


def wire(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Messages as the protocol wants them; lone surrogates become ``?`` (BR-106)."""
    return [
        {"role": m.role, "content": m.content.encode("utf-8", "replace").decode("utf-8")} for m in messages
    ]


def messages_sha256(messages: Sequence[Message]) -> str:
    """Hash of what is sent: JSON of the messages with sorted keys, in UTF-8."""
    text = json.dumps(wire(messages), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def answer_text(reply: Any) -> str:
    """Text of the first choice; empty where the server sent none, or no chat completion at all."""
    choices = getattr(reply, "choices", None)
    return (choices[0].message.content or "") if choices else ""


class OpenAiPolicy:
    """Writes free completions. A request that fails for good is that episode's ``model_error``, nobody else's."""

    privileged = False
    constrained = False
    forkable = False  # the client's connections do not survive a fork

    def __init__(self, server: ChatServer, temperature: float) -> None:
        self.name = PREFIX + server.model
        self.server, self.temperature = server, temperature

    def forget(self, slots: Sequence[int]) -> None:
        pass

    def act(self, views: Sequence[View]) -> list[Generation]:
        with ThreadPoolExecutor(self.server.options.concurrency) as pool:
            return list(pool.map(self._answer, views))

    def _answer(self, view: View) -> Generation:
        sha = messages_sha256(view.messages)
        options = self.server.options
        # 31 bits: what servers accept as a seed
        seed = derive_seed("act", view.seed, view.history.step) >> 32 if options.seed else None
        try:
            reply = self.server.ask(view.messages, self.temperature, options.max_new_tokens, seed)
        except self.server.failure as error:
            return Generation("", sha, error=self.server.reason(error))
        if not getattr(reply, "choices", None):
            return Generation("", sha, error="the server's answer is no chat completion")
        usage = reply.usage
        return Generation(
            text=answer_text(reply),
            prompt_sha256=sha,
            prompt_tokens=usage.prompt_tokens if usage else 0,
            new_tokens=usage.completion_tokens if usage else 0,
            truncated=reply.choices[0].finish_reason == "length",
        )


def openai_policy(model: str, temperature: float, options: Mapping[str, Any] | None = None) -> OpenAiPolicy:
    """The policy ``openai:<model>``. Raises :class:`ConfigError` for wrong options, :class:`ExtraMissing`."""
    settings = validated(OpenAiOptions, dict(options or {}), f"options of policy 'openai:{model}'")
    return OpenAiPolicy(ChatServer(model, settings), temperature)
