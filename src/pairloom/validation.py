"""The edge: whatever users pass becomes a finite C-contiguous array here, or an error that says where it failed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pairloom.typing import Array

LARGEST = {"float32": 1e15, "float64": 1e100}
"""Values beyond these overflow when squared and summed."""


def check_finite(X: Array, dtype: str, names: Array | None = None) -> None:
    """Raise ValueError naming the first row and column whose value the model cannot hold."""
    if hasattr(X, "tocsr"):
        return check_finite_sparse(X, dtype, names)
    # One cheap pass in the usual case: the comparison is False for NaN and infinity.
    if X.size == 0 or bool(np.abs(X).max() <= LARGEST[dtype]):
        return
    row, column = np.argwhere(~(np.abs(X) <= LARGEST[dtype]))[0]
    _raise_for(X[row, column], row, column, dtype, names)


def check_finite_sparse(X: Any, dtype: str, names: Array | None = None) -> None:
    """``check_finite`` for CSR rows: only stored values can be bad."""
    bad = np.flatnonzero(~(np.abs(X.data) <= LARGEST[dtype]))
    if bad.size:
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        _raise_for(X.data[bad[0]], row, X.indices[bad[0]], dtype, names)


def _raise_for(value: float, row: int, column: int, dtype: str, names: Array | None) -> None:
    where = f"row {row}, column {column}" + (f" ({names[column]!r})" if names is not None else "")
    if np.isnan(value):
        raise ValueError(f"Input X contains NaN at {where}. Drop or impute missing values first.")
    if np.isinf(value):
        raise ValueError(f"Input X contains infinity at {where}.")
    raise ValueError(
        f"Input X contains {value:g} at {where}, too large for {dtype} (infinity when squared). Scale the columns"
        + (", or use dtype='float64'." if dtype == "float32" else ".")
    )


def rows_of(X: Any, dtype: str) -> Any:
    """Rows as a C-contiguous (n, d) array of this dtype; sparse rows stay sparse, as CSR in order and without zeros."""
    with np.errstate(over="ignore"):  # what overflows is infinite, and reported by ``check_finite``
        if hasattr(X, "tocsr"):
            return _canonical(X.tocsr().astype(dtype))
        X = np.ascontiguousarray(X, dtype=dtype)
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, got shape {X.shape}")
    return X


def _canonical(X: Any) -> Any:
    """CSR rows with each place stored at most once, in the order of the columns, and only if it is not 0; in place."""
    X.check_format(full_check=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def row_of(x: Any, n_features: int | None, names: Any, dtype: str) -> Array:
    """One example, a sequence or a mapping from column names, as a finite (1, d) array."""
    if names is not None and hasattr(x, "to_dict"):  # a row of a data frame
        x = x.to_dict()
    if isinstance(x, Mapping):
        x = _values(x, names)
    try:
        row = np.asarray(x, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"a row must hold numbers only: {error}") from None
    if row.ndim != 1 or row.size == 0 or (n_features is not None and row.size != n_features):
        raise ValueError(f"expected one row of {n_features or 'at least one'} values, got shape {row.shape}")
    row = row[None, :]
    check_finite(row, dtype, names)
    return row.astype(dtype)


def _values(x: Mapping[Any, Any], names: Any) -> list[Any]:
    """The values of a mapping in the model's order of columns."""
    if names is None:
        raise ValueError("this model learned rows without column names: pass the values in order, not a mapping")
    if len(x) != len(names) or not all(name in x for name in names):
        missing = [name for name in names if name not in x]
        unknown = [name for name in x if name not in list(names)]
        raise ValueError(f"the row's columns do not match the model's: missing {missing}, unknown {unknown}")
    return [x[name] for name in names]


def check_weight(sample_weight: Any, n: int) -> Array:
    """Weights as float64, finite and not negative; ones if there are none."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight, dtype=float)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, but X has {n} rows")
    bad = np.flatnonzero(~((weight >= 0) & (weight < np.inf)))
    if bad.size:
        raise ValueError(f"sample_weight must be finite and not negative; it is {weight[bad[0]]} at row {bad[0]}")
    return weight


def positive_weight(weight: Array, *, may_be_none: bool) -> Array | None:
    """Which rows have a weight above 0; None if all have."""
    keep = weight > 0
    if keep.all():
        return None
    if not keep.any() and not may_be_none:
        raise ValueError("all sample weights are zero: there is nothing to learn")
    return np.asarray(keep)
