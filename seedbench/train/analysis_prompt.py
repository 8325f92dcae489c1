"""The analysis request for chat models (methods page 2.6, in this project's words).

Every step is listed unless the caller's context is too small; what is left out is said with its number
(BR-091). Only the visible trajectory and its outcome go in.
"""

from __future__ import annotations

from seedbench.types import Episode, Message, Turn

_TASK = """You review a finished episode of a text-based agent and write down what to remember.

Task: {instruction}
Outcome: {outcome}

Trajectory ({n} steps):
{steps}
Final observation: {last}

Write one JSON object with exactly two string fields and nothing else:
"episode_summary": one or two sentences on what happened;
"episode_skill": advice for this task. After a success, the workflow: the decision rule and the order of
steps. After a failure, the mistakes to avoid and what to do instead. Use only facts of this trajectory."""


def analysis_messages(episode: Episode, shown: int | None = None) -> tuple[Message, ...]:
    """One user message. The raw completion of each step is shown, with a mark where its format was invalid.

    ``shown``: number of steps to list (default all), half of them from the beginning and half from the end.
    """
    n = len(episode.turns)
    shown = n if shown is None else min(shown, n)
    head, tail = (shown + 1) // 2, shown // 2
    lines = [_step(i, t) for i, t in enumerate(episode.turns, 1)]
    if shown < n:
        lines[head : n - tail] = [f"({n - shown} steps left out here)\n"]
    return (
        Message(
            "user",
            _TASK.format(
                instruction=episode.instruction,
                outcome="success" if episode.success else "failure",
                n=n,
                steps="".join(lines),
                last=episode.last_observation.text,
            ),
        ),
    )


def _step(number: int, turn: Turn) -> str:
    mark = "" if turn.valid else "(the response broke the format)\n"
    return f"[Step {number}]\nObservation: {turn.observation.text}\nResponse: {turn.completion}\n{mark}"
