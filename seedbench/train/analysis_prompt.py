"""The analysis request for chat models (methods page 2.6, in this project's words).

Every step is listed; nothing is cut silently (BR-091). Only the visible trajectory and its outcome go in.
"""

from __future__ import annotations

from seedbench.types import Episode, Message

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


def analysis_messages(episode: Episode) -> tuple[Message, ...]:
    """One user message. The raw completion of each step is shown, with a mark where its format was invalid."""
    steps = "".join(
        f"[Step {i}]\nObservation: {t.observation.text}\nResponse: {t.completion}\n"
        + ("" if t.valid else "(the response broke the format)\n")
        for i, t in enumerate(episode.turns, 1)
    )
    return (
        Message(
            "user",
            _TASK.format(
                instruction=episode.instruction,
                outcome="success" if episode.success else "failure",
                n=len(episode.turns),
                steps=steps,
                last=episode.last_observation.text,
            ),
        ),
    )
