"""A run folder as small, byte-stable files: for submissions and for measured results in a repository."""

from __future__ import annotations

import lzma
from collections.abc import Iterable
from pathlib import Path

from seedbench.errors import DataMissing, RunConflict
from seedbench.jsonl import storage, write_bytes
from seedbench.records import canonical_json
from seedbench.store import Run, Stream, read_lines

#: Files copied as they are.
PLAIN = ("manifest.json", "config.json", "STATUS.json")
#: Line files that are compressed, beside the episode streams.
LINES = ("metrics.jsonl", "costs.jsonl")


def pack(source: str | Path, target: str | Path, streams: Iterable[str] | None = None) -> Path:
    """Copy a run's records to ``target``, episode and metric lines as ``.jsonl.xz``, no checkpoints.

    ``streams`` names the episode streams to take (default: every evaluation). Records that do not count
    (torn lines, errors that were played again) are left out; the same records give the same bytes. Raises
    :class:`RunConflict` when ``target`` holds something, :class:`DataMissing` for an absent stream.
    """
    run, target = Run(source), Path(target)
    require_empty(target)
    present = {s.name for s in run.streams()}
    names = (
        sorted(present - {"train"}) if streams is None else sorted({Stream.parse(s).name for s in streams})
    )
    absent = [n for n in names if n not in present]
    if absent:
        raise DataMissing(
            f"'{run.path}' has no episodes '{absent[0]}'. It has: {', '.join(sorted(present))}."
        )
    with storage(target, "create"):
        (target / "episodes").mkdir(parents=True, exist_ok=True)
    for name in names:
        _write(target / "episodes" / f"{name}.jsonl.xz", run.records(name))
    for name in LINES:
        _write(target / f"{name}.xz", read_lines(run.path / name))
    for name in PLAIN:
        write_bytes(target / name, (run.path / name).read_bytes())
    return target


def require_empty(target: Path) -> None:
    """Raise :class:`RunConflict` when the folder ``target`` holds something."""
    if target.exists() and any(target.iterdir()):
        raise RunConflict(f"'{target}' is not empty. Choose another folder, or remove it first.")


def _write(path: Path, records: Iterable[dict]) -> None:
    text = "".join(canonical_json(r) + "\n" for r in records)
    if text:
        write_bytes(path, lzma.compress(text.encode("ascii"), preset=6))
