"""Checks of the leaves of a state against their specifications: ValueError unless a value, array or CSR rows fit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairloom.base.spec import Spec, Symbols, parse, resolve
from pairloom.base.typing import Array
from pairloom.base.validation import MAX_VALUE

FLOATS = ("f4", "f8")


@dataclass(frozen=True)
class Scope:
    """Symbols of a state and of the nodes in it, and its parts; ``own``: symbols of a single node."""

    symbols: Symbols
    parts: Mapping[str, Any] = field(default_factory=dict)
    own: Symbols = field(default_factory=dict)

    def size(self, name: str) -> float | None:
        """Return the value of a number or symbol; None if it is empty or undefined."""
        return resolve(name, self.own, self.symbols) if name else None

    def define(self, name: str, size: int) -> None:
        """Define a symbol by its first size."""
        (self.own if name.startswith("_") else self.symbols)[name] = size


def check_value(value: Any, kind: Any, text: str, scope: Scope) -> None:
    """Check a plain value: its type, and the bounds and tests of its specification."""
    spec = parse(text, scalar=True)[0]
    low, high = scope.size(spec.low), scope.size(spec.high)
    if (
        type(value) is not kind
        or (spec.test == "finite" and not np.isfinite(value))
        or not (low is None or value >= low)
        or not (high is None or value < high)
    ):
        raise ValueError(f"must be a value ({kind.__name__}{text and ' ' + text}), not {value!r:.40}")


def check_array(array: Array, text: str, scope: Scope) -> None:
    """Check the dtype, shape and range of an array; undefined symbols take the sizes of its axes."""
    choices = parse(text)
    sizes = ([scope.size(name) for name in one.shape or ()] for one in choices)
    spec = next((one for one, size in zip(choices, sizes, strict=True) if size == [*array.shape]), choices[-1])
    code = array.dtype.str[1:]
    dtypes = {"label": "f8", "R": scope.symbols.get("R") if array.ndim else "f8", "X": scope.symbols.get("X")}
    wanted = dtypes.get(spec.dtype, spec.dtype)
    if code != wanted and not (wanted is None and code in FLOATS):
        raise ValueError(f"must have the dtype {wanted}, not {code}")
    if spec.shape is not None:
        if array.ndim != len(spec.shape):
            raise ValueError(f"must have {len(spec.shape)} axes, not {array.ndim}")
        for name, found in zip(spec.shape, array.shape, strict=True):
            size = scope.size(name)
            if size is None and (found > 0 or not name[1:].isupper()):
                scope.define(name, found)
            elif size != found:
                raise ValueError(f"must have an axis of {'at least 1' if size is None else size}, not {found}")
    _check_range(array, spec, scope)


def _check_range(array: Array, spec: Spec, scope: Scope) -> None:
    low, high = scope.size(spec.low), scope.size(spec.high)
    if (spec.low and low is None) or (spec.high and high is None):
        raise ValueError(f"has no bounds: nothing in the file defines {spec.low}:{spec.high}")
    if not (low is None or (array >= low).all()) or not (high is None or (array < high).all()):
        raise ValueError(f"has numbers outside {low} ... {high}")
    if spec.test and not (np.isfinite(array).all() and (spec.test == "finite" or (array > 0).all())):
        raise ValueError(f"must have {spec.test} numbers only")
    if spec.dtype == "label":
        n_classes, valid = scope.size("C"), np.isfinite(array)
        if n_classes:
            valid &= (array >= 0) & (array < n_classes) & (array == np.floor(array))
        if not valid.all():
            raise ValueError("has invalid labels")


def check_csr(n: int, d: int, data: Array, indices: Array, indptr: Array) -> None:
    """Check that three arrays are CSR rows of shape (n, d)."""
    integers = indices.dtype == indptr.dtype and indices.dtype.str[1:] in ("i4", "i8")
    if not integers or data.ndim != 1 or indices.shape != data.shape or indptr.shape != (n + 1,):
        raise ValueError("has CSR arrays that do not fit each other")
    rising = indptr[0] == 0 and indptr[-1] == len(data) and (indptr[1:] >= indptr[:-1]).all()
    if not rising or not ((indices >= 0) & (indices < d)).all():
        raise ValueError("has CSR entries outside its rows and columns")


def check_sorted(indices: Array, indptr: Array) -> None:
    """Check that the columns of each CSR row are in order, without duplicates."""
    rises = np.append(indices[1:] > indices[:-1], True)
    rises[indptr[1:-1][indptr[1:-1] > 0] - 1] = True  # at the end of a row
    if not rises.all():
        raise ValueError("must have the columns of each row in order, without duplicates")


def check_row_values(values: Array, *, nan: bool) -> None:
    """Check that values of rows are finite floats within the range of a model; ``nan``: they may be missing."""
    if values.dtype.str[1:] not in FLOATS:
        raise ValueError(f"must have the dtype f4 or f8, not {values.dtype.str[1:]}")
    if not ((np.abs(values) <= MAX_VALUE[values.dtype.name]) | (np.isnan(values) & nan)).all():
        raise ValueError("must have finite numbers that are not too large")
