"""Fetching official files, only when a user asks: ``seedbench data get``."""

from __future__ import annotations

import shutil
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path

from seedbench.contracts import Download, EnvironmentKind
from seedbench.errors import DataCorrupt, DataMissing, StorageFull

TIMEOUT_SECONDS = 60


def get(kind: EnvironmentKind, folder: Path | None, report: Callable[[str], None]) -> Path:
    """Fetch and unpack every download of an environment. Returns the folder.

    Raises :class:`DataMissing` when there is nothing to fetch or no network, :class:`DataCorrupt` for a
    damaged archive, :class:`StorageFull` when it cannot be written. A failed fetch leaves no half file.
    """
    if not kind.downloads:
        raise DataMissing(
            f"There is no file to fetch for '{kind.name}'. 'seedbench data' says where it looks and what to put there."
        )
    target = (folder or Path(kind.download_folder)).expanduser()
    for download in kind.downloads:
        report(f"{download.holds}: {download.url}")
        with tempfile.TemporaryDirectory() as temporary:
            archive = Path(temporary) / "download.zip"
            _fetch(download, archive)
            _unpack(archive, target, download)
    return target


def _fetch(download: Download, archive: Path) -> None:
    try:
        with (
            urllib.request.urlopen(download.url, timeout=TIMEOUT_SECONDS) as reply,
            archive.open("wb") as out,
        ):
            shutil.copyfileobj(reply, out)
    except urllib.error.HTTPError as error:
        raise DataMissing(f"{download.url} answered {error.code} {error.reason}. Try again later.") from error
    except urllib.error.URLError as error:
        raise DataMissing(
            f"{download.url} cannot be reached ({error.reason}). This needs a network: fetch the file on a machine "
            "that has one, unpack it, and set the environment's data variable ('seedbench data')."
        ) from error
    except OSError as error:
        raise StorageFull(f"The download cannot be kept ({error}). Free some space and try again.") from error


def _unpack(archive: Path, target: Path, download: Download) -> None:
    try:
        with zipfile.ZipFile(archive) as content:
            root = target.resolve()
            for name in content.namelist():
                if not (root / name).resolve().is_relative_to(root):
                    raise DataCorrupt(f"{download.url} holds a path outside its folder: '{name}'.")
            content.extractall(target)
    except zipfile.BadZipFile as error:
        raise DataCorrupt(f"{download.url} is not a whole zip file ({error}). Try again.") from error
    except OSError as error:
        raise StorageFull(f"{target} cannot be written ({error}). Free some space and try again.") from error
