"""Find the files of data sets, or download them into the user's cache."""

import hashlib
import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from posixpath import basename
from typing import TYPE_CHECKING, Literal

from pairloom.base.extras import import_extra
from pairloom.base.files import replacing
from pairloom.data.catalogue import Part, Source

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

VARIABLE = "PAIRLOOM_DATA"
"""The environment variable that names the data folder."""

HASHES = "sha256.json"
"""File in the download folder with the SHA-256 of each download."""

CHUNK_BYTES = 1 << 16
"""Bytes between two updates of the progress bar."""


@dataclass(frozen=True)
class DataFolders:
    """Folders that are searched for data files, in this order; downloads go to ``cache``.

    Parameters
    ----------
    data_home : the folder given by the caller, or None
    variable : the folder named by the environment variable, or None
    cache : the folder of downloads; it need not exist
    """

    data_home: Path | None
    variable: Path | None
    cache: Path

    def find(self, part: Part) -> Path | None:
        """Return the file, under its own name or that of its download, from the first folder that has it."""
        folders = (folder for folder in (self.data_home, self.variable, self.cache) if folder)
        candidates = (folder / name for folder in folders for name in part.names)
        return next((path for path in candidates if path.is_file()), None)

    def describe(self) -> str:
        """Return one line per folder, for messages."""
        return (
            f"  data_home: {self.data_home or 'not given'}\n"
            f"  {VARIABLE}: {self.variable or 'not set'}\n"
            f"  cache: {self.cache}"
        )


def data_folders(data_home: str | os.PathLike[str] | None = None) -> DataFolders:
    """Return the caller's folder, that of ``PAIRLOOM_DATA``, and the user's cache.

    A folder that was named but does not exist is an error: searching the next one would hide a typo.
    """
    variable = os.environ.get(VARIABLE)
    return DataFolders(
        data_home=None if data_home is None else _existing("data_home", Path(data_home)),
        variable=_existing(VARIABLE, Path(variable)) if variable else None,
        cache=_cache(),
    )


def _existing(name: str, folder: Path) -> Path:
    folder = folder.expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"{name}: {str(folder)!r} is not a folder; correct it or leave it out")
    return folder


def _cache() -> Path:
    """Return the cache folder of this package, by the conventions of the operating system."""
    xdg = os.environ.get("XDG_CACHE_HOME", "").strip()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/AppData/Local")
        return Path(local, "pairloom", "pairloom", "Cache")
    if os.path.isabs(xdg):
        return Path(xdg, "pairloom")
    return Path(os.path.expanduser("~/Library/Caches" if sys.platform == "darwin" else "~/.cache"), "pairloom")


def fetch_files(source: Source, folders: DataFolders, *, may_download: bool = True) -> tuple[Path, ...]:
    """Return the files of a source, found or downloaded; raise FileNotFoundError if one is missing."""
    return tuple(_fetch_part(source, part, folders, may_download) for part in source.parts)


def _fetch_part(source: Source, part: Part, folders: DataFolders, may_download: bool) -> Path:
    path = folders.find(part)
    if path is not None:
        if path.parent == folders.cache:
            check_unchanged(path)
        return path
    if part.url is None:
        reason, cause = "It is not available for download.", None
    elif not may_download:
        reason, cause = f"download=False: it was not downloaded from {part.url}.", None
    else:
        try:
            return download(part.url, folders.cache)
        except OSError as error:  # no network, or a dead link
            reason, cause = f"The download of {part.url} failed: {error}.", error
    raise FileNotFoundError(
        f"data set {source.name!r}: no file {' or '.join(part.names)} in\n{folders.describe()}\n{reason}\n"
        f"Put the file into one of these folders, or set {VARIABLE} to the folder that contains it"
    ) from cause


def download(url: str, folder: Path) -> Path:
    """Download a file into ``folder`` under the last part of its URL, and record its SHA-256.

    The file appears under its name only when it is complete.
    """
    name = basename(url)
    pooch = import_extra("pooch", "data", f"The download of {name}")
    with _quiet(pooch.get_logger()), _progress_bar(name) as bar:
        downloader = pooch.HTTPDownloader(progressbar=bar, chunk_size=CHUNK_BYTES)
        path = Path(pooch.retrieve(url, known_hash=None, fname=name, path=folder, downloader=downloader))
    hashes = {**_read_hashes(folder), name: _sha256(path)}
    with replacing(folder / HASHES, durable=False) as file:
        file.write((json.dumps(hashes, indent=2, sort_keys=True) + "\n").encode())
    return path


def check_unchanged(path: Path) -> None:
    """Raise ValueError if a downloaded file has changed; a file without a recorded hash passes."""
    recorded = _read_hashes(path.parent).get(path.name)
    if recorded is not None and (found := _sha256(path)) != recorded:
        raise ValueError(
            f"{path} has changed since it was downloaded: SHA-256 {found}, recorded {recorded}. "
            "Delete the file to download it again"
        )


def _read_hashes(folder: Path) -> dict[str, str]:
    path = folder / HASHES
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} cannot be read: {error}. Delete it to use downloads without this check") from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class ProgressBar:
    """A rich progress bar with the interface of pooch, which sets ``total`` and then calls the methods."""

    def __init__(self, progress: "Progress", task: "TaskID") -> None:
        self.total = 0
        self._progress, self._task = progress, task

    def update(self, n: int) -> None:
        """Advance by n bytes; the total is unknown if the server does not send it."""
        self._progress.update(self._task, total=self.total or None, advance=n)

    def reset(self) -> None:
        """Reset the bar; pooch fills it right after."""
        self._progress.reset(self._task)

    def close(self) -> None:
        """Do nothing: the bar ends with the ``with`` block around the download."""


@contextmanager
def _progress_bar(name: str) -> "Iterator[ProgressBar | Literal[False]]":
    """Show a bar on stderr, or none if rich is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    except ModuleNotFoundError:
        yield False
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield ProgressBar(progress, progress.add_task(f"Downloading {name}", total=None))


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Silence pooch's advice to hard-code the hash."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
