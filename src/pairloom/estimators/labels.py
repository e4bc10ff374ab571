"""What may stand for y and for groups: real numbers, and names of queries."""

from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from pairloom.typing import Array

FINITE = float(np.finfo(float).max)
NO_QUERY = int(np.iinfo(np.int64).min)
"""The query of rows that were given without one."""


def real_labels(y: Any, estimator: Any, largest: float = np.inf) -> Array:
    """Finite float64 labels of at most this size, or ValueError naming the row."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    y = column_or_1d(y, warn=True)
    if y.dtype.kind not in "biufO":
        raise ValueError(f"y must be numbers, got {y.dtype}: {y[:1].tolist()[0]!r} at row 0")
    try:
        labels = y.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must be numbers: {error}") from None
    strange = np.flatnonzero(~(np.abs(labels) <= min(largest, FINITE)))
    if strange.size:
        row = strange[0]
        if np.isnan(labels[row]):
            raise ValueError(f"Input y contains NaN at row {row}.")
        if np.isinf(labels[row]):
            raise ValueError(f"Input y contains infinity at row {row}.")
        raise ValueError(f"Input y contains {labels[row]:g} at row {row}, beyond {largest:g}: divide y by its scale.")
    return np.ascontiguousarray(labels)


def real_label(y: Any, estimator: Any, largest: float = np.inf) -> Array:
    """``real_labels`` of one number, at the cost of one."""
    if not isinstance(y, (int, float, np.integer, np.floating, np.bool_)):
        raise ValueError(f"y must be one number, got {y!r}")
    label = float(y)
    return np.array([label]) if abs(label) <= min(largest, FINITE) else real_labels([label], estimator, largest)


def query_codes(groups: Any, n: int) -> Array:
    """A number for each row's query, the same in every call and every process; ValueError naming the row.

    A whole number is its own code and text has a 64-bit hash, so that a stream may have any number of queries.

    >>> query_codes([7, 7, 9], 3)
    array([7, 7, 9])
    """
    if groups is None:
        return np.full(n, NO_QUERY)
    names = column_or_1d(groups)
    if len(names) != n:
        raise ValueError(f"groups has {len(names)} entries, but X has {n} rows")
    if names.dtype.kind in "biu":
        return np.asarray(names, dtype=np.int64)
    known: dict[Any, int] = {}
    for row, name in enumerate(names.tolist()):
        try:
            if name not in known:
                known[name] = _query_code(name)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"groups must be whole numbers or text; got {name!r} at row {row}") from None
    return np.array([known[name] for name in names.tolist()], np.int64)


def query_code(group: Any) -> Array:
    """``query_codes`` of one row, at the cost of one."""
    if type(group) in (int, np.int64) and abs(group) < 2**63:
        return np.array([group])
    return query_codes(None if group is None else [group], 1)


def _query_code(name: Any) -> int:
    """The code of one query's name."""
    if isinstance(name, str):
        return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), signed=True)
    if isinstance(name, (int, float, np.integer, np.floating)) and int(name) == name:
        return int(np.array(int(name), dtype=np.int64))
    raise TypeError
