"""What may stand for y: real numbers."""

from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from pairloom.base.typing import Array
from pairloom.base.validation import refuse_other_kinds

FINITE = float(np.finfo(float).max)


def real_labels(y: Any, estimator: Any, largest: float = np.inf) -> Array:
    """Finite float64 labels of at most this size, or ValueError naming the row."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    refuse_other_kinds("y", y)
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
