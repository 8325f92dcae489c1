"""The official games: found where the user keeps them, checked against the frozen panels, loaded when played.

Two forms are read: the folders that ``alfworld-download`` makes
(``json_2.1.1/<split>/<task>/<trial>/game.tw-pddl``), and the packed file ``alfworld_2.1.1_official.jsonl.xz``
(one header line with shared domain and grammar, then one line per game). A game's id is ``<task>/<trial>``.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import threading
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from seedbench.envs.alfworld.game import (
    FAMILIES,
    Description,
    Game,
    compile_game,
    parse_problem,
    task_sentence,
)
from seedbench.envs.alfworld.panels import OFFICIAL
from seedbench.envs.alfworld.sources import CACHED_GAMES

from seedbench.errors import DataCorrupt, DataMissing
from seedbench.panel import sha256_lines
from seedbench.types import HiddenTask, PublicTask, Task

VARIABLE = "ALFWORLD_DATA"
DEFAULT_FOLDER = "~/.cache/alfworld"  # where alfworld-download puts them
PACKED = "alfworld_2.1.1_official.jsonl.xz"
GAME_FILE = "game.tw-pddl"
CURE = (
    "Get the official games with `seedbench data get alfworld` (or `alfworld-download`), then say where they are with "
    f"`export {VARIABLE}=<folder that holds json_2.1.1>`. Or use generated games: variant 'mini'."
)


class Store(Protocol):
    """Games of one place. ``skipped`` fills with reasons why a game that should count does not."""

    where: Path
    skipped: list[str]

    def ids(self, split: str) -> list[str]: ...

    def description(self, split: str, game_id: str) -> Description: ...

    def files(self, split: str, game_id: str) -> Mapping[str, str]:
        """``task``, ``pddl_domain``, ``grammar`` and ``pddl_problem`` for the reference engine."""
        ...


def find_store(data: str | None) -> Store:
    """The first of: the option, ``$ALFWORLD_DATA``, ``~/.cache/alfworld``. Raises :class:`DataMissing`."""
    named = data or os.environ.get(VARIABLE)
    place = Path(named or DEFAULT_FOLDER).expanduser()
    if not place.exists():
        raise DataMissing(f"No official ALFWorld games: '{place}' does not exist. {CURE}")
    for packed in (place, place / PACKED):
        if packed.is_file():
            return PackedStore(packed)
    for root in (place, *sorted(place.glob("json_2.1.*"))):
        if any((root / split).is_dir() for split in OFFICIAL):
            return FolderStore(root)
    raise DataMissing(
        f"No official ALFWorld games in '{place}': neither {PACKED} nor json_2.1.1/<split> is there. {CURE}"
    )


class FolderStore:
    """Games in the layout of ``alfworld-download``, read one by one when played."""

    def __init__(self, root: Path) -> None:
        self.where, self.skipped = root, []

    def ids(self, split: str) -> list[str]:
        folder = self.where / split
        if not folder.is_dir():
            raise DataMissing(
                f"No official ALFWorld games of split '{split}': '{folder}' does not exist. {CURE}"
            )
        found = []
        for task in sorted(os.listdir(folder)):
            # ALFWorld's own filter, which works on the folder's name.
            if "movable" in task or "Sliced" in task or task.partition("-")[0] not in FAMILIES:
                continue
            if not (folder / task).is_dir():
                continue
            for trial in sorted(os.listdir(folder / task)):
                path = folder / task / trial / GAME_FILE
                if path.is_file() and self._solvable(path):
                    found.append(f"{task}/{trial}")
        return found

    def description(self, split: str, game_id: str) -> Description:
        path = self._path(split, game_id)
        files = self.files(split, game_id)
        return parse_problem(files["pddl_problem"], files["task"], str(path))

    def files(self, split: str, game_id: str) -> Mapping[str, str]:
        path = self._path(split, game_id)
        game = _read_json(path)
        missing = [k for k in ("pddl_domain", "grammar", "pddl_problem") if not isinstance(game.get(k), str)]
        if missing:
            raise DataCorrupt(f"'{path}' lacks {', '.join(missing)}. Run `alfworld-download --force`.")
        return {"task": task_sentence(game["grammar"], str(path)), **game}

    def _path(self, split: str, game_id: str) -> Path:
        return self.where / split / game_id / GAME_FILE

    def _solvable(self, path: Path) -> bool:
        """ALFWorld plays a game only if it carries ``"solvable": true`` (usually its last key)."""
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 64))
            tail = file.read()
        found = re.search(rb'"solvable":\s*(true|false)\s*}\s*$', tail)
        flag = found.group(1) == b"true" if found else _read_json(path).get("solvable")
        if flag is None:
            self.skipped.append(f"'{path}' lacks the key \"solvable\"")
        return bool(flag)


def _read_json(path: Path) -> dict:
    try:
        game = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataMissing(f"'{path}' has gone since the games were listed. {CURE}") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise DataCorrupt(
            f"'{path}' is not valid JSON ({error}). Delete it and run `alfworld-download --force`."
        ) from error
    if not isinstance(game, dict):
        raise DataCorrupt(f"'{path}' holds no game. Delete it and run `alfworld-download --force`.")
    return game


class PackedStore:
    """Games of the packed file: unpacked once per process, then kept deflated (about 13 MB for all)."""

    def __init__(self, path: Path) -> None:
        self.where, self.skipped = path, []
        self._lock = threading.Lock()
        self._rows: dict[str, dict[str, tuple[str, bytes]]] | None = None  # split -> id -> (task, body)
        self._dictionary = b""  # text shared by all bodies
        self._header: dict[str, str] = {}

    def ids(self, split: str) -> list[str]:
        return sorted(self._load().get(split, ()))

    def description(self, split: str, game_id: str) -> Description:
        task, body = self._load()[split][game_id]
        return parse_problem(self._inflate(body), task, f"{self.where}: {game_id}")

    def files(self, split: str, game_id: str) -> Mapping[str, str]:
        task, body = self._load()[split][game_id]
        return {
            "task": task,
            "pddl_domain": self._header["pddl_domain"],
            "grammar": self._header["grammar"].replace("@@TASK@@", task),
            "pddl_problem": self._inflate(body),
        }

    def _load(self) -> dict[str, dict[str, tuple[str, bytes]]]:
        with self._lock:
            if self._rows is None:
                try:
                    self._rows = self._unpack()
                except (OSError, EOFError, StopIteration, lzma.LZMAError, ValueError, KeyError) as error:
                    raise DataCorrupt(
                        f"'{self.where}' cannot be read ({type(error).__name__}: {error}). Copy it again."
                    ) from error
            return self._rows

    def _unpack(self) -> dict[str, dict[str, tuple[str, bytes]]]:
        rows: dict[str, dict[str, tuple[str, bytes]]] = {}
        with lzma.open(self.where, "rb") as lines:
            self._header = json.loads(next(lines))
            for line in lines:
                game = json.loads(line)
                split, _, game_id = game["id"].partition("/")
                task = game["task"]
                rows.setdefault(split, {})[game_id] = (task, self._deflate(game["pddl_problem"]))
        return rows

    def _deflate(self, problem: str) -> bytes:
        """White space squeezed: the facts are the same, and the text half as long."""
        text = " ".join(problem.split()).encode()
        if not self._dictionary:
            self._dictionary = text[-32768:]
        packer = zlib.compressobj(3, zdict=self._dictionary)
        return packer.compress(text) + packer.flush()

    def _inflate(self, body: bytes) -> str:
        return zlib.decompressobj(zdict=self._dictionary).decompress(body).decode()


class OfficialSource:
    """Official games behind :class:`.sources.GameSource`. Files are looked for when tasks are asked for."""

    def __init__(self, data: str | None) -> None:
        self._data = data
        self._store = lru_cache(1)(lambda: find_store(data))
        self._compiled = lru_cache(CACHED_GAMES)(self._compile)
        self._tasks = lru_cache(None)(self._list)

    def splits(self) -> Mapping[str, int]:
        return {name: split.games for name, split in OFFICIAL.items()}

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks(split)

    def game(self, task: Task) -> Game:
        return self._compiled(*task.hidden.payload)

    def files(self, task: Task) -> Mapping[str, str]:
        return self._store().files(*task.hidden.payload)

    def details(self) -> Mapping[str, str]:
        return {f"{name}_sha256": split.sha256 for name, split in OFFICIAL.items()}

    def _list(self, split: str) -> tuple[Task, ...]:
        store = self._store()
        ids = sorted(store.ids(split))
        _check_complete(split, ids, store)
        return tuple(Task(PublicTask(i, split, i.partition("-")[0]), HiddenTask((split, i))) for i in ids)

    def _compile(self, split: str, game_id: str) -> Game:
        return compile_game(self._store().description(split, game_id), f"{split}/{game_id}")


def _check_complete(split: str, ids: Sequence[str], store: Store) -> None:
    """A partial split would give another number under the same name: refuse it."""
    expected = OFFICIAL[split]
    if not ids:
        raise DataMissing(f"'{store.where}' holds no game of split '{split}'. {CURE}")
    if len(ids) != expected.games:
        reason = f" For example {store.skipped[0]}." if store.skipped else ""
        raise DataMissing(
            f"'{store.where}' holds {len(ids)} of the {expected.games} games of split '{split}'.{reason} "
            f"A part of a split is not comparable. {CURE}"
        )
    if sha256_lines(ids) != expected.sha256:
        raise DataCorrupt(
            f"'{store.where}' holds {len(ids)} games of split '{split}', but not the official ones. {CURE}"
        )
