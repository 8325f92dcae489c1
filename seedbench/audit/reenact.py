"""The final checkpoint, alone with ordinary history, plays again: does it do what the record says?

The strongest form of "nothing else was at work": no skill bank, memory or file of the training process is
there, so equal actions can only come from weights, history and seeds. Loads the model (and torch).
"""

from __future__ import annotations

from seedbench.audit.case import Case
from seedbench.audit.verdicts import Check, unchecked, verdict
from seedbench.audit.watch import Watched
from seedbench.contracts import Policy
from seedbench.errors import SeedbenchError

REENACT = "Does the final checkpoint, given ordinary history only, act again as recorded?"


def check_reenact(case: Case) -> Check:
    """Plays the first block of the ``final`` evaluation again and compares actions and prompt hashes."""
    if case.env is None:
        return unchecked("reenact", REENACT, case.no_env)
    stream = next((s for s in case.streams if s.label == "final" and not s.skills), None)
    if stream is None or case.feeds_no_model:
        return unchecked("reenact", REENACT, "There is no 'final' evaluation of a model on record.")
    from seedbench.evaluate import final_block, open_final

    watchers: list[Watched] = []

    def watch(policy: Policy) -> Policy:
        watchers.append(Watched(policy))
        return watchers[-1]

    try:
        again = final_block(case.run, case.env, watch, open_final(case.run))
    except SeedbenchError as error:
        return unchecked("reenact", REENACT, str(error))
    recorded = {(e.task.id, e.repeat): e for e in case.episodes(stream.name)}
    faults = []
    for e in again:
        old = recorded.get((e.task.id, e.repeat))
        if old is None:
            continue
        pairs = (
            [(t.action, t.prompt_sha256) for t in e.turns],
            [(t.action, t.prompt_sha256) for t in old.turns],
        )
        if pairs[0] != pairs[1]:
            step = next(
                (i for i, (a, b) in enumerate(zip(*pairs, strict=False)) if a != b), min(map(len, pairs))
            )
            faults.append(f"Task '{e.task.id}', repeat {e.repeat}: acts otherwise from turn {step + 1} on.")
    faults += [f"While it acted, the policy did this: {what}." for w in watchers for what in w.touched]
    held = [f"{len(again)} episodes acted again from the checkpoint, action for action; no file was opened."]
    return verdict("reenact", REENACT, faults, held if not faults else [])
