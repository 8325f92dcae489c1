"""``seedbench audit --canary ENV``: does anything hidden reach what a policy sees?

Some tasks are played as they are, by random choices and by the oracle's plan, and then again with the same
actions in changed worlds: once with marks ("canaries") planted in every hidden text, oracle plan and skill,
once with hidden halves exchanged between tasks. Everything shown must stay the same byte for byte, and no
mark may turn up in a view, a prompt, an action (search queries included) or a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from seedbench.audit import hidden
from seedbench.audit.prompts import LENGTH, turns_shown
from seedbench.audit.verdicts import Check, Report, verdict
from seedbench.audit.watch import Watched
from seedbench.contracts import Environment, Policy
from seedbench.policies.scripted import OraclePolicy, RandomPolicy, ScriptPolicy
from seedbench.records import canonical_json, to_record
from seedbench.rollout import evaluation_job, play
from seedbench.types import Episode, Task, View

MARK = "canary-7f3e91c5"
HIDDEN = "Does no hidden text reach a view, prompt, action or record?"
HELPERS = (
    "Does nothing the oracle, the skill bank or an annotator says reach a view, prompt, action or record?"
)
EXCHANGE = "Do prompts stay the same, byte for byte, when hidden halves are exchanged between tasks?"
FILES = "Does the policy act without opening files, connections or programs?"
CLEAN = "Do prompts hold no skill?"


@dataclass(frozen=True, slots=True)
class Played:
    """One episode, with what the policy was shown and what it answered at every turn."""

    task: Task
    episode: Episode
    views: list[View]
    answers: list[str]
    touched: list[str]


def play_once(env: Environment, task: Task, policy: Policy) -> Played:
    spy = Watched(policy)
    (episode,) = play(env, spy, [evaluation_job(task, 0, 0)])
    return Played(task, episode, spy.views.get(0, []), spy.answers.get(0, []), spy.touched)


def replayed(env: Environment, task: Task, before: Played) -> Played:
    """The same actions in another world; stops where the first one stopped."""
    said = iter(before.answers)
    policy = ScriptPolicy("replay", lambda view: next(said, ""))
    return play_once(env, task, policy)


def audit_environment(
    env: Environment, tasks: Sequence[Task], policy: Callable[[], Policy] | None = None
) -> Report:
    """Verdicts on an environment (and its renderer and sessions) over ``tasks``.

    ``policy`` makes a policy to be watched as well, beside random choices and the oracle's plan.
    """
    makers: list[Callable[[], Policy]] = [RandomPolicy, OraclePolicy]
    clean = [play_once(env, t, make()) for t in tasks for make in makers]
    own = [play_once(env, t, policy()) for t in tasks] if policy else []
    return Report(
        f"environment {env.spec.name} ({env.spec.variant}), {len(tasks)} tasks",
        (
            _hidden(env, clean, own, policy),
            _helpers(env, tasks, clean, policy),
            _exchange(env, tasks, clean),
            _no_skill(clean + own),
            _files(clean + own),
            _length(env),
        ),
    )


def _hidden(
    env: Environment, clean: Sequence[Played], own: Sequence[Played], policy: Callable[[], Policy] | None
) -> Check:
    faults, held, empty = [], 0, 0
    for before in clean:
        twin = hidden.plant(env, before.task, MARK)
        if twin is None:
            empty += 1
            continue
        after = replayed(*twin, before)
        held += 1
        faults += [*marks(after), *changes(before, after, "hidden texts are marked")]
    for before in own:
        twin = hidden.plant(env, before.task, MARK)
        if twin is not None and policy is not None:
            faults += marks(play_once(*twin, policy()))
    gaps = [f"{empty} plays: the hidden half holds no text"] if empty else []
    return verdict("hidden fields", HIDDEN, dict.fromkeys(faults), _said(held, "marked hidden halves"), gaps)


def _helpers(
    env: Environment, tasks: Sequence[Task], clean: Sequence[Played], policy: Callable[[], Policy] | None
) -> Check:
    twin = hidden.with_marked_helpers(env, MARK)
    faults = []
    for before in clean:
        after = replayed(twin, before.task, before)
        faults += [*marks(after), *changes(before, after, "oracle and skills are marked")]
    for task in tasks if policy else ():
        faults += marks(play_once(twin, task, policy()))  # type: ignore[misc]
    return verdict(
        "helpers", HELPERS, dict.fromkeys(faults), _said(len(clean), "a marked oracle, bank and annotator")
    )


def _exchange(env: Environment, tasks: Sequence[Task], clean: Sequence[Played]) -> Check:
    faults, held, gaps = [], 0, 0
    after_of = {t.id: tasks[(i + 1) % len(tasks)] for i, t in enumerate(tasks)}
    for before in clean:
        other = after_of[before.task.id]
        twin = hidden.exchange(env, before.task, other) if other is not before.task else None
        if twin is None:
            gaps += 1
            continue
        held += 1
        faults += changes(before, replayed(*twin, before), f"its hidden half is that of '{other.id}'")
    missing = [f"{gaps} plays: hidden and visible half cannot be separated"] if gaps else []
    return verdict(
        "exchange", EXCHANGE, dict.fromkeys(faults), _said(held, "exchanged hidden halves"), missing
    )


def _said(number: int, what: str) -> list[str]:
    return [f"{number} plays with {what}: every prompt byte for byte as before."] if number else []


def _no_skill(plays: Sequence[Played]) -> Check:
    faults = [
        f"Task '{p.task.id}', turn {i + 1}: the view holds a skill."
        for p in plays
        for i, view in enumerate(p.views)
        if view.skill is not None
    ]
    turns = sum(len(p.views) for p in plays)
    return verdict("no skill", CLEAN, faults, [f"{turns} views without a skill."])


def _files(plays: Sequence[Played]) -> Check:
    faults = [f"Task '{p.task.id}': the policy {what}." for p in plays for what in p.touched]
    return verdict("files", FILES, dict.fromkeys(faults), [f"{len(plays)} plays, nothing touched."])


def _length(env: Environment) -> Check:
    declared, shown = env.spec.history_length, turns_shown(env)
    fault = f"The renderer shows {shown} past turns; the environment declares {declared}."
    held = [f"A rendered prompt shows {shown} past turns; {declared} are declared."]
    return verdict("history", LENGTH, [fault] if shown > declared else [], held)


def marks(played: Played) -> Iterator[str]:
    """Where the mark turned up in what a policy saw, said, or left on record."""
    for i, view in enumerate(played.views):
        place = f"Task '{played.task.id}', turn {i + 1}"
        if any(MARK in m.content for m in view.messages):
            yield f"{place}: the mark is in the prompt."
        seen = (view.history.instruction, view.history.observation.text, *view.history.observation.legal)
        if any(MARK in text for text in seen):
            yield f"{place}: the mark is in instruction, observation or announced actions."
        if any(MARK in c for c in view.choices):
            yield f"{place}: the mark is among the candidate actions."
        if i < len(played.answers) and MARK in played.answers[i]:
            yield f"{place}: the policy says the mark."
    record = to_record(played.episode, "eval", 0)
    for part, value in sorted(record.items()):
        if part != "turns" and MARK in canonical_json(value):
            yield f"Task '{played.task.id}': the mark is in '{part}' of the record."
    if MARK in canonical_json(record["turns"]):
        yield f"Task '{played.task.id}': the mark is in the recorded turns."


def changes(before: Played, after: Played, why: str) -> Iterator[str]:
    """The first turn that both plays reached and at which another thing was shown."""
    for i, (a, b) in enumerate(zip(before.views, after.views, strict=False)):
        if (a.history, a.messages, a.choices) != (b.history, b.messages, b.choices):
            yield f"Task '{before.task.id}', turn {i + 1}: another prompt is shown when {why}."
            return
    if not after.views and before.views:
        yield f"Task '{before.task.id}': the play broke off when {why}: {after.episode.error or 'no view'}."
