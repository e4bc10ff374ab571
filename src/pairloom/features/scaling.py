"""Scaling of the input columns, fixed on the first rows of the stream."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pairloom.checks import check_choice
from pairloom.typing import Array

Rule = Literal["standard", "maxabs", "minmax"]
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

    def apply(self, X: Array) -> Array:
        """Scaled rows, a new array."""
        return np.ascontiguousarray((X - self.shift) / self.scale)


def fit_scaler(rule: Scaling, n_features: int, rows: Array | None) -> Scaler:
    """The scaler of ``rule`` on ``rows``; a constant column keeps scale 1.

    ``standard``: mean 0, deviation 1. ``maxabs``: into [-1, 1], zero stays zero. ``minmax``: onto [-1, 1].
    """
    shift, scale = np.zeros(n_features), np.ones(n_features)
    if rule is None or rows is None:
        return Scaler(shift, scale)
    X = np.asarray(rows, dtype=float)
    low, high = X.min(axis=0), X.max(axis=0)
    if rule == "standard":
        shift, scale = X.mean(axis=0), X.std(axis=0)
    elif rule == "maxabs":
        scale = np.maximum(np.abs(low), np.abs(high))
    else:
        shift, scale = low + (high - low) / 2, (high - low) / 2
    # A constant column has a deviation of rounding errors, not exactly 0.
    flat = (low == high) if rule != "maxabs" else (scale == 0)
    return Scaler(shift, np.where(flat, 1.0, scale))
