"""Do training and evaluation share tasks, or texts that are as good as the same task?

Two tasks are near-duplicates when both their openings (instruction and first observation) and what follows
on the oracle's way have a Jaccard similarity of word triples of at least :data:`SIMILAR`. Openings alone do
not decide: "seen" panels repeat rooms and goals on purpose and hide the things elsewhere. Text is compared in
small letters, letters and digits only.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from seedbench.audit.case import Case
from seedbench.audit.verdicts import Check, verdict
from seedbench.contracts import Environment
from seedbench.rollout import panel_world_seed
from seedbench.types import Task

OVERLAP = "Do training and evaluation share no task and no near-duplicate text?"
#: Jaccard similarity of word triples from which two texts count as the same.
SIMILAR = 0.9
#: Share of the panel that may be near-duplicates. A panel of seen rooms meets some by chance (5 of 140 in the
#: generated ALFWorld games); they are counted and named, a larger share fails.
TOLERATED = 0.05

Grams = frozenset[tuple[str, ...]]


def triples(text: str) -> Grams:
    """Word triples of normalised text; a shorter text is one tuple."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return frozenset(tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2)))


def similarity(a: Grams, b: Grams) -> float:
    return len(a & b) / len(a | b) if a or b else 1.0


def check_overlap(case: Case) -> Check:
    trained = {e.task.id for e in case.episodes("train")} if _has_training(case) else set()
    known = trained | case.training_ids()
    panel = case.panel_ids() | {e.task.id for _, e in case.evaluated()}
    faults = [f"Task '{i}' was trained on and evaluated." for i in sorted(known & panel)]
    if not known:
        gap = "the run trained on nothing" if not case.trained else "no training tasks are on record"
        return verdict("overlap", OVERLAP, faults, [] if case.trained else ["Nothing was trained."], [gap])
    held = (
        [f"{len(known)} training and {len(panel)} evaluation tasks have no id in common."]
        if not faults
        else []
    )
    if case.env is None:
        return verdict("overlap", OVERLAP, faults, held, [f"near-duplicate texts. {case.no_env}"])
    found = [(case.task(i), i) for i in sorted(panel)], [(case.task(i), i) for i in sorted(known - panel)]
    evaluated, training = ([t for t, _ in side if t is not None] for side in found)
    same, alike = near_duplicates(case.env, evaluated, training)
    share = len(same) / max(len(evaluated), 1)
    named = [f"'{a}' is as good as training task '{b}' (similarity {s:.2f})." for a, b, s in same]
    held.append(
        f"{len(same)} of {len(evaluated)} panel tasks are near-duplicates of a training task (triples, Jaccard >= "
        f"{SIMILAR}, tolerated {TOLERATED:.0%}); {alike} share only the opening."
    )
    if share > TOLERATED:
        faults += named
    else:
        held += named[:3]
    return verdict("overlap", OVERLAP, faults, held)


def _has_training(case: Case) -> bool:
    return any(s.phase == "train" for s in case.run.streams())


def near_duplicates(
    env: Environment, evaluated: Sequence[Task], training: Sequence[Task]
) -> tuple[list[tuple[str, str, float]], int]:
    """``(evaluated id, training id, similarity of what follows)`` per duplicated task, and the number of
    evaluated tasks of which only the opening is repeated."""
    openings = {t.id: triples(_opening(env, t)) for t in (*evaluated, *training)}
    often = Counter(gram for t in training for gram in openings[t.id])
    index: dict[tuple[str, ...], list[Task]] = defaultdict(list)
    for t in training:
        for gram in _rarest(openings[t.id], often):
            index[gram].append(t)
    same, alike, ways = [], 0, {}
    for t in evaluated:
        mine = openings[t.id]
        near = {o.id: o for gram in mine for o in index.get(gram, ())}
        near = {i: o for i, o in near.items() if similarity(mine, openings[i]) >= SIMILAR}
        best = ("", 0.0)
        for o in near.values():
            for x in (t, o):
                if x.id not in ways:
                    ways[x.id] = triples(_way(env, x))
            s = similarity(ways[t.id], ways[o.id])
            best = max(best, (o.id, s), key=lambda pair: pair[1])
        if best[1] >= SIMILAR:
            same.append((t.id, *best))
        elif near:
            alike += 1
    return same, alike


def _rarest(grams: Grams, often: Mapping[tuple[str, ...], int]) -> Iterable[tuple[str, ...]]:
    """Of a set with n members, (1 - s) * n + 1 cannot all be missing from another with Jaccard >= s."""
    return sorted(grams, key=lambda g: (often[g], g))[: int((1 - SIMILAR) * len(grams)) + 1]


def _opening(env: Environment, task: Task) -> str:
    session = env.session()
    try:
        start = session.reset(task, panel_world_seed(task.id, 0))
    finally:
        session.close()
    return f"{start.instruction} {start.observation.text}"


def _way(env: Environment, task: Task) -> str:
    """What the oracle does and sees after the opening. Tasks without a way are told apart by their start."""
    session, lines = env.session(), []
    try:
        session.reset(task, panel_world_seed(task.id, 0))
        for _ in range(env.spec.max_steps):
            action = session.oracle()
            result = session.step(env.parse(env.wrap(action)))
            lines += [action, result.observation.text]
            if result.terminated or result.truncated:
                break
    finally:
        session.close()
    return " ".join(lines)
