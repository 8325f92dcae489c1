"""Does the world, played again with the recorded actions, say what the record says?

Catches what no look at prompts alone can: a hint slipped into an observation, an edited line, a success that
never happened. It needs the environment on this machine and equal data (see the ``setting`` check).
"""

from __future__ import annotations

from collections.abc import Iterator

from seedbench.audit.case import Case
from seedbench.audit.prompts import where
from seedbench.audit.verdicts import Check, unchecked, verdict
from seedbench.contracts import Environment
from seedbench.errors import RetrieverFailed
from seedbench.rollout import panel_world_seed
from seedbench.types import AGENT_ENDINGS, Episode, Observation, Task

REPLAY = "Does the environment, played again with the recorded actions, say what the record says?"


def replay_faults(env: Environment, task: Task, episode: Episode) -> Iterator[str]:
    """The first place where the record of an episode departs from the environment, if any."""
    session = env.session()
    try:
        yield from _replay(env, session, task, episode)
    finally:
        session.close()


def _replay(env: Environment, session, task: Task, episode: Episode) -> Iterator[str]:  # type: ignore[no-untyped-def]
    start = session.reset(task, panel_world_seed(episode.task.id, episode.repeat))
    if start.instruction != episode.instruction:
        yield f"Task '{task.id}': the instruction reads '{episode.instruction[:60]}', not '{start.instruction[:60]}'."
        return
    if task.public != episode.task:
        yield f"Task '{task.id}': recorded under split or group {episode.task}, the environment has {task.public}."
        return
    now, over = start.observation, ""
    for i, turn in enumerate(episode.turns):
        place = where(episode, i)
        if over:
            yield f"{place}: the environment had ended the episode before."
            return
        if turn.observation != now:
            yield f"{place}: {_difference(turn.observation, now)}"
            return
        try:
            result = session.step(env.parse(turn.completion))
        except RetrieverFailed:
            raise
        except Exception as error:
            if episode.status != "env_error" or i + 1 < len(episode.turns):
                yield f"{place}: the environment raises {type(error).__name__} here; the record goes on."
            return
        if (turn.reward, turn.effect) != (result.reward, result.effect):
            real = f"{result.reward}, {result.effect}"
            yield f"{place}: reward {turn.reward}, effect {turn.effect}; the environment gives {real}."
            return
        now = result.observation
        over = "completed" if result.terminated else "step_limit" if result.truncated else ""
    if episode.last_observation != now:
        yield f"Task '{task.id}', last observation: {_difference(episode.last_observation, now)}"
    if episode.status in ("completed", "step_limit") and over != episode.status:
        yield f"Task '{task.id}': recorded as '{episode.status}', the environment says '{over or 'still running'}'."
    if episode.status in AGENT_ENDINGS:
        outcome = session.outcome()
        recorded = (episode.success, episode.score, episode.metrics)
        if recorded != (outcome.success, outcome.score, dict(outcome.metrics)):
            yield (
                f"Task '{task.id}': success {episode.success}, score {episode.score} on record; the environment "
                f"says {outcome.success}, {outcome.score}."
            )


def _difference(recorded: Observation, real: Observation) -> str:
    if recorded.text == real.text:
        extra = [a for a in recorded.legal if a not in real.legal] or [
            a for a in real.legal if a not in recorded.legal
        ]
        return f"the list of announced actions differs, e.g. '{(extra or ['their order'])[0][:60]}'."
    i = next(
        (k for k, (a, b) in enumerate(zip(recorded.text, real.text, strict=False)) if a != b),
        min(len(recorded.text), len(real.text)),
    )
    return (
        f"the recorded observation departs from the environment's at character {i}: "
        f"'{recorded.text[i : i + 40]}' instead of '{real.text[i : i + 40]}'."
    )


def check_replay(case: Case) -> Check:
    if case.env is None:
        return unchecked("replay", REPLAY, case.no_env)
    faults, gaps, played = [], [], 0
    for _, episode in case.evaluated():
        task = case.task(episode.task.id)
        if task is None:
            faults.append(f"Task '{episode.task.id}' does not exist in the environment.")
        elif not episode.turns:
            continue
        else:
            try:
                faults += replay_faults(case.env, task, episode)
            except RetrieverFailed as error:
                gaps.append(f"the retriever does not answer: {error}")
                break
            played += 1
    held = [
        f"{played} episodes played again: observations, announced actions, rewards and outcomes are equal."
    ]
    return verdict(
        "replay",
        REPLAY,
        faults,
        held if played and not faults else [],
        gaps or ([] if played else ["no episodes."]),
    )
