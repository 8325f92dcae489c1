"""The two dialects of search-based question answering: limits, prompts, parsing, observations.

* ``sdar`` (and ``seed``, the same dialect with SEED's settings, which do not differ for search): the
  prompt is built anew at each step from the question and the last four queries with their results.
  Source: agent_system/environments of SDAR 8b85c231, methods.md section 4.
* ``search-r1``: one growing transcript. Source: search_r1/llm_agent/generation.py of Search-R1 a14dc3a4.

Prompts carry the content of the sources' prompts in this project's words. Where a source has a fault, the
rule here is one and stands in docs/search_qa.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from seedbench.parsing import strip_reasoning, tag_counts
from seedbench.search.base import Hit
from seedbench.types import Action, History, Message

#: A longer query is not sent: no engine reads it, and it would fill the history of every later prompt.
MAX_QUERY_CHARS = 2_000
FORMS = ("<search> your query </search>", "<answer> your answer </answer>")
NO_RESULTS = "No search results found."

Form = Literal["json", "plain", "transcript"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """``max_steps`` counts completions. On the last one a search is not carried out, in either dialect."""

    name: str
    max_steps: int
    history_length: int
    invalid_penalty: float
    topk: int = 3
    transcript: bool = False


DIALECTS = {
    "sdar": Dialect("sdar", 4, 4, 0.01),
    "seed": Dialect("seed", 4, 4, 0.01),
    "search-r1": Dialect("search-r1", 5, 4, 0.0, transcript=True),
}

_SEARCH = re.compile(r"<search>(.*?)</search>", re.DOTALL | re.IGNORECASE)
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_EITHER = re.compile(r"<(search|answer)>(.*?)</\1>", re.DOTALL)
_INFORMATION = re.compile(r"<information>(.*)</information>", re.DOTALL)
_DOC = re.compile(r"(?:^|\n)Doc \d+(?:: |\(Title: )")

_TASK = """You are an agent that answers a question step by step with the help of a search engine.
Your question: {question}
"""
_PAST = """
You have already taken {steps} step(s). These were your actions and what they returned:
{memory}
"""
_CHOICE = """
Now think about what is known and what is missing, inside <think> </think>. Then do exactly one of the two:
(1) if a fact is missing, call the search engine: <search> your query </search>
(2) if you know enough, give the short final answer without explanation: <answer> your answer </answer>
"""
_R1 = """Answer the question below. Reason inside <think> and </think> first, each time you learn something. \
If a fact is missing, call a search engine with <search> query </search>; the best results come back between \
<information> and </information>. Search as often as you need. When nothing is missing, write the answer \
inside <answer> and </answer> without explanation, for example <answer> Oslo </answer>. Question: {question}
"""
_R1_INVALID = """
That action was not valid. A query belongs between <search> and </search>, \
the final answer between <answer> and </answer>. I try again.
"""


def wrap(kind: Literal["search", "answer"], text: str) -> str:
    return f"<{kind}>{text}</{kind}>"


def parse(completion: str, dialect: Dialect) -> Action:
    """The action of a completion. Closed reasoning is removed first, so a tag quoted there never acts.

    Reasons: ``empty`` (no text), ``no_tags`` (no complete block), ``both_tags``, ``repeated_tag``,
    ``empty_query``, ``query_too_long``.
    """
    if not completion.strip():
        return Action("", False, "empty")
    body = strip_reasoning(completion)
    cut = _cut(body)
    if dialect.transcript:
        return _parse_transcript(completion, body, cut)
    match = _SEARCH.search(cut)
    kind: Literal["search", "answer"] = "search" if match else "answer"
    match = match or _ANSWER.search(cut)
    if match is None:
        return Action("", False, "no_tags")
    text = match[1].strip()
    action, valid, reason = _checked(kind, text, wrap(kind, text))
    counts = tag_counts(body, "search", "answer")
    if valid:
        reason = "both_tags" if all(counts.values()) else "repeated_tag" if max(counts.values()) > 1 else ""
    return Action(action, not reason, reason)


def _cut(text: str) -> str:
    """Text up to the first closing search tag, else up to the first closing answer tag (both sources)."""
    for tag in ("</search>", "</answer>"):
        head, found, _ = text.partition(tag)
        if found:
            return head + tag
    return text


def _parse_transcript(completion: str, body: str, cut: str) -> Action:
    """Search-R1 keeps the whole completion up to the closing tag: the transcript holds the reasoning too."""
    rest = body[len(cut) :]
    kept = (completion[: len(completion) - len(rest)] if completion.endswith(rest) else cut).strip()
    match = _EITHER.search(cut)
    if match is None:
        return Action(kept, False, "no_tags")
    return Action(*_checked(match[1], match[2].strip(), kept))


def _checked(kind: str, text: str, action: str) -> tuple[str, bool, str]:
    """Refuse queries that no engine can answer; the turn is used up and nothing is sent."""
    if kind == "search" and not text:
        return action, False, "empty_query"
    if kind == "search" and len(text) > MAX_QUERY_CHARS:
        return "", False, "query_too_long"
    return action, True, ""


def act_of(action: str) -> tuple[str, str]:
    """``(kind, text)`` of an action's text; kind is ``search``, ``answer`` or ``""`` (nothing executable)."""
    match = _EITHER.search(_cut(strip_reasoning(action)))
    return (match[1], match[2].strip()) if match else ("", "")


def observation(hits: Sequence[Hit], form: Form) -> str:
    """What a search returns, as text.

    ``json`` is verl-agent's (documents inside a JSON string, so newlines, quotes and non-ASCII letters
    appear escaped), ``transcript`` Search-R1's, ``plain`` verl-agent's without the JSON layer.
    """
    if form == "transcript":
        parts = [c.contents.partition("\n") for c in hits]
        docs = "".join(f"Doc {i}(Title: {t}) {rest}\n" for i, (t, _, rest) in enumerate(parts, 1))
        return f"\n\n<information>{docs.strip()}</information>\n\n"
    text = "\n".join(f"Doc {i}: {h.contents}" for i, h in enumerate(hits, 1)) or NO_RESULTS
    if form == "json":
        return f"<information>{json.dumps({'result': text})}</information>"
    return f"<information>\n{text}\n</information>"


def invalid_observation(dialect: Dialect) -> str:
    """Search-R1 tells the agent; verl-agent answers with nothing."""
    return _R1_INVALID if dialect.transcript else ""


@lru_cache(maxsize=16_384)
def documents(text: str) -> tuple[tuple[str, str], ...]:
    """``(title, text)`` of each document in an observation: the inverse of :func:`observation`."""
    found = _INFORMATION.search(text)
    if found is None:
        return ()
    body = found[1]
    if body.startswith("{"):
        try:
            body = json.loads(body)["result"]
        except (ValueError, KeyError, TypeError):
            return ()
    starts = [(m.start(), m.end(), m[0].endswith("(Title: ")) for m in _DOC.finditer(body)]
    ends = [*(s for s, _, _ in starts[1:]), len(body)][: len(starts)]
    out = []
    for (_, begin, r1), end in zip(starts, ends, strict=True):
        title, _, rest = body[begin:end].partition(") " if r1 else "\n")
        out.append((title.strip().strip('"'), rest.strip()))
    return tuple(out)


def results(history: History) -> list[tuple[str, str]]:
    """``(action, observation that followed)`` of each past turn."""
    shown = [t.observation.text for t in history.past] + [history.observation.text]
    return [(turn.action, after) for turn, after in zip(history.past, shown[1:], strict=True)]


def render(history: History, dialect: Dialect) -> tuple[Message, ...]:
    """The prompt of a step, from ordinary history alone."""
    return _render_transcript(history) if dialect.transcript else _render_steps(history, dialect)


def _render_steps(history: History, dialect: Dialect) -> tuple[Message, ...]:
    parts = [_TASK.format(question=history.instruction)]
    done = results(history)
    if done:
        first = max(0, len(done) - dialect.history_length)
        lines = [f"Step {first + i}:{a} {o}\n" for i, (a, o) in enumerate(done[first:], 1)]
        parts.append(_PAST.format(steps=len(done), memory="\n".join(lines)))
    return (Message("user", "".join([*parts, _CHOICE])),)


def _render_transcript(history: History) -> tuple[Message, ...]:
    question = history.instruction.strip()
    question = question if question.endswith("?") else question + "?"
    user = Message("user", _R1.format(question=question))
    transcript = "".join(a + o for a, o in results(history))
    return (user, Message("assistant", transcript)) if transcript else (user,)
