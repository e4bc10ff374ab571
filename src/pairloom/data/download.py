"""Downloads into the cache, with a progress bar and a record of what came."""

import hashlib
import json
import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from posixpath import basename
from typing import TYPE_CHECKING, Literal

from pairloom.base.extras import needed
from pairloom.base.files import replacing

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

RECORD = "sha256.json"
"""Beside the downloads: the SHA-256 of each at the time it came."""

CHUNK = 1 << 16
"""Bytes between two movements of the bar."""


class Bar:
    """A rich progress bar in the form that pooch moves: it sets ``total``, then calls the methods."""

    def __init__(self, progress: "Progress", task: "TaskID") -> None:
        self.total = 0
        self._progress, self._task = progress, task

    def update(self, n: int) -> None:
        """Advance by n bytes; a server that names no length leaves the total unknown."""
        self._progress.update(self._task, total=self.total or None, advance=n)

    def reset(self) -> None:
        """Back to the start; pooch fills the bar right after."""
        self._progress.reset(self._task)

    def close(self) -> None:
        """Nothing: the bar ends with the ``with`` block around the download."""


def fetch(url: str, folder: Path) -> Path:
    """Fetch a file into ``folder`` under the name that its address ends in, and record its SHA-256.

    The file appears under its name only when it is complete.
    """
    name = basename(url)
    pooch = needed("pooch", "data", f"The download of {name}")
    with _quiet(pooch.get_logger()), _bar(name) as bar:
        downloader = pooch.HTTPDownloader(progressbar=bar, chunk_size=CHUNK)
        path = Path(pooch.retrieve(url, known_hash=None, fname=name, path=folder, downloader=downloader))
    _write_record(folder, {**_read_record(folder), name: _sha256(path)})
    return path


def check_unchanged(path: Path) -> None:
    """Raise if a downloaded file is no longer what came; a file without a record passes."""
    recorded = _read_record(path.parent).get(path.name)
    if recorded is not None and (found := _sha256(path)) != recorded:
        raise ValueError(
            f"{path} has changed since it was downloaded: SHA-256 {found}, recorded {recorded}. "
            "Delete the file to download it again"
        )


def _read_record(folder: Path) -> dict[str, str]:
    path = folder / RECORD
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{path} cannot be read: {error}. Delete it: downloads are then used without this check"
        ) from error


def _write_record(folder: Path, record: dict[str, str]) -> None:
    with replacing(folder / RECORD, lasting=False) as file:
        file.write((json.dumps(record, indent=2, sort_keys=True) + "\n").encode())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _bar(name: str) -> AbstractContextManager[Bar | Literal[False]]:
    """A bar, or none where rich is not installed."""
    try:
        import rich.progress  # noqa: F401
    except ModuleNotFoundError:
        return nullcontext(False)
    return _rich_bar(name)


@contextmanager
def _rich_bar(name: str) -> Iterator[Bar]:
    """A bar on stderr: the output of a program that loads data stays its own."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield Bar(progress, progress.add_task(f"Downloading {name}", total=None))


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Without pooch's advice to write the hash into the program: it is recorded here."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
