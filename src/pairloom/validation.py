"""The edge: whatever users pass becomes a finite C-contiguous array here, or an error that says where it failed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pairloom.typing import Array

LARGEST = {"float32": 1e15, "float64": 1e150}
"""Values beyond these overflow when squared and summed."""


def check_finite(X: Array, dtype: str, names: Array | None = None) -> None:
    """Raise ValueError naming the first row and column whose value the model cannot hold."""
    # One cheap pass in the usual case: the comparison is False for NaN and infinity.
    if X.size == 0 or bool(np.abs(X).max() <= LARGEST[dtype]):
        return
    row, column = np.argwhere(~(np.abs(X) <= LARGEST[dtype]))[0]
    value = X[row, column]
    where = f"row {row}, column {column}" + (f" ({names[column]!r})" if names is not None else "")
    if np.isnan(value):
        raise ValueError(f"Input X contains NaN at {where}. Drop or impute missing values first.")
    if np.isinf(value):
        raise ValueError(f"Input X contains infinity at {where}.")
    raise ValueError(
        f"Input X contains {value:g} at {where}, too large for {dtype} (infinity when squared). Scale the columns"
        + (", or use dtype='float64'." if dtype == "float32" else ".")
    )


def row_of(x: Any, n_features: int | None, names: Any, dtype: str) -> Array:
    """One example, a sequence or a mapping from column names, as a finite (1, d) array."""
    if isinstance(x, Mapping):
        x = _values(x, names)
    try:
        row = np.asarray(x, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"a row must hold numbers only: {error}") from None
    if row.ndim != 1 or row.size == 0 or (n_features is not None and row.size != n_features):
        raise ValueError(f"expected one row of {n_features or 'some'} values, got shape {row.shape}")
    row = row[None, :]
    check_finite(row, dtype, names)
    return row


def _values(x: Mapping[Any, Any], names: Any) -> list[Any]:
    """The values of a mapping in the model's order of columns."""
    if names is None:
        raise ValueError("this model learned rows without column names: pass the values in order, not a mapping")
    try:
        values = [x[name] for name in names]
    except KeyError:
        values = []
    if len(values) != len(x):
        missing = [name for name in names if name not in x]
        unknown = [name for name in x if name not in list(names)]
        raise ValueError(f"the row's columns do not match the model's: missing {missing}, unknown {unknown}")
    return values
