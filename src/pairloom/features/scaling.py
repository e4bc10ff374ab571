"""Scaling of the input columns, fixed on the first rows of the stream."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pairloom.checks import check_choice
from pairloom.features.sparse import as_csr, column_moments, column_range, is_sparse, scale_columns
from pairloom.typing import Array

Rule = Literal["standard", "wide", "maxabs", "minmax"]
Scaling = Rule | None


def check_scaling(scale: Scaling) -> None:
    """Raise unless ``scale`` is None or a known rule."""
    if scale is not None:
        check_choice("scale, if not None,", scale, Rule)


@dataclass
class Scaler:
    """x -> (x - shift) / scale, column by column."""

    shift: Array
    scale: Array

    def apply(self, X: Any) -> Any:
        """Scaled rows, a new array.

        CSR rows are divided by the scale and stay CSR: taking the shift out would make them dense. It is the same
        for all rows, so no pair, no distance and no order of scores sees it.
        """
        if is_sparse(X):
            return scale_columns(X, 1.0 / self.scale)
        return np.ascontiguousarray((X - self.shift) / self.scale)


def fit_scaler(rule: Scaling, n_features: int, rows: Any) -> Scaler:
    """The scaler of ``rule`` on ``rows``, dense or CSR; a constant column keeps scale 1.

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
    return Scaler(shift, np.where(flat, 1.0, scale))


def _statistics(rows: Any) -> tuple[Array, Array, Array, Array]:
    """Minimum, maximum, mean and standard deviation of each column."""
    if is_sparse(rows):
        X = as_csr(rows)
        return *column_range(X), *column_moments(X)
    X = np.asarray(rows, dtype=float)
    return X.min(axis=0), X.max(axis=0), X.mean(axis=0), X.std(axis=0)
