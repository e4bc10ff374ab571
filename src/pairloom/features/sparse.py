"""CSR rows: what the maps need of them, without ever making them dense.

SciPy's sparse module is imported only once sparse rows are there: loading it would slow down every start.
"""

from typing import Any

import numpy as np

from pairloom.base.csr import is_sparse
from pairloom.base.typing import Array


def as_csr(X: Any) -> Any:
    """Rows, dense or sparse, as a float64 CSR array that holds every place at most once."""
    from scipy.sparse import csr_array

    rows = csr_array(X, dtype=float)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def scale_columns(X: Any, factor: Array) -> Any:
    """X diag(factor), a new array; CSR stays CSR."""
    if not is_sparse(X):
        return X * factor
    scaled = X.tocsr().copy()
    scaled.data = scaled.data * (factor[scaled.indices] if factor.ndim else factor)
    return scaled


def column_sums(X: Any, values: Array) -> Array:
    """Sum by column of ``values``, one for each stored entry of X."""
    return np.bincount(X.indices, weights=values, minlength=X.shape[1])


def column_range(X: Any) -> tuple[Array, Array]:
    """Least and largest value of each column, the zeros that are not stored included."""
    return X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()


def column_moments(X: Any) -> tuple[Array, Array]:
    """Mean and standard deviation of each column, the zeros that are not stored included."""
    n = X.shape[0]
    mean = column_sums(X, X.data) / n
    zeros = n - np.bincount(X.indices, minlength=X.shape[1])
    squares = column_sums(X, np.square(X.data - mean[X.indices])) + zeros * np.square(mean)
    return mean, np.sqrt(squares / n)
