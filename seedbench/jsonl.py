"""Files that survive: append-only lines, atomic replacement, and readers that know a torn last line."""

from __future__ import annotations

import contextlib
import json
import lzma
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from seedbench.errors import DataCorrupt, DataMissing, RunConflict, StorageFull
from seedbench.records import Record, canonical_json

try:
    import fcntl
except ImportError:  # Windows: no advisory lock, two writers are then the user's care
    fcntl = None  # type: ignore[assignment]

#: Fields that hold wall-clock facts; byte comparisons of two runs leave them out.
_TIMING = re.compile(r"(.*_)?(seconds|started|finished|per_second)")


@contextlib.contextmanager
def storage(path: Path, verb: str) -> Iterator[None]:
    """Turn any ``OSError`` inside into :class:`StorageFull` with what, where and what to do."""
    try:
        yield
    except OSError as error:
        raise StorageFull(
            f"Cannot {verb} '{path}': {error.strerror or error}. Everything written before is kept. "
            "Free space or repair permissions, then continue the run with --resume."
        ) from error


class Appender:
    """One append-only file of lines. Opening cuts a torn last line off.

    A line is in the hands of the operating system when :meth:`append` returns, and on disk at the latest
    ``fsync_seconds`` later (0: at once). When a write fails, the half line is taken back.
    """

    def __init__(self, path: Path, fsync_seconds: float) -> None:
        self.path, self.fsync_seconds, self._synced = path, fsync_seconds, time.monotonic()
        with storage(path, "open"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            self._size = _whole_size(self._fd)
            os.ftruncate(self._fd, self._size)

    def append(self, line: str) -> None:
        data = line.encode("ascii") + b"\n"
        try:
            with storage(self.path, "append to"):
                written = os.write(self._fd, data)
                while written < len(data):
                    written += os.write(self._fd, data[written:])
        except StorageFull:
            with contextlib.suppress(OSError):  # a torn line that stays is cut off on resume
                os.ftruncate(self._fd, self._size)
            raise
        self._size += len(data)
        if time.monotonic() - self._synced >= self.fsync_seconds:
            self.sync()

    def sync(self) -> None:
        with storage(self.path, "flush"):
            os.fsync(self._fd)
        self._synced = time.monotonic()

    def close(self) -> None:
        try:
            self.sync()
        finally:
            os.close(self._fd)


def _whole_size(fd: int) -> int:
    """Bytes up to and with the last newline."""
    end = os.fstat(fd).st_size
    while end > 0:
        start = max(0, end - 65536)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def read_lines(path: str | Path) -> Iterator[Record]:
    """Objects of a ``.jsonl`` file or, when that is absent, of ``<path>.xz``; nothing when both are.

    A last line without newline was torn by a kill and is left out. Any other unreadable line raises
    :class:`DataCorrupt` with its number.
    """
    path = Path(path)
    packed = path if path.suffix == ".xz" else path.with_name(path.name + ".xz")
    opener = open if path.is_file() and path.suffix != ".xz" else lzma.open
    source = path if opener is open else packed
    if not source.is_file():
        return
    try:
        with opener(source, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    yield _parse(line, source, number)
    except (lzma.LZMAError, EOFError) as error:
        raise DataCorrupt(
            f"'{source}' is not a whole xz file ({error}). Restore it from its origin."
        ) from error


def _parse(line: bytes, path: Path, number: int) -> Record:
    try:
        value = json.loads(line)
    except ValueError as error:
        value = error
    if not isinstance(value, dict):
        raise DataCorrupt(
            f"'{path}' line {number} is not a JSON object. The file was edited or the disk failed: "
            "restore it, or delete that line and resume the run to play the episode again."
        )
    return value


def read_json(path: Path) -> dict[str, Any]:
    """One JSON object. Raises :class:`DataMissing` or :class:`DataCorrupt`."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise DataMissing(f"'{path}' is missing. Is '{path.parent}' a whole run folder?") from None
    except ValueError as error:
        raise DataCorrupt(f"'{path}' is not JSON ({error}). Restore it from its origin.") from error
    if not isinstance(value, dict):
        raise DataCorrupt(f"'{path}' holds no JSON object. Restore it from its origin.")
    return value


def write_bytes(path: Path, data: bytes) -> None:
    """Replace a file in one step: readers see the old content or the new, never half."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with storage(path, "write"):
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            _sync_folder(path.parent)
    except StorageFull:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Canonical JSON, replaced atomically."""
    write_bytes(path, (canonical_json(value) + "\n").encode("ascii"))


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # a folder cannot be opened there
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def lock(folder: Path) -> BinaryIO | None:
    """Hold the folder for writing until closed. Raises :class:`RunConflict` when another process does."""
    if fcntl is None:
        return None
    path = folder / ".lock"
    with storage(path, "open"):
        file = open(path, "ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise RunConflict(
            f"Another process is writing '{folder}'. Wait for it, or choose another run folder."
        ) from None
    except OSError:  # a file system without locks
        file.close()
        return None
    return file


def without_timing(value: Any) -> Any:
    """The value without fields that hold wall-clock facts, at any depth."""
    if isinstance(value, dict):
        return {k: without_timing(v) for k, v in value.items() if not _TIMING.fullmatch(k)}
    if isinstance(value, list):
        return [without_timing(v) for v in value]
    return value
