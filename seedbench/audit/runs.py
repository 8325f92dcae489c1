"""``seedbench audit RUN``: every check that a run folder allows, from its record and this installation.

Nothing here loads a model. ``reenact`` (:mod:`seedbench.audit.reenact`) does, and is asked for by name.
"""

from __future__ import annotations

from pathlib import Path

from seedbench.audit.case import Case
from seedbench.audit.deployment import (
    check_no_skill,
    check_panel,
    check_setting,
    check_sources,
    check_weights,
)
from seedbench.audit.overlap import check_overlap
from seedbench.audit.prompts import check_actions, check_length, check_prompts
from seedbench.audit.replay import check_replay
from seedbench.audit.verdicts import Report
from seedbench.contracts import Environment
from seedbench.store import Run

#: In the order of the report.
CHECKS = (
    check_prompts,
    check_actions,
    check_length,
    check_replay,
    check_panel,
    check_overlap,
    check_setting,
    check_weights,
    check_no_skill,
    check_sources,
)


def audit_run(path: str | Path, env: Environment | None = None, reenact: bool = False) -> Report:
    """All verdicts on one run folder. Raises what :class:`~seedbench.store.Run` raises for unreadable files.

    ``env`` replaces the environment that the configuration names (for imported runs, whose environment is
    not registered). ``reenact`` also loads the final checkpoint and lets it play some episodes again.
    """
    case = Case.open(Run(path), env)
    checks = [check(case) for check in CHECKS]
    if reenact:
        from seedbench.audit.reenact import check_reenact

        checks.append(check_reenact(case))
    return Report(str(path), tuple(checks))


def proof(run: Run) -> list[str]:
    """For the leaderboard: one sentence per failed check, nothing where all that can be checked holds."""
    report = audit_run(run.path)
    return [f"audit, {c.key}: {c.evidence[0]}" for c in report.checks if c.status == "fail"]
