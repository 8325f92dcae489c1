"""Who writes the skills that Stage 1 learns from: the environment's rules, or a large model behind an API."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from seedbench.errors import ConfigError, ExtraMissing
from seedbench.train.analysis_prompt import analysis_messages
from seedbench.train.skills import parse_analysis
from seedbench.types import Environment, Episode, Skill

Annotate = Callable[[Sequence[Episode]], list[Skill | None]]


def annotator_named(name: str, env: Environment) -> Annotate:
    """``rules``, or ``openai:<model>`` for any OpenAI-compatible server (``OPENAI_BASE_URL``,
    ``OPENAI_API_KEY``)."""
    if name == "rules":
        return lambda episodes: [env.annotate(e) for e in episodes]
    kind, _, model = name.partition(":")
    if kind != "openai" or not model:
        raise ConfigError(f"Unknown annotator '{name}'. Use 'rules' or 'openai:<model>'.")
    return _openai(model)


def _openai(model: str, tokens: int = 1024) -> Annotate:
    """Greedy, ``tokens`` new tokens (the released scripts' value); the client retries and times out itself."""
    try:
        import openai
    except ImportError as error:
        raise ExtraMissing(
            "The annotator 'openai:...' needs the openai package: pip install 'seedbench[openai]'."
        ) from error
    client = openai.OpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none"), max_retries=4, timeout=120)

    def ask(episode: Episode) -> Skill | None:
        messages = [{"role": m.role, "content": m.content} for m in analysis_messages(episode)]
        reply = client.chat.completions.create(
            model=model,
            messages=messages,
            temperature=0,
            max_tokens=tokens,  # type: ignore[arg-type]
        )
        return parse_analysis(reply.choices[0].message.content or "", model)

    def annotate(episodes: Sequence[Episode]) -> list[Skill | None]:
        try:
            return [ask(e) for e in episodes]
        except openai.OpenAIError as error:
            raise ConfigError(
                f"The annotator '{model}' did not answer ({error}). Check OPENAI_BASE_URL and OPENAI_API_KEY, "
                "or use method.options.warm_up.annotator='rules'."
            ) from error

    return annotate
