"""Distances between all rows of two sets, dense or CSR, in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pairloom.base.csr import is_sparse
from pairloom.base.typing import Array
from pairloom.features.sparse import as_csr

BLOCK = 1 << 17
"""Differences of coordinates held at a time (1 MB)."""

LARGE = 1 << 23
"""Coordinates (64 MB) from which on rows are not copied twice to compare them with themselves."""

ROUNDING = 64 * np.finfo(float).eps

Term = Callable[[Array], Array]


def squared_distances(X: Any, Y: Any) -> Array:
    """||x - y||^2 between all rows.

    The common mean is taken out first, against cancellation; not from CSR rows, which it would make dense.
    Cost: n m d flops (CSR: one sparse product); n m numbers, and a copy of the rows.

    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[25.]])
    """
    if is_sparse(X) or is_sparse(Y):
        X, Y = as_csr(X), as_csr(Y)
        squares = (X * X).sum(axis=1)[:, None] + (Y * Y).sum(axis=1)[None, :]
        distances = squares - 2.0 * (X @ Y.T).toarray()
        # What is left of equal rows is rounding, of either sign.
        return np.asarray(np.where(distances > ROUNDING * squares, distances, 0.0))
    center = np.mean(X, axis=0, dtype=float)
    same = X is Y and X.size > LARGE
    X = X - center
    # BLAS has another routine for the product of a matrix with itself, which differs in the last bit.
    Y = X if same else Y - center
    squares = np.square(X).sum(axis=1)[:, None] + np.square(Y).sum(axis=1)[None, :]
    return np.asarray(np.maximum(squares - 2.0 * (X @ Y.T), 0.0))


def coordinate_sums(X: Any, Y: Any, term: Term) -> Array:
    """sum_i f(x_i - y_i) between all rows, for an even function f with f(0) = 0.

    Cost: n m d evaluations of f (CSR: n times the stored entries of Y); n m numbers, and blocks of 1 MB.

    >>> coordinate_sums(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), np.abs)
    array([[7.]])
    """
    if is_sparse(X) or is_sparse(Y):
        return _sparse_coordinate_sums(as_csr(X), as_csr(Y), term)
    X, Y = np.asarray(X, dtype=float), np.asarray(Y, dtype=float)
    (n, d), m = X.shape, len(Y)
    columns = max(1, min(m, BLOCK // d))
    rows = max(1, BLOCK // (columns * d))
    sums = np.empty((n, m))
    for i in range(0, n, rows):
        for j in range(0, m, columns):
            differences = X[i : i + rows, None, :] - Y[None, j : j + columns, :]
            sums[i : i + rows, j : j + columns] = term(differences).sum(axis=-1)
    return sums


def _sparse_coordinate_sums(X: Any, Y: Any, term: Term) -> Array:
    """f(x_i - y_i) over the entries of y, and f(x_i) over those of x that y has not: all of x less what y met.

    Both sums run in the order of the columns, so that equal rows cancel to 0 exactly.
    """
    (n, d), m = X.shape, Y.shape[0]
    rows_of_x, rows_of_y = (np.repeat(np.arange(len(Z.indptr) - 1), np.diff(Z.indptr)) for Z in (X, Y))
    totals = np.bincount(rows_of_x, term(X.data), minlength=n)
    sums = np.empty((n, m))
    x = np.zeros(d)
    for i in range(n):
        entries = slice(X.indptr[i], X.indptr[i + 1])
        x[X.indices[entries]] = X.data[entries]
        met = x[Y.indices]
        sums[i] = totals[i] - np.bincount(rows_of_y, term(met), minlength=m)
        sums[i] += np.bincount(rows_of_y, term(met - Y.data), minlength=m)
        x[X.indices[entries]] = 0.0
    return np.maximum(sums, 0.0)
