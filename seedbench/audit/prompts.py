"""Was every evaluation prompt ordinary history, and did the agent's own words become its actions?"""

from __future__ import annotations

from collections.abc import Iterator

from seedbench.audit.case import Case
from seedbench.audit.rebuild import Rebuilder
from seedbench.audit.verdicts import Check, unchecked, verdict
from seedbench.contracts import Environment
from seedbench.types import Episode, History, Observation, PastTurn

PROMPTS = (
    "Was every evaluation prompt made of instruction, observations and own actions alone, byte for byte?"
)
ACTIONS = "Is every recorded action what the agent's completion says?"
LENGTH = "Does a prompt show no more past turns than declared?"


def where(episode: Episode, turn: int) -> str:
    return f"Task '{episode.task.id}', repeat {episode.repeat}, turn {turn + 1}"


def prompt_faults(env: Environment, rebuilder: Rebuilder, episode: Episode) -> Iterator[str]:
    """One sentence per turn whose recorded prompt is not the one that ordinary history gives.

    An episode that declares an acting skill is rebuilt with exactly that skill.
    """
    skill = episode.acting_skill.text if episode.acting_skill else None
    for i, turn in enumerate(episode.turns):
        if not turn.prompt_sha256:
            yield f"{where(episode, i)}: the policy recorded no hash of its prompt."
        elif turn.prompt_sha256 not in rebuilder.hashes(env, episode.history(i), skill):
            yield f"{where(episode, i)}: the model was fed another prompt than ordinary history gives."


def action_faults(env: Environment, episode: Episode) -> Iterator[str]:
    for i, turn in enumerate(episode.turns):
        said = env.parse(turn.completion)
        if (said.text, said.valid, said.reason) != (turn.action, turn.valid, turn.reason):
            yield (
                f"{where(episode, i)}: the completion says '{said.text[:60]}' (valid: {said.valid}), the record "
                f"'{turn.action[:60]}' (valid: {turn.valid})."
            )


def check_prompts(case: Case) -> Check:
    if case.feeds_no_model:
        return unchecked("prompts", PROMPTS, f"Policy '{case.policy}' feeds no model; there are no prompts.")
    if case.rebuilder is None:
        return unchecked("prompts", PROMPTS, f"No way to rebuild prompts here: {case.no_rebuilder}")
    if case.env is None and not case.rebuilder.transcript:
        return unchecked("prompts", PROMPTS, case.no_env)
    faults, turns = [], 0
    for _, episode in case.evaluated():
        turns += len(episode.turns)
        faults += prompt_faults(case.env, case.rebuilder, episode)  # type: ignore[arg-type]
    held = [f"{turns - len(faults)} of {turns} prompts rebuilt with equal hashes ({case.rebuilder.name})."]
    return verdict(
        "prompts", PROMPTS, faults, held if turns else [], [] if turns else ["no turns on record."]
    )


def check_actions(case: Case) -> Check:
    if case.env is None:
        return unchecked("actions", ACTIONS, case.no_env)
    faults, turns = [], 0
    for _, episode in case.evaluated():
        turns += len(episode.turns)
        faults += action_faults(case.env, episode)
    held = [f"{turns} completions parsed to the recorded action."] if turns else []
    return verdict("actions", ACTIONS, faults, held, [] if turns else ["no turns on record."])


def check_length(case: Case) -> Check:
    """Renders marked turns and counts the marks; a transcript reader declares that it reads everything."""
    if case.rebuilder is not None and case.rebuilder.transcript:
        said = "The backbone reads the whole ordinary history as one transcript; the prompts check holds it to that."
        return verdict("history", LENGTH, [], [said])
    if case.env is None:
        return unchecked("history", LENGTH, case.no_env)
    declared, shown = case.env.spec.history_length, turns_shown(case.env)
    fault = f"The renderer shows {shown} past turns; the environment declares {declared}."
    return verdict(
        "history", LENGTH, [fault] if shown > declared else [], [f"{shown} of {declared} at most."]
    )


def turns_shown(env: Environment, extra: int = 3) -> int:
    """How many past turns a rendered prompt holds at most, found by marking them."""
    n = env.spec.history_length + extra
    past = tuple(PastTurn(Observation(f"sight{i:04d}"), f"act{i:04d}") for i in range(n))
    text = "".join(m.content for m in env.render(History("a task", past, Observation("now", ("look",)))))
    return sum(f"act{i:04d}" in text or f"sight{i:04d}" in text for i in range(n))
