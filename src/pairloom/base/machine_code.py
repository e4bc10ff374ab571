"""The folder of machine code, which is never stale, and what a process says while it compiles.

Numba checks only the file that defines a cached function, so stale machine code would run after an imported file is
edited. Here the name of a folder is a hash of all source files that compiled code can depend on.
"""

import gc
import hashlib
import logging
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numba
from numba.core import event

CONFIG: Any = numba.config

PACKAGE = Path(__file__).parent.parent

NEVER_COMPILED = frozenset(
    {"cli", "data", "estimators", "evaluation", "explain", "metrics", "persist", "race", "stream", "theory"}
)
"""Folders excluded from the hash: they have no compiled functions, and nothing in them is used by one."""

STALE_SECONDS = 86_400
"""Machine code of other versions is removed after a day."""


logger = logging.getLogger("pairloom.compiling")
"""Without handlers, as by default, a logger writes warnings to stderr."""

QUIET_SECONDS = 0.5
"""Time spent on compiling in a process before it says what it is waiting for."""

ONCE = "pairloom: compiling for this machine, once (about 20 s); `pairloom warmup` does it beforehand"
EVERY_TIME = (
    "pairloom: compiling (about 20 s), again in every process, since no folder for machine code is writable: "
    "set NUMBA_CACHE_DIR to one"
)


def source_hash() -> str:
    """Return the hash of the source files."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        if name.parts[0] not in NEVER_COMPILED:
            digest.update(name.as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def find_folder() -> Path | None:
    """Return a writable folder for machine code; None if there is none, so that every process compiles.

    It is in the package, or else in the user's cache; NUMBA_CACHE_DIR replaces both.
    """
    # The cache key of Numba does not include whether machine code checks its indices.
    name = f"pairloom-{source_hash()}" + ("-checked" if CONFIG.BOUNDSCHECK else "")
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    homes = [Path(chosen)] if chosen else [PACKAGE / "__pycache__", Path.home() / ".cache" / "pairloom"]
    for home in homes:
        try:
            (home / name).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=home / name):
                pass
        except OSError:
            continue
        for other in home.glob("pairloom-*"):
            # Not immediately: a process that started before the edit may still be running.
            if other.name != name and time.time() - other.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(other, ignore_errors=True)
        return home / name
    return None


FOLDER = find_folder()


class Waiting(event.Listener):
    """Says once in a process that it is compiling, when that takes long."""

    def __init__(self) -> None:
        self._message, self._depth, self._start, self._spent = EVERY_TIME if FOLDER is None else ONCE, 0, 0.0, 0.0
        self._collects = True

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._start, self._collects = time.perf_counter(), gc.isenabled()
            gc.disable()  # to search the compiler's many objects for garbage would take a tenth of the time
            if self._message and self._spent > QUIET_SECONDS and is_ours(event):
                logger.warning(self._message)
                self._message = ""
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            if self._collects:
                gc.enable()
            self._spent += time.perf_counter() - self._start if is_ours(event) else 0.0


def is_ours(event: Any) -> bool:
    """Return whether the function that Numba compiles is one of this package."""
    return bool(event.data["dispatcher"].py_func.__module__.startswith("pairloom."))


event.register("numba:compile", Waiting())
