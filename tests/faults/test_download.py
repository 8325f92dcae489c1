"""``seedbench data get``: works against a server of ours, and fails clearly without one."""

from __future__ import annotations

import functools
import http.server
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from seedbench.contracts import Download, EnvironmentKind
from seedbench.download import get
from seedbench.errors import DataCorrupt, DataMissing


@pytest.fixture()
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the address it is served under."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def kind(*urls: str) -> EnvironmentKind:
    downloads = tuple(Download(url, "games") for url in urls)
    return EnvironmentKind("toy", dict, lambda o: None, {}, downloads=downloads)  # type: ignore[arg-type,return-value]


def test_files_are_fetched_and_unpacked(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = served
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("split/task/game.txt", "hello")
    said: list[str] = []
    target = get(kind(f"{address}/a.zip"), tmp_path / "data", said.append)
    assert (target / "split/task/game.txt").read_text() == "hello"
    assert said == [f"games: {address}/a.zip"]


def test_no_network_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match=r"cannot be reached .* needs a network"):
        get(kind("http://127.0.0.1:9/a.zip"), tmp_path / "data", lambda s: None)
    assert not (tmp_path / "data").exists()


def test_absent_file_damaged_file_and_nothing_to_fetch(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = served
    with pytest.raises(DataMissing, match="404"):
        get(kind(f"{address}/none.zip"), tmp_path / "data", lambda s: None)
    (folder / "bad.zip").write_bytes(b"PK\x03\x04 torn")
    with pytest.raises(DataCorrupt, match="not a whole zip"):
        get(kind(f"{address}/bad.zip"), tmp_path / "data", lambda s: None)
    with pytest.raises(DataMissing, match="no file to fetch for 'toy'"):
        get(kind(), tmp_path / "data", lambda s: None)


def test_an_archive_cannot_write_outside_its_folder(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = served
    with zipfile.ZipFile(folder / "evil.zip", "w") as archive:
        archive.writestr("../outside.txt", "x")
    with pytest.raises(DataCorrupt, match="outside its folder"):
        get(kind(f"{address}/evil.zip"), tmp_path / "data", lambda s: None)
    assert not (tmp_path / "outside.txt").exists()
