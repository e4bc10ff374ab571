"""The folders in which data files are looked for."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from pairloom.data.catalogue import Part

VARIABLE = "PAIRLOOM_DATA"
"""The environment variable that names the data folder."""


@dataclass(frozen=True)
class Places:
    """Where data files may be, in the order of looking; downloads go to ``cache``.

    Parameters
    ----------
    data_home : the folder that the caller named, if any
    variable : the folder that the environment names, if any
    cache : the folder of downloads; need not exist
    """

    data_home: Path | None
    variable: Path | None
    cache: Path

    def find(self, part: Part) -> Path | None:
        """The file, under its own name or that of its download, from the first folder that has it."""
        folders = (folder for folder in (self.data_home, self.variable, self.cache) if folder)
        candidates = (folder / name for folder in folders for name in part.names)
        return next((path for path in candidates if path.is_file()), None)

    def describe(self) -> str:
        """One line per place, for messages."""
        return (
            f"  data_home: {self.data_home or 'not given'}\n"
            f"  {VARIABLE}: {self.variable or 'not set'}\n"
            f"  cache: {self.cache}"
        )


def usual_places(data_home: str | os.PathLike[str] | None = None) -> Places:
    """The caller's folder, that of ``PAIRLOOM_DATA``, the user's cache.

    A folder that was named and is not there is an error: the next place would hide the slip, or start a download.
    """
    variable = os.environ.get(VARIABLE)
    return Places(
        data_home=None if data_home is None else _existing("data_home", Path(data_home)),
        variable=_existing(VARIABLE, Path(variable)) if variable else None,
        cache=_cache(),
    )


def _existing(name: str, folder: Path) -> Path:
    folder = folder.expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"{name} names {str(folder)!r}, which is not a folder: correct it, or leave it out")
    return folder


def _cache() -> Path:
    """The user's cache of this package, in the folder that is usual on the system."""
    asked = os.environ.get("XDG_CACHE_HOME", "").strip()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/AppData/Local")
        return Path(local, "pairloom", "pairloom", "Cache")
    if os.path.isabs(asked):
        return Path(asked, "pairloom")
    return Path(os.path.expanduser("~/Library/Caches" if sys.platform == "darwin" else "~/.cache"), "pairloom")
