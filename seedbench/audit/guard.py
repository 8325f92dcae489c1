"""The same proof as the audit's, at the moment an evaluation episode is written."""

from __future__ import annotations

from seedbench.audit.prompts import action_faults, prompt_faults
from seedbench.audit.rebuild import Rebuilder
from seedbench.contracts import Environment
from seedbench.errors import LeakFound
from seedbench.types import Episode


def check_episode(env: Environment, rebuilder: Rebuilder | None, episode: Episode) -> None:
    """Raise :class:`LeakFound` when an ordinary evaluation episode rests on more than ordinary history.

    Without a ``rebuilder`` (a backbone that has none yet) only skills and actions are looked at.
    """
    if episode.acting_skill is not None or episode.hindsight is not None:
        raise LeakFound(
            f"The evaluation episode of task '{episode.task.id}' holds a skill. Evaluate with skills in a stream "
            "of its own: seedbench eval RUN --with-skills."
        )
    faults = list(action_faults(env, episode))
    if rebuilder is not None:
        faults += prompt_faults(env, rebuilder, episode)
    if faults:
        raise LeakFound(
            f"{faults[0]} ({len(faults)} such turns in this episode.) The evaluation is stopped; 'seedbench audit' "
            "on the run folder shows all of them."
        )
