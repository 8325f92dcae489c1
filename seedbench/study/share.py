"""A study small enough to publish: packed records and the report made from them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seedbench.errors import ConfigError
from seedbench.jsonl import write_json
from seedbench.packing import pack, require_empty
from seedbench.store import Run
from seedbench.study.folder import StudyFolder
from seedbench.study.model import RECORD, Planned, spelled_out
from seedbench.study.report import report


def pack_study(folder: StudyFolder, target: Path, training: Sequence[str] = ()) -> StudyFolder:
    """Copy a finished study to ``target`` as ``.jsonl.xz`` records without checkpoints, and report on the copy.

    The copy is a study folder again: ``study report`` and ``study status`` read it, and its tables are made
    from its own records. Kept are all evaluations, and for the arms in ``training`` the training episodes of
    the first seed. Raises :class:`ConfigError` for unfinished studies and unknown arms, :class:`RunConflict`
    when ``target`` holds something.
    """
    owed = folder.owed()
    if owed:
        raise ConfigError(
            f"{len(owed)} of {len(folder.runs)} runs of '{folder.path}' are not finished, e.g. {owed[0].name}. "
            "'seedbench study run' continues them."
        )
    known = {run.arm for run in folder.runs}
    strange = sorted(set(training) - known)
    if strange:
        raise ConfigError(f"There is no arm '{strange[0]}'. Arms: {', '.join(sorted(known))}.")
    require_empty(target)
    copy = StudyFolder(folder.study, target)
    for run in folder.runs:
        pack(folder.run_path(run), copy.run_path(run), _streams(folder, run, training))
    write_json(target / RECORD, spelled_out(folder.study).model_dump(mode="json"))
    report(copy)
    return copy


def _streams(folder: StudyFolder, run: Planned, training: Sequence[str]) -> list[str]:
    kept = run.arm in training and run.config.seed == folder.study.seeds[0]
    return [s.name for s in Run(folder.run_path(run)).streams() if s.phase == "eval" or kept]
