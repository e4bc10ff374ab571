"""Scaling of the input columns, fixed on the first rows of the stream."""

from dataclasses import field, replace
from typing import Annotated, Any, Literal

import numpy as np

from pairloom.base.checks import check_choice
from pairloom.base.csr import is_sparse
from pairloom.base.graph import Value
from pairloom.base.tree import node
from pairloom.base.typing import Array

BLOCK_SIZE = 1 << 22
"""Number of values converted to float64 at a time (32 MB)."""

ScalingRule = Literal["standard", "wide", "maxabs", "minmax"]
Scaling = ScalingRule | None

MIN_SPREAD = {"float32": 1e-30, "float64": 1e-150}
"""Smaller spreads are treated as 0: their inverse or square may overflow."""

MAX_SCALED = 1e15
"""Maximum absolute scaled value; larger values are clipped, so that sums of squares do not overflow float32."""


def check_scaling(scale: Scaling) -> None:
    """Raise ValueError unless ``scale`` is None or a known rule."""
    if scale is not None:
        check_choice("scale, if not None,", scale, ScalingRule)


@node
class Scaler:
    """x -> (x - shift) / scale, column by column.

    ``reach`` (d,): the maximum distance of a value from the shift; values farther away are clipped. Empty: no limit.
    """

    shift: Annotated[Array, "R d finite"]
    scale: Annotated[Array, "R d positive"]
    reach: Annotated[Array, "R d finite | R 0"] = field(default_factory=lambda: np.zeros(0))

    def apply(self, X: Any) -> Any:
        """Return the scaled rows, a new array.

        CSR rows are divided by the scale and stay CSR: subtracting the shift would make them dense. The shift is the
        same for all rows, so it does not change pairs, distances or the order of scores.
        """
        X = self.clip(X)
        if is_sparse(X):
            return scale_columns(X, 1.0 / self.scale)
        return np.ascontiguousarray((X - self.shift) / self.scale)

    def clip(self, X: Any) -> Any:
        """Return X, dense or CSR, with values clipped to the reach, so that squared scaled values do not overflow."""
        if not self.reach.size:
            return X
        if is_sparse(X):
            X = X.tocsr()
            reach = self.reach[X.indices]
            if (np.abs(X.data) <= reach).all():
                return X
            X = X.copy()
            np.clip(X.data, -reach, reach, out=X.data)
            return X
        if (np.abs(X - self.shift) <= self.reach).all():
            return X
        return np.clip(X, self.shift - self.reach, self.shift + self.reach)

    def to_onnx(self, x: Value) -> Value:
        """Return dense scaled rows in a graph."""
        return (self.clip_onnx(x) - self.shift) / self.scale

    def clip_onnx(self, x: Value) -> Value:
        """Return dense rows in a graph, with values clipped to the reach."""
        return x.clip(self.shift - self.reach, self.shift + self.reach) if self.reach.size else x

    def within(self, factor: Any) -> "Scaler":
        """Return a scaler with the reach for a map that multiplies the scaled columns by ``factor``."""
        return replace(self, reach=MAX_SCALED * self.scale / np.maximum(1.0, factor))


@node
class WrapperState:
    """State of a map around an inner map, which scales the columns."""

    inner: Annotated[Any, "@inner"]

    @property
    def scaler(self) -> Scaler:
        """The scaling of the inner map."""
        scaler: Scaler = self.inner.scaler
        return scaler


def fit_scaler(rule: Scaling, n_features: int, rows: Any) -> Scaler:
    """Fit a scaler to ``rows``, dense or CSR; a column that is constant, or nearly 0, keeps scale 1.

    ``standard``: mean 0, deviation 1. ``wide``: the same, but the scale of a column is at least an eighth of its range,
    so that rare values of a nearly constant column are not scaled to outliers. ``maxabs``: into [-1, 1], zero stays
    zero. ``minmax``: onto [-1, 1]. Zeros that CSR rows do not store count like any other value.
    """
    if rule is None or rows is None:
        return Scaler(np.zeros(n_features), np.ones(n_features))
    low, high, mean, deviation = _statistics(rows)
    shift, scale = np.zeros(n_features), np.maximum(np.abs(low), np.abs(high))
    if rule == "standard":
        shift, scale = mean, deviation
    elif rule == "wide":
        shift, scale = mean, np.maximum(deviation, (high - low) / 8)
    elif rule == "minmax":
        shift, scale = low + (high - low) / 2, (high - low) / 2
    # The computed standard deviation of a constant column is a rounding error, not exactly 0.
    flat = (low == high) if rule != "maxabs" else (scale == 0)
    scaler = Scaler(shift, np.where(flat | (scale < smallest_spread(rows)), 1.0, scale))
    return scaler.within(1.0)


def smallest_spread(rows: Any) -> float:
    """Return the smallest spread that is not treated as 0, for rows of this dtype."""
    return MIN_SPREAD[np.dtype(rows.dtype).name]


def _statistics(rows: Any) -> tuple[Array, Array, Array, Array]:
    """Return minimum, maximum, mean and standard deviation of each column."""
    if is_sparse(rows):
        X = as_csr(rows)
        return X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel(), *column_moments(X)
    n, d = rows.shape
    columns = max(2, BLOCK_SIZE // n)
    parts = []
    for start in range(0, d, columns):
        X = np.asarray(rows[:, start : start + columns], dtype=float)
        parts.append((X.min(axis=0), X.max(axis=0), X.mean(axis=0), X.std(axis=0)))
    low, high, mean, deviation = (np.concatenate(part) for part in zip(*parts, strict=True))
    return low, high, mean, deviation


def as_csr(X: Any) -> Any:
    """Return rows, dense or sparse, as a float64 CSR array without duplicate entries."""
    # Imported here: loading SciPy's sparse module would slow down every start.
    from scipy.sparse import csr_array

    rows = csr_array(X, dtype=float)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def scale_columns(X: Any, factor: Array) -> Any:
    """Return X diag(factor), a new array; CSR stays CSR."""
    if not is_sparse(X):
        return X * factor
    scaled = X.tocsr().copy()
    scaled.data = scaled.data * (factor[scaled.indices] if factor.ndim else factor)
    return scaled


def column_moments(X: Any) -> tuple[Array, Array]:
    """Return mean and standard deviation of each column of CSR rows, including the zeros that are not stored."""
    n, d = X.shape
    mean = np.bincount(X.indices, X.data, minlength=d) / n
    zeros = n - np.bincount(X.indices, minlength=d)
    squares = np.bincount(X.indices, np.square(X.data - mean[X.indices]), minlength=d) + zeros * np.square(mean)
    return mean, np.sqrt(squares / n)
