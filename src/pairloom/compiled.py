"""Compiled array functions: one decorator, and a disk cache that an edit can never fool.

Numba stamps a cached function with its own file only, so an edit in an imported file would leave old
machine code running. Here the cache folder is named by a hash of all sources of the package.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from pairloom.typing import Array

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent


def _source_hash() -> str:
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _cache_folder() -> Path:
    """The folder of today's machine code: in the package if it is writable, else in the user's cache."""
    name = f"pairloom-{_source_hash()}"
    asked = os.environ.get("NUMBA_CACHE_DIR")
    if asked:
        return Path(asked) / name
    home = PACKAGE / "__pycache__"
    try:
        home.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            pass
    except OSError:
        home = Path.home() / ".cache" / "pairloom"
    for stale in home.glob("pairloom-*"):
        if stale.name != name:
            shutil.rmtree(stale, ignore_errors=True)
    return home / name


_FOLDER = str(_cache_folder())


def compiled(function: F) -> F:
    """Compile ``function`` with Numba on its first call and keep the machine code on disk.

    Sums may be reordered (vectorised) but NaN and infinity keep their meaning. The same machine code on
    the same numbers gives the same bits.
    """
    saved = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = _FOLDER
    try:
        fast = {"reassoc", "contract", "nsz", "arcp"}
        made: F = numba.njit(cache=True, fastmath=fast, error_model="numpy", nogil=True)(function)
    finally:
        numba.config.CACHE_DIR = saved
    return made


@compiled
def dot(a: Array, b: Array) -> float:
    """<a, b>."""
    total = a[0] * b[0]
    for k in range(1, a.shape[0]):
        total += a[k] * b[k]
    return total


@compiled
def squared_distance(a: Array, b: Array) -> float:
    """||a - b||^2, without the cancellation of the expanded form."""
    d = a[0] - b[0]
    total = d * d
    for k in range(1, a.shape[0]):
        d = a[k] - b[k]
        total += d * d
    return total


@compiled
def row_dots(Z: Array, w: Array) -> Array:
    """<w, z> for each row, each by the same instructions: a row's score never depends on its neighbours."""
    scores = Z[:, 0].copy()
    for i in range(Z.shape[0]):
        scores[i] = dot(w, Z[i])
    return scores


@compiled
def move(a: Array, b: Array, step: float) -> None:
    """a <- a + step (b - a)."""
    e = a.dtype.type(step)
    for k in range(a.shape[0]):
        a[k] += e * (b[k] - a[k])
