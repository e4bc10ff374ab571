"""The folders of machine code, which is never stale.

Numba checks only the file that defines a cached function, so stale machine code would run after an imported file is
edited. Here the name of a folder is a hash of all source files that compiled code can depend on.
"""

import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

PACKAGE = Path(__file__).parent.parent

NEVER_COMPILED = frozenset(
    {"cli", "data", "estimators", "evaluation", "metrics", "persist", "race", "stream", "theory"}
)
"""Folders excluded from the hash: they have no compiled functions, and nothing in them is used by one."""

STALE_SECONDS = 86_400
"""Machine code of other versions is removed after a day."""


def source_hash() -> str:
    """Return the hash of the source files."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        if name.parts[0] not in NEVER_COMPILED:
            digest.update(name.as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def find_folders() -> tuple[Path | None, list[Path]]:
    """Return the folder to which machine code is written, None if no folder is writable, and all to read it from.

    They are in the package, or else in the user's cache; both are read, so that an image that was prepared by its
    builder serves a user who cannot write to the package. NUMBA_CACHE_DIR replaces both.
    """
    # The cache key of Numba does not include whether machine code checks its indices.
    name = f"pairloom-{source_hash()}" + ("-checked" if config.BOUNDSCHECK else "")
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    homes = [Path(chosen)] if chosen else [PACKAGE / "__pycache__", Path.home() / ".cache" / "pairloom"]
    readable = []
    for home in homes:
        try:
            (home / name).mkdir(parents=True, exist_ok=True)
            readable.append(home / name)
            with tempfile.TemporaryFile(dir=home / name):
                pass
        except OSError:
            continue
        for other in home.glob("pairloom-*"):
            # Not immediately: a process that started before the edit may still be running.
            if other.name != name and time.time() - other.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(other, ignore_errors=True)
        return home / name, readable
    return None, readable


FOLDER, READABLE = find_folders()


class Place:
    """What Numba asks a function's folder for."""

    def __init__(self, function: Any) -> None:
        self.module, code = function.__module__, function.__code__
        self.file, self.line = code.co_filename, code.co_firstlineno

    def from_function(self, function: Any, file: str) -> "Place":
        return self

    def within(self, folder: Path) -> str:
        """Return the folder of the function's module in another one."""
        return str(folder / self.module)

    def get_cache_path(self) -> str:
        return self.within(FOLDER or Path())

    def ensure_cache_path(self) -> None:
        Path(self.get_cache_path()).mkdir(exist_ok=True)

    def get_source_stamp(self) -> tuple[float, int]:
        found = os.stat(self.file)
        return found.st_mtime, found.st_size

    def get_disambiguator(self) -> str:
        return str(self.line)


class PlacedImpl(CompileResultCacheImpl):
    """Files in the folder of ``Place``."""

    def __init__(self, function: Any) -> None:
        self._locator_classes = [Place(function)]
        super().__init__(function)


class MachineCode(FunctionCache):
    """The machine code of a function: written to one folder, read from all."""

    _impl_class = PlacedImpl

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        place, name = self._impl.locator, self._impl.filename_base
        stamp = place.get_source_stamp()
        self._files = [IndexDataCacheFile(place.within(folder), name, stamp) for folder in READABLE]

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        key = self._index_key(sig, target_context.codegen())
        for file in self._files:
            data = file.load(key)
            if data is not None:
                return self._impl.rebuild(target_context, data)
        return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        if FOLDER is not None:
            super()._save_overload(sig, data)
