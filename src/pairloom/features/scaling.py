"""Scaling of the input columns, fixed on the first rows of the stream."""

from dataclasses import field, replace
from typing import Any, Literal

import numpy as np

from pairloom.base.checks import check_choice
from pairloom.base.csr import is_sparse
from pairloom.base.tree import Rounded, node
from pairloom.base.typing import Array
from pairloom.features.sparse import as_csr, column_moments, column_range, scale_columns

BLOCK = 1 << 22
"""Numbers that are made float64 at a time (32 MB)."""

ScalingRule = Literal["standard", "wide", "maxabs", "minmax"]
Scaling = ScalingRule | None

SMALLEST = {"float32": 1e-30, "float64": 1e-150}
"""Spreads below these count as 0: their inverse or their square may be no number."""

FAR = 1e15
"""Scaled values beyond this count as this: float32 can still hold their squares, and sums of them."""


def check_scaling(scale: Scaling) -> None:
    """Raise unless ``scale`` is None or a known rule."""
    if scale is not None:
        check_choice("scale, if not None,", scale, ScalingRule)


@node
class Scaler:
    """x -> (x - shift) / scale, column by column.

    ``reach`` (d,): how far from the shift a value may be; those further away count as that far. Empty: anywhere.
    """

    shift: Rounded
    scale: Rounded
    reach: Rounded = field(default_factory=lambda: np.zeros(0))

    def apply(self, X: Any) -> Any:
        """Scaled rows, a new array.

        CSR rows are divided by the scale and stay CSR: taking the shift out would make them dense. It is the same
        for all rows, so no pair, no distance and no order of scores sees it.
        """
        X = self.near(X)
        if is_sparse(X):
            return scale_columns(X, 1.0 / self.scale)
        return np.ascontiguousarray((X - self.shift) / self.scale)

    def near(self, X: Any) -> Any:
        """X, dense or CSR, its far values brought within reach: scaled and squared they would be no numbers."""
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

    def within(self, factor: Any) -> "Scaler":
        """The same, for a map that multiplies the scaled columns by ``factor``."""
        return replace(self, reach=FAR * self.scale / np.maximum(1.0, factor))


def fit_scaler(rule: Scaling, n_features: int, rows: Any) -> Scaler:
    """The scaler of ``rule`` on ``rows``, dense or CSR; a column that is constant, or nearly 0, keeps scale 1.

    ``standard``: mean 0, deviation 1. ``wide``: the same, but a column's scale is an eighth of its range at least, so
    that the rare values of a nearly constant column do not end up far from everything. ``maxabs``: into [-1, 1], zero
    stays zero. ``minmax``: onto [-1, 1].
    The zeros that CSR rows do not store count as any other value.
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
    # A constant column has a deviation of rounding errors, not exactly 0.
    flat = (low == high) if rule != "maxabs" else (scale == 0)
    scaler = Scaler(shift, np.where(flat | (scale < smallest_spread(rows)), 1.0, scale))
    return scaler.within(1.0)


def smallest_spread(rows: Any) -> float:
    """The least spread that counts, for rows of this dtype."""
    return SMALLEST[np.dtype(rows.dtype).name]


def _statistics(rows: Any) -> tuple[Array, Array, Array, Array]:
    """Minimum, maximum, mean and standard deviation of each column."""
    if is_sparse(rows):
        X = as_csr(rows)
        return *column_range(X), *column_moments(X)
    n, d = rows.shape
    columns = max(2, BLOCK // n)
    parts = []
    for start in range(0, d, columns):
        X = np.asarray(rows[:, start : start + columns], dtype=float)
        parts.append((X.min(axis=0), X.max(axis=0), X.mean(axis=0), X.std(axis=0)))
    low, high, mean, deviation = (np.concatenate(part) for part in zip(*parts, strict=True))
    return low, high, mean, deviation
