"""Validation of the labels, scores and weights passed to a metric, for one row or many."""

from typing import Any

import numpy as np

from pairloom.base.typing import Array
from pairloom.base.validation import NUMERIC_KINDS, check_numeric, check_unmasked, check_weight, is_missing


def check_metric_inputs(y_true: Any, score: Any, sample_weight: Any, pos_label: Any) -> tuple[Array, Array, Array]:
    """Return which rows are positive, their scores and weights (float64), without the rows of weight 0."""
    scores = check_scores(score)
    positive = positives(y_true, pos_label)
    if len(positive) != len(scores):
        raise ValueError(f"y_true has {len(positive)} rows, but score has {len(scores)}")
    if sample_weight is None:
        return positive, scores, np.ones(len(scores))
    if np.ndim(sample_weight) and np.shape(sample_weight) != scores.shape:
        raise ValueError(f"sample_weight has shape {np.shape(sample_weight)}, but score has {len(scores)} rows")
    weights = check_weight(sample_weight, len(scores))
    keep = weights > 0
    return positive[keep], scores[keep], weights[keep]


def check_scores(score: Any) -> Array:
    """Return scores as float64; ValueError for NaN. Infinite scores are allowed."""
    scores = np.asarray(score)
    if scores.dtype.kind not in NUMERIC_KINDS or isinstance(score, np.ma.MaskedArray):
        check_numeric("score", score)
    try:
        scores = one_column("score", scores).astype(float)
    except OverflowError as error:
        raise ValueError(f"score has a number too large for float64: {error}") from None
    missing = np.isnan(scores)
    if missing.any():
        raise ValueError(f"score is NaN at row {int(missing.argmax())}: it cannot be ranked")
    return scores


def positives(y_true: Any, pos_label: Any) -> Array:
    """Return which labels are positive: equal to ``pos_label``, or 1 for bool, 0/1 and -1/+1 labels."""
    check_unmasked("y_true", y_true)
    labels = one_column("y_true", np.asarray(y_true))
    if labels.dtype.kind == "b" and pos_label is None:
        return labels
    if labels.dtype.kind in "fO":
        missing = (
            np.array([is_missing(label) for label in labels], bool) if labels.dtype.kind == "O" else labels != labels
        )
        if missing.any():
            raise ValueError(f"y_true is missing at row {int(missing.argmax())}")
    positive = np.asarray(labels == (1 if pos_label is None else pos_label), bool)
    if pos_label is None:
        known = positive | np.asarray((labels == 0) | (labels == -1), bool)
        if not known.all():
            row = int(known.argmin())
            raise ValueError(
                f"y_true must be bool, 0/1 or -1/+1; it is {labels.tolist()[row]!r} at row {row}. "
                "Name the positive label with pos_label."
            )
    return positive


def one_column(name: str, values: Array) -> Array:
    """Return a number or a column as a 1-d array."""
    if values.ndim > 1:
        raise ValueError(f"{name} must be a number or one column of numbers; got shape {values.shape}")
    return values.reshape(-1)


def with_room(array: Array, n: int, most: int) -> Array:
    """Return the array, or a longer copy with room for n entries: a power of two, at most ``most``."""
    room = min(most, max(16, 1 << (n - 1).bit_length()))
    if room <= len(array):
        return array
    made = np.zeros(room, array.dtype)
    made[: len(array)] = array
    return made
