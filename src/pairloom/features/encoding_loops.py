"""The compiled loop of an encoding: encode each row, then learn it."""

from math import log

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array

PRIOR_ROWS, PRIOR_POSITIVES = 10.0, 2.0
"""Weight of the prior of a category: so many rows, or as many as have so many rows of the rarer side on average."""

INDICATED_FROM = 256
"""Missing values of a column from which the indicator is used: from a few rows, a model would learn noise."""

MIN_RATE = 1e-9
"""Bound of rates, so that log-odds are finite."""


@compiled
def encode_rows(
    X: Array, hits: Array, weight: Array, columns: tuple[Array, Array, Array, Array], is_class: bool,
    arrays: tuple[Array, Array, Array], out: Array,
) -> None:  # fmt: skip
    """Fill ``out`` (rows, all forms) from compact rows; learn the rows whose targets ``hits`` are given.

    ``columns``: those that are categories, all others, their missing indicators, and the first entry of each category
    column. ``arrays``: those of an EncodingState.
    """
    codes, numbers, marks, offsets = columns
    sums, totals, means = arrays
    c, m, v = len(codes), len(numbers), sums.shape[1] - 1
    first_value, filled, first_mark = c + m, c + m + c * v, c + m + c * v + m
    for i in range(X.shape[0]):
        for j in range(c):
            out[i, j] = X[i, codes[j]]
        for k in range(v):
            share, prior = smoothing(totals, k, is_class)
            usual = log_odds(share) if is_class else share
            for j in range(c):
                at = entry(X[i, codes[j]], offsets[j], offsets[j + 1])
                value = 0.0
                if at >= 0 and sums[at, 0] > 0:
                    rate = (sums[at, 1 + k] + prior * share) / (sums[at, 0] + prior)
                    value = (log_odds(rate) if is_class else rate) - usual
                out[i, first_value + j * v + k] = value
        out[i, first_mark:] = 0.0
        for j in range(m):
            x = X[i, numbers[j]]
            out[i, c + j] = x
            out[i, filled + j] = x
            if np.isnan(x):
                out[i, filled + j] = means[1, j] / means[0, j] if means[0, j] > 0 else 0.0
                if marks[j] >= 0 and means[2, j] >= INDICATED_FROM:
                    out[i, first_mark + marks[j]] = 1.0
        if i < len(weight):
            learn_row(X[i], hits[i], weight[i], columns, arrays)


@compiled
def smoothing(totals: Array, k: int, is_class: bool) -> tuple[float, float]:
    """Return the share of target k among all rows (of real labels the mean), and the weight of this prior."""
    unit = totals[0] / totals[len(totals) - 1] if totals[0] > 0 else 1.0
    if not is_class:
        return (totals[1 + k] / totals[0] if totals[0] > 0 else 0.0), PRIOR_ROWS * unit
    share = (totals[1 + k] + 0.5 * unit) / (totals[0] + unit)
    return share, unit * max(PRIOR_ROWS, PRIOR_POSITIVES / min(share, 1.0 - share))


@compiled
def log_odds(rate: float) -> float:
    """Return the log-odds of a rate, bounded."""
    bounded = min(max(rate, MIN_RATE), 1.0 - MIN_RATE)
    return log(bounded / (1.0 - bounded))


@compiled
def entry(code: float, start: int, end: int) -> int:
    """Return the entry of a category; -1 for one that was never seen."""
    if np.isnan(code):
        return start
    return start + 1 + int(code) if 0 <= code < end - start - 1 else -1


@compiled
def learn_row(
    x: Array, hits: Array, weight: float, columns: tuple[Array, Array, Array, Array], arrays: tuple[Array, Array, Array]
) -> None:
    """Add a row to the sums of its categories, of its numbers, and of all rows."""
    codes, numbers, _, offsets = columns
    sums, totals, means = arrays
    for j in range(len(codes)):
        at = entry(x[codes[j]], offsets[j], offsets[j + 1])
        if at >= 0:
            sums[at, 0] += weight
            for k in range(len(hits)):
                sums[at, 1 + k] += weight * hits[k]
    for j in range(len(numbers)):
        if np.isnan(x[numbers[j]]):
            means[2, j] += 1.0
        else:
            means[0, j] += weight
            means[1, j] += weight * x[numbers[j]]
    totals[0] += weight
    for k in range(len(hits)):
        totals[1 + k] += weight * hits[k]
    totals[len(totals) - 1] += 1.0
