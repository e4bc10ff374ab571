"""Distances between all rows of two sets, dense or CSR, in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pairloom.base.csr import is_sparse
from pairloom.base.typing import Array
from pairloom.features.scaling import as_csr

BLOCK_SIZE = 1 << 17
"""Number of coordinate differences in memory at a time (1 MB)."""

MANY_COLUMNS, MIN_SPARSENESS = 512, 8
"""With more columns, products of rows of which at most one value in so many is not 0 are sparse."""

LARGE_SIZE = 1 << 23
"""Array size (64 MB) above which rows are copied only once if X is Y."""

ROUNDING = 64 * np.finfo(float).eps

MEDIAN_ROWS = 512
"""Maximum number of rows for a median distance."""

Term = Callable[[Array], Array]


def squared_distances(X: Any, Y: Any) -> Array:
    """Return ||x - y||^2 between all rows.

    The common mean is subtracted first to avoid cancellation, except from CSR rows, which would become dense, and from
    rows of many columns that are mostly 0, which are treated like these.
    Cost: n m d flops (CSR: one sparse product); n m numbers, and a copy of the rows.

    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[25.]])
    """
    if is_sparse(X) or is_sparse(Y) or (mostly_zero(X) and mostly_zero(Y)):
        X, Y = as_csr(X), as_csr(Y)
        squares = (X * X).sum(axis=1)[:, None] + (Y * Y).sum(axis=1)[None, :]
        distances = squares - 2.0 * (X @ Y.T).toarray()
        # The computed distance of equal rows is a rounding error of either sign.
        return np.asarray(np.where(distances > ROUNDING * squares, distances, 0.0))
    center = np.mean(X, axis=0, dtype=float)
    same = X is Y and X.size > LARGE_SIZE
    X = X - center
    # For the product of a matrix with itself, BLAS uses another routine, whose results differ in the last bit.
    Y = X if same else Y - center
    squares = np.square(X).sum(axis=1)[:, None] + np.square(Y).sum(axis=1)[None, :]
    return np.asarray(np.maximum(squares - 2.0 * (X @ Y.T), 0.0))


def mostly_zero(X: Array) -> bool:
    """Return whether a sparse product of these rows takes less time."""
    return X.shape[1] > MANY_COLUMNS and bool(MIN_SPARSENESS * np.count_nonzero(X) <= X.size)


def coordinate_sums(X: Any, Y: Any, term: Term) -> Array:
    """Return sum_i f(x_i - y_i) between all rows, for an even function f with f(0) = 0.

    Cost: n m d evaluations of f (CSR: n times the stored entries of Y); n m numbers, and blocks of 1 MB.

    >>> coordinate_sums(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), np.abs)
    array([[7.]])
    """
    if is_sparse(X) or is_sparse(Y):
        return _sparse_coordinate_sums(as_csr(X), as_csr(Y), term)
    X, Y = np.asarray(X, dtype=float), np.asarray(Y, dtype=float)
    (n, d), m = X.shape, len(Y)
    columns = max(1, min(m, BLOCK_SIZE // d))
    rows = max(1, BLOCK_SIZE // (columns * d))
    sums = np.empty((n, m))
    for i in range(0, n, rows):
        for j in range(0, m, columns):
            differences = X[i : i + rows, None, :] - Y[None, j : j + columns, :]
            sums[i : i + rows, j : j + columns] = term(differences).sum(axis=-1)
    return sums


def _sparse_coordinate_sums(X: Any, Y: Any, term: Term) -> Array:
    """Sum f(x_i - y_i) over the entries of y, and f(x_i) over the entries of x that y does not have.

    The second sum is the sum over all entries of x minus the sum over the entries of y. Both are in column order, so
    that equal rows cancel to exactly 0.
    """
    (n, d), m = X.shape, Y.shape[0]
    rows_of_x, rows_of_y = (np.repeat(np.arange(len(Z.indptr) - 1), np.diff(Z.indptr)) for Z in (X, Y))
    totals = np.bincount(rows_of_x, term(X.data), minlength=n)
    sums = np.empty((n, m))
    x = np.zeros(d)
    for i in range(n):
        entries = slice(X.indptr[i], X.indptr[i + 1])
        x[X.indices[entries]] = X.data[entries]
        x_at_y = x[Y.indices]
        sums[i] = totals[i] - np.bincount(rows_of_y, term(x_at_y), minlength=m)
        sums[i] += np.bincount(rows_of_y, term(x_at_y - Y.data), minlength=m)
        x[X.indices[entries]] = 0.0
    return np.maximum(sums, 0.0)


def median_distance(rows: Any, distances: Callable[[Any, Any], Array]) -> float:
    """Return the median distance between two of at most 512 evenly spaced rows, dense or CSR; 0 if all are equal.

    If most pairs are duplicates and the median is 0, return the mean.
    """
    rows = median_rows(rows)
    pairs = distances(rows, rows)[~np.tri(rows.shape[0], dtype=bool)]
    if pairs.size == 0:
        return 0.0
    median, largest = float(np.median(pairs)), float(pairs.max())
    return median if median > 1e-12 * largest else float(pairs.mean())


def median_squared_distance(rows: Any) -> float:
    """Return the ``median_distance`` of squared distances."""
    return median_distance(rows, squared_distances)


def median_rows(rows: Any) -> Any:
    """Return the evenly spaced rows used for a median, so that only these need to be scaled."""
    n = rows.shape[0]
    return rows[np.unique(np.linspace(0, n - 1, min(n, MEDIAN_ROWS)).astype(int))]
