"""The run folder: what a run writes, how it survives being killed, and how it is read again.

Layout (``run_dir/``)::

    manifest.json        circumstances, see :mod:`seedbench.manifest`
    config.json          resolved configuration, canonical JSON (one line)
    STATUS.json          {"state": "running|finished|failed|interrupted", "update": int, "updates": int,
                          "message": str}
    episodes/train.jsonl         training episodes, one line each (:mod:`seedbench.records`)
    episodes/eval-<label>.jsonl  evaluation episodes, see :class:`Stream`
    metrics.jsonl        {"update": int, name: number, ...} after each update
    costs.jsonl          {"update": int, "stage": "rollout|analysis|scoring|sft|update|evaluation",
                          "seconds": float, "tokens": int, "flops": float}; work before the
                         first update (warm start) has update -1
    checkpoints/         written by the trainer, not read here

``config.json``::

    {"env": {"name": ..., "options": {...}}, "method": {"name": ..., ...}, "backbone": {"name": ..., ...},
     "seed": int, "train": {"updates": int, "data_fraction": float, ...},
     "eval": {"panel": ..., "temperature": ..., ...}}

plus, optionally, ``"label"``: the row name a study gives this arm.

Rules. A line is written whole, by one write, after the lines before it; a torn last line (the process was
killed) is ignored by readers and cut off on resume. An episode is known by (update, task id, repeat): the
first record that ended by the agent's own doing counts, and only an infrastructure error is replaced by a
later one. Files may also be stored as ``.jsonl.xz`` (committed records); those are read-only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbench.errors import ConfigError, DataMissing, RunConflict
from seedbench.jsonl import (
    Appender,
    lock,
    read_json,
    read_lines,
    storage,
    without_timing,
    write_bytes,
    write_json,
)
from seedbench.records import Key, Record, canonical_json, episode_key, from_record
from seedbench.types import AGENT_ENDINGS, Episode

_STREAM = re.compile(r"(train|eval-([A-Za-z0-9._-]+?)(\+skills)?(?:@([A-Za-z0-9._-]+))?)")
#: Manifest entries that must not change when a run is continued (BR-097, BR-098).
_IDENTITY = ("env", "panels", "prompt_sha256", "bank_sha256", "model")


def config_sha256(config: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(config).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Stream:
    """Name of an episode file: ``train`` or ``eval-<label>[+skills][@<panel>]``.

    ``label`` is ``u0040`` (after 40 updates) or ``final``; ``+skills`` marks an evaluation whose prompts
    held a skill (the papers' starred rows); ``panel`` is a key of the manifest's ``panels``.
    """

    name: str
    phase: str
    label: str = ""
    skills: bool = False
    panel: str = "eval"

    @classmethod
    def parse(cls, name: str) -> Stream:
        match = _STREAM.fullmatch(name)
        if match is None:
            raise ConfigError(
                f"'{name}' is no episode stream. Use 'train' or 'eval-<label>[+skills][@<panel>]'."
            )
        if name == "train":
            return cls(name, "train", panel="train")
        return cls(name, "eval", match[2], match[3] is not None, match[4] or "eval")


class Run:
    """A run folder, for reading. Cheap to make; files are read when asked for."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / "config.json").is_file():
            raise DataMissing(
                f"'{self.path}' is no run folder: it has no config.json. Give one made by 'seedbench run'."
            )
        self.config: dict[str, Any] = read_json(self.path / "config.json")
        self.manifest: dict[str, Any] = read_json(self.path / "manifest.json")

    @property
    def id(self) -> str:
        """Twelve hex digits over configuration, data, panels and weights: what table cells cite."""
        manifest = self.manifest
        panels = {name: panel.get("sha256") for name, panel in manifest.get("panels", {}).items()}
        facts = {
            "config": self.config,
            "data": manifest.get("env", {}).get("fingerprint"),
            "panels": panels,
            "model": manifest.get("model", {}).get("sha256"),
        }
        return config_sha256(facts)[:12]

    @property
    def status(self) -> dict[str, Any]:
        return read_json(self.path / "STATUS.json")

    def streams(self) -> list[Stream]:
        """Episode streams present, sorted by name."""
        folder = self.path / "episodes"
        names = {p.name.removesuffix(".xz").removesuffix(".jsonl") for p in folder.glob("*.jsonl*")}
        return [Stream.parse(n) for n in sorted(names)]

    def records(self, stream: str) -> list[Record]:
        """Records that count, one per key, in the order of their first appearance."""
        Stream.parse(stream)
        best: dict[Key, Record] = {}
        for record in read_lines(self.path / "episodes" / f"{stream}.jsonl"):
            key = episode_key(record)
            if key not in best or not is_good(best[key]):
                best[key] = record
        return list(best.values())

    def episodes(self, stream: str) -> list[Episode]:
        return [from_record(r) for r in self.records(stream)]

    def metrics(self) -> list[Record]:
        return list(read_lines(self.path / "metrics.jsonl"))

    def costs(self) -> list[Record]:
        return list(read_lines(self.path / "costs.jsonl"))


class RunStore(Run):
    """A run folder, for the one process that writes it. Use as a context manager or call ``close``."""

    def __init__(self, path: str | Path, fsync_seconds: float = 5.0) -> None:
        super().__init__(path)
        self.fsync_seconds = fsync_seconds
        self._files: dict[str, Appender] = {}
        self._good: dict[str, dict[Key, bool]] = {}
        self._lock = lock(self.path)

    @classmethod
    def create(
        cls,
        path: str | Path,
        config: Mapping[str, Any],
        manifest: Mapping[str, Any],
        resume: bool = False,
        fsync_seconds: float = 5.0,
    ) -> RunStore:
        """Start a run folder, or continue the one there when ``resume`` is true.

        Raises :class:`RunConflict` when the folder holds another configuration, other data, panels, prompts
        or model, a finished or begun run without ``resume``, foreign files, or another writer;
        :class:`StorageFull` when it cannot be written.
        """
        path = Path(path)
        if (path / "config.json").is_file():
            _check_same_run(path, config, manifest, resume)
            store = cls(path, fsync_seconds)
            store._note_session(manifest)
            return store
        _refuse_foreign(path)
        with storage(path, "create"):
            (path / "episodes").mkdir(parents=True, exist_ok=True)
            (path / "checkpoints").mkdir(exist_ok=True)
        write_json(path / "manifest.json", {**manifest, "config_sha256": config_sha256(config)})
        write_json(path / "STATUS.json", _status("running"))
        write_json(path / "config.json", config)  # last: a folder with a config is a complete beginning
        return cls(path, fsync_seconds)

    def __enter__(self) -> RunStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append_episode(self, stream: str, record: Record) -> bool:
        """Write one episode. False (and nothing written) when a good record of its key is there already."""
        Stream.parse(stream)
        keys, key = self._keys(stream), episode_key(record)
        if keys.get(key):
            return False
        self._file(f"episodes/{stream}.jsonl").append(canonical_json(record))
        keys[key] = is_good(record)
        return True

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        self._file("metrics.jsonl").append(canonical_json(dict(record)))

    def append_cost(
        self, update: int, stage: str, seconds: float, tokens: int = 0, flops: float = 0.0
    ) -> None:
        line = {"update": update, "stage": stage, "seconds": seconds, "tokens": tokens, "flops": flops}
        self._file("costs.jsonl").append(canonical_json(line))

    def done_keys(self, stream: str) -> set[Key]:
        """Keys that need not be played again: episodes that ended by the agent's doing."""
        return {key for key, good in self._keys(stream).items() if good}

    def set_status(self, state: str, update: int = 0, updates: int = 0, message: str = "") -> None:
        write_json(self.path / "STATUS.json", _status(state, update, updates, message))

    def set_ending(self, state: str, updates: int, message: str) -> None:
        """A state with the progress that is on record, of ``updates`` planned."""
        self.set_status(state, self.status["update"], updates, message)

    def rewind(self, update: int) -> None:
        """Forget training episodes, metrics and costs of ``update`` and later.

        A run that continues from the checkpoint of ``update`` makes them again, bit for bit; evaluation
        streams and their costs stay, they are finished by :meth:`done_keys`.
        """
        for name in ("episodes/train.jsonl", "metrics.jsonl", "costs.jsonl"):
            path = self.path / name
            if name in self._files:
                self._files.pop(name).close()
            if path.is_file():
                keep = [r for r in read_lines(path) if r["update"] < update or r.get("stage") == "evaluation"]
                write_bytes(path, "".join(canonical_json(r) + "\n" for r in keep).encode())
        self._good.pop("train", None)

    def sync(self) -> None:
        """Force everything to disk; call before a checkpoint is declared complete."""
        for file in self._files.values():
            file.sync()

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _file(self, name: str) -> Appender:
        if name not in self._files:
            if (self.path / f"{name}.xz").exists():
                raise RunConflict(
                    f"'{self.path / name}.xz' is packed and read-only. Unpack it with xz -d first."
                )
            self._files[name] = Appender(self.path / name, self.fsync_seconds)
        return self._files[name]

    def _keys(self, stream: str) -> dict[Key, bool]:
        if stream not in self._good:
            self._good[stream] = {episode_key(r): is_good(r) for r in self.records(stream)}
        return self._good[stream]

    def _note_session(self, manifest: Mapping[str, Any]) -> None:
        """Continuing is recorded: when, and under which code and packages."""
        names = ("started", "git", "seedbench", "packages", "python", "platform", "cpu")
        session = {k: manifest[k] for k in names if k in manifest}
        self.manifest.setdefault("resumed", []).append(session)
        write_json(self.path / "manifest.json", self.manifest)


def is_good(record: Mapping[str, Any]) -> bool:
    """The episode ended by the agent's own doing; an infrastructure error is played again."""
    return record["status"] in AGENT_ENDINGS


def canonical_lines(path: str | Path) -> list[str]:
    """Lines of a record file for byte comparison: timing left out, episodes in order of their keys."""
    records = [without_timing(r) for r in read_lines(path)]
    if records and "task" in records[0]:
        records.sort(key=episode_key)
    return [canonical_json(r) for r in records]


def _status(state: str, update: int = 0, updates: int = 0, message: str = "") -> dict[str, Any]:
    return {"state": state, "update": update, "updates": updates, "message": message}


def _check_same_run(path: Path, config: Mapping[str, Any], manifest: Mapping[str, Any], resume: bool) -> None:
    old = Run(path)
    if config_sha256(old.config) != config_sha256(config):
        raise RunConflict(
            f"'{path}' was made with other settings ({_difference(old.config, config)}). "
            "Choose another folder, or repeat the settings of its config.json."
        )
    if not resume:
        raise RunConflict(
            f"'{path}' already holds this run. Continue it with --resume or choose another folder."
        )
    for name in _IDENTITY:
        there = old.manifest.get(name)
        if name == "panels" and isinstance(there, Mapping):  # panels evaluated later are no other run
            there = {panel: there[panel] for panel in there if panel in manifest.get(name, {})}
        if name in manifest and without_timing(there) != without_timing(manifest[name]):
            raise RunConflict(
                f"'{path}' cannot be continued: '{name}' of its manifest differs from what is here now "
                f"({_difference(there, manifest[name])}). Restore the data, prompts or "
                "weights of its beginning, or start a new folder."
            )


def _difference(old: Any, new: Any, where: str = "") -> str:
    """First place where two settings differ, in words."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                return _difference(old.get(key), new.get(key), f"{where}.{key}" if where else key)
    return f"{where or 'value'}: {str(old)[:60]} there, {str(new)[:60]} now"


def _refuse_foreign(path: Path) -> None:
    ours = {"manifest.json", "STATUS.json", "episodes", "checkpoints", ".lock"}
    if path.is_file():
        raise RunConflict(f"'{path}' is a file. Choose another run folder.")
    foreign = sorted(p.name for p in path.glob("*") if p.name not in ours) if path.is_dir() else []
    foreign = [name for name in foreign if not (name.startswith(".") and name.endswith(".tmp"))]
    if foreign:
        raise RunConflict(
            f"'{path}' is not empty and no run folder (it holds '{foreign[0]}'). Choose another folder."
        )
