"""Who writes the skills that Stage 1 learns from: the environment's rules, or a large model behind an API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from seedbench.contracts import Environment
from seedbench.errors import ConfigError
from seedbench.policies.openai import PREFIX, ChatServer, OpenAiOptions, answer_text
from seedbench.train.analysis_prompt import analysis_messages
from seedbench.train.skills import parse_analysis
from seedbench.types import Episode, Skill

Annotate = Callable[[Sequence[Episode]], list[Skill | None]]

#: Values of the released scripts for an external annotator (methods page 2.6).
TOKENS, TRIES, MIN_WORDS = 1024, 3, 5
#: Share of requests that may fail for good before the annotation counts as failed.
TOLERATED = 0.1


def annotator_named(name: str, env: Environment) -> Annotate:
    """``rules``, or ``openai:<model>`` for any OpenAI-compatible server (``OPENAI_BASE_URL``,
    ``OPENAI_API_KEY``).

    The result has one entry per episode; None where no well-formed skill was written.
    """
    if name == "rules":
        return lambda episodes: [env.annotate(e) for e in episodes]
    model = name.removeprefix(PREFIX)
    if not name.startswith(PREFIX) or not model:
        raise ConfigError(f"Unknown annotator '{name}'. Use 'rules' or 'openai:<model>'.")
    return ServerAnnotator(ChatServer(model, OpenAiOptions()))


class ServerAnnotator:
    """Asks greedily, up to three times while the answer cannot be read. Raises :class:`ConfigError` when more
    than a tenth of the episodes got no answer at all: such a warm-up would train on a biased rest."""

    def __init__(self, server: ChatServer) -> None:
        self.server = server

    def __call__(self, episodes: Sequence[Episode]) -> list[Skill | None]:
        with ThreadPoolExecutor(self.server.options.concurrency) as pool:
            answers = list(pool.map(self._annotate, episodes))
        failures = [a for a in answers if isinstance(a, Exception)]
        if failures and len(failures) > TOLERATED * len(episodes):
            raise ConfigError(
                f"The annotator '{self.server.model}' did not answer for {len(failures)} of {len(episodes)} episodes "
                f"({self.server.reason(failures[0])}). Check OPENAI_BASE_URL and OPENAI_API_KEY, or use "
                "method.options.warm_up.annotator='rules'."
            )
        return [None if isinstance(a, Exception) else a for a in answers]

    def _annotate(self, episode: Episode) -> Skill | Exception | None:
        messages = analysis_messages(episode)
        for attempt in range(TRIES):
            try:
                # a seed from the second try on: an equal request may be answered from a cache
                reply = self.server.ask(messages, 0.0, TOKENS, attempt or None)
            except self.server.failure as error:
                return error
            skill = parse_analysis(answer_text(reply), self.server.model, MIN_WORDS)
            if skill is not None:
                return skill
        return None
