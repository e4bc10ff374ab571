"""What users pass to a metric, row by row or many at once, as three arrays; or an error that names the row."""

from typing import Any

import numpy as np

from pairloom.base.typing import Array
from pairloom.base.validation import NUMERIC, check_weight, is_missing, refuse_masked, refuse_other_kinds


def checked(y_true: Any, score: Any, sample_weight: Any, pos_label: Any) -> tuple[Array, Array, Array]:
    """Which rows are positive, their scores and weights (float64); without the rows of weight 0."""
    scores = checked_scores(score)
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


def checked_scores(score: Any) -> Array:
    """Scores as float64; infinite ones have their place in the order, NaN has none."""
    scores = np.asarray(score)
    if scores.dtype.kind not in NUMERIC or isinstance(score, np.ma.MaskedArray):
        refuse_other_kinds("score", score)
    try:
        scores = one_column("score", scores).astype(float)
    except OverflowError as error:
        raise ValueError(f"score holds a number beyond all doubles: {error}") from None
    missing = np.isnan(scores)
    if missing.any():
        raise ValueError(f"score is NaN at row {int(missing.argmax())}: it has no place in the order")
    return scores


def positives(y_true: Any, pos_label: Any) -> Array:
    """Which labels are the positive one: ``pos_label``, or 1 among bool, 0/1 and -1/+1."""
    refuse_masked("y_true", y_true)
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
    """A number as an array of one, a column as it is."""
    if values.ndim > 1:
        raise ValueError(f"{name} must be a number or one column of them, got shape {values.shape}")
    return values.reshape(-1)


def with_room(array: Array, n: int, most: int) -> Array:
    """The array, or a longer copy with room for n entries: a power of two, ``most`` at most, whatever the calls."""
    room = min(most, max(16, 1 << (n - 1).bit_length()))
    if room <= len(array):
        return array
    made = np.zeros(room, array.dtype)
    made[: len(array)] = array
    return made
