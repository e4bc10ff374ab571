"""Compiled array functions: one decorator, and a disk cache that is never stale.

Numba checks only the file that defines a cached function, so stale machine code would run after an imported file is
edited. Here the name of the cache folder is a hash of all source files that compiled code can depend on.
"""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from math import factorial
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import numba
import numpy as np

from pairloom.base.typing import Array

F = TypeVar("F", bound=Callable[..., Any])

CONFIG: Any = numba.config

PACKAGE = Path(__file__).parent.parent

NEVER_COMPILED = frozenset(
    {"cli", "data", "estimators", "evaluation", "explain", "metrics", "persist", "race", "stream", "theory"}
)
"""Folders excluded from the hash: they have no compiled functions, and nothing in them is used by one."""

STALE_SECONDS = 86_400
"""Machine code of other versions is removed after a day."""

FASTMATH_FLAGS = {"reassoc", "contract", "nsz", "arcp"}
"""Sums may be reordered, that is, vectorised; NaN and infinity keep their meaning."""

OPTIONS: dict[str, Any] = {"fastmath": FASTMATH_FLAGS, "error_model": "numpy", "nogil": True, "forceinline": True}
"""A function that is not inlined is compiled twice, separately and in its caller, and the last bits differ; which
version runs depends on what else the process has compiled or loaded. All functions are therefore inlined."""


def _source_hash() -> str:
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        if name.parts[0] not in NEVER_COMPILED:
            digest.update(name.as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _cache_folder() -> str:
    """Return a writable folder for machine code; "" if there is none, so that every process compiles."""
    # The cache key of Numba does not include whether machine code checks its indices.
    name = f"pairloom-{_source_hash()}" + ("-checked" if CONFIG.BOUNDSCHECK else "")
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
        return str(home / name)
    return ""


_FOLDER = _cache_folder()


def compiled(function: F) -> F:
    """Compile ``function`` with Numba on its first call and keep the machine code on disk.

    The same machine code on the same numbers gives the same bits, in the process that compiles and in all later ones.
    """
    saved, CONFIG.CACHE_DIR = CONFIG.CACHE_DIR, _FOLDER
    try:
        njit: Any = numba.njit(cache=bool(_FOLDER), **OPTIONS)
        made: F = njit(function)
    finally:
        CONFIG.CACHE_DIR = saved
    return made


def with_calls_replaced(function: Any, swaps: dict[Any, Any]) -> Any:
    """Compile a copy of a compiled ``function`` that calls other functions; it is not cached on disk.

    ``swaps``: compiled functions and their replacements; their direct and indirect callers are added.
    """
    if function not in swaps:
        source = function.py_func
        called = {name: source.__globals__[name] for name in source.__code__.co_names if name in source.__globals__}
        new = {name: with_calls_replaced(one, swaps) for name, one in called.items() if hasattr(one, "py_func")}
        changed = {name: one for name, one in new.items() if one is not called[name]}
        swaps[function] = function
        if changed:
            copy = FunctionType(source.__code__, {**source.__globals__, **changed}, source.__name__)
            swaps[function] = numba.njit(**OPTIONS)(copy)
    return swaps[function]


@compiled
def dot(a: Array, b: Array) -> float:
    """Return <a, b>; 0 if they are empty."""
    if a.shape[0] == 0:
        return 0.0
    total: float = a[0] * b[0]
    for k in range(1, a.shape[0]):
        total += a[k] * b[k]
    return total


@compiled
def dots(a: Array, rows: Array, chosen: Array, out: Array) -> None:
    """Write <a, row> of the chosen rows to ``out``; four at a time, so that a is read once for four."""
    zero = a.dtype.type(0)
    n = chosen.shape[0]
    for k in range(0, n - 3, 4):
        r0, r1, r2, r3 = rows[chosen[k]], rows[chosen[k + 1]], rows[chosen[k + 2]], rows[chosen[k + 3]]
        s0, s1, s2, s3 = zero, zero, zero, zero
        for c in range(a.shape[0]):
            x = a[c]
            s0 += x * r0[c]
            s1 += x * r1[c]
            s2 += x * r2[c]
            s3 += x * r3[c]
        out[k], out[k + 1], out[k + 2], out[k + 3] = s0, s1, s2, s3
    for k in range(n - n % 4, n):
        out[k] = dot(a, rows[chosen[k]])


@compiled
def squared_distances_to(a: Array, rows: Array, out: Array) -> None:
    """Write ||a - row||^2 of every row to ``out``, without the cancellation of the expanded form; four at a time."""
    zero = a.dtype.type(0)
    n = rows.shape[0]
    for k in range(0, n - 3, 4):
        r0, r1, r2, r3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        s0, s1, s2, s3 = zero, zero, zero, zero
        for c in range(a.shape[0]):
            x = a[c]
            s0 += (x - r0[c]) * (x - r0[c])
            s1 += (x - r1[c]) * (x - r1[c])
            s2 += (x - r2[c]) * (x - r2[c])
            s3 += (x - r3[c]) * (x - r3[c])
        out[k], out[k + 1], out[k + 2], out[k + 3] = s0, s1, s2, s3
    for k in range(n - n % 4, n):
        total = zero
        for c in range(a.shape[0]):
            total += (a[c] - rows[k, c]) * (a[c] - rows[k, c])
        out[k] = total


@compiled
def add_rows(a: Array, rows: Array, chosen: Array, factors: Array) -> None:
    """a <- a + sum_k factors_k rows[chosen_k]; four at a time."""
    kind = a.dtype.type
    n = chosen.shape[0]
    for k in range(0, n - 3, 4):
        r0, r1, r2, r3 = rows[chosen[k]], rows[chosen[k + 1]], rows[chosen[k + 2]], rows[chosen[k + 3]]
        f0, f1, f2, f3 = kind(factors[k]), kind(factors[k + 1]), kind(factors[k + 2]), kind(factors[k + 3])
        for c in range(a.shape[0]):
            a[c] += f0 * r0[c] + f1 * r1[c] + f2 * r2[c] + f3 * r3[c]
    for k in range(n - n % 4, n):
        r0, f0 = rows[chosen[k]], kind(factors[k])
        for c in range(a.shape[0]):
            a[c] += f0 * r0[c]


@compiled
def row_dots(Z: Array, w: Array) -> Array:
    """Return <w, z> for each row, always with the same instructions: a score never depends on other rows."""
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


EXP = tuple((-1.0) ** k / factorial(k) for k in range(14))
ARTANH = tuple(1.0 / k for k in range(1, 36, 2))


@compiled
def exp_minus(a: float) -> float:
    """Return exp(-a) for a >= 0 in the precision of a, without calls or branches, so that loops are vectorised.

    exp(-a) = 2^-n exp(-r) with |r| <= ln(2) / 2, by a Taylor series, unrolled for vectorisation.
    """
    c, one = type(a), type(a)(1)
    a = min(a, c(700))
    n = np.int32(a * c(1.4426950408889634) + c(0.5))
    r = a - c(n) * c(0.6931471805599453)
    e = ((c(EXP[13]) * r + c(EXP[12])) * r + c(EXP[11])) * r + c(EXP[10])
    e = (((e * r + c(EXP[9])) * r + c(EXP[8])) * r + c(EXP[7])) * r + c(EXP[6])
    e = (((e * r + c(EXP[5])) * r + c(EXP[4])) * r + c(EXP[3])) * r + c(EXP[2])
    e = (e * r - one) * r + one
    e *= (c(0.5) if n & 1 else one) * (c(0.25) if n & 2 else one)
    e *= (c(2.0**-4) if n & 4 else one) * (c(2.0**-8) if n & 8 else one)
    e *= (c(2.0**-16) if n & 16 else one) * (c(2.0**-32) if n & 32 else one)
    e *= c(2.0**-64) if n & 64 else one
    e *= c(2.0**-128) if n & 128 else one
    e *= c(2.0**-256) if n & 256 else one
    e *= c(2.0**-512) if n & 512 else one
    return e


@compiled
def log_one_plus(e: float) -> float:
    """Return log(1 + e) for 0 <= e <= 1, vectorised like ``exp_minus``: 2 artanh(z) with z = e / (2 + e)."""
    c = type(e)
    z = e / (c(2) + e)
    t = z * z
    s = ((c(ARTANH[17]) * t + c(ARTANH[16])) * t + c(ARTANH[15])) * t + c(ARTANH[14])
    s = (((s * t + c(ARTANH[13])) * t + c(ARTANH[12])) * t + c(ARTANH[11])) * t + c(ARTANH[10])
    s = (((s * t + c(ARTANH[9])) * t + c(ARTANH[8])) * t + c(ARTANH[7])) * t + c(ARTANH[6])
    s = (((s * t + c(ARTANH[5])) * t + c(ARTANH[4])) * t + c(ARTANH[3])) * t + c(ARTANH[2])
    return c(2) * z * ((s * t + c(ARTANH[1])) * t + c(1))
