"""The compiled loop of an encoding: encode each row, then learn it."""

from math import log

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array

PRIOR_ROWS, PRIOR_POSITIVES = 10.0, 2.0
"""Weight of the prior of a category: so many rows, or as many as have so many rows of the rarer side on average."""

GROWTH = 1.25
"""The value of a category is computed again when its weight has grown by this factor."""

INDICATED_FROM = 256
"""Missing values of a column from which the indicator is used: from a few rows, a model would learn noise."""

MIN_RATE = 1e-9
"""Bound of rates, so that log-odds are finite."""


@compiled
def encode_rows(
    X: Array, hits: Array, weight: Array, columns: tuple[Array, Array, Array, Array], is_class: bool,
    arrays: tuple[Array, Array, Array, Array, Array], out: Array,
) -> None:  # fmt: skip
    """Fill ``out`` (rows, all forms) from compact rows; learn the rows whose targets ``hits`` are given.

    ``columns``: those that are categories, all others, their missing indicators, and the first entry of each category
    column. ``arrays``: those of an EncodingState.
    """
    codes, numbers, marks, offsets = columns
    sums, values, due, totals, means = arrays
    c, m, v = len(codes), len(numbers), values.shape[1]
    statistics, filled = c + m, c + m + c * v
    first_mark = filled + m
    for i in range(X.shape[0]):
        for j in range(c):
            out[i, j] = X[i, codes[j]]
            at = entry(X[i, codes[j]], offsets[j], offsets[j + 1])
            for k in range(v):
                out[i, statistics + j * v + k] = values[at, k] if at >= 0 else 0.0
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
            learn_totals(hits[i], weight[i], totals)
            for j in range(c):
                at = entry(X[i, codes[j]], offsets[j], offsets[j + 1])
                if at >= 0:
                    learn_category(at, hits[i], weight[i], is_class, totals, sums, values, due)
            for j in range(m):
                x = X[i, numbers[j]]
                if np.isnan(x):
                    means[2, j] += 1.0
                else:
                    means[0, j] += weight[i]
                    means[1, j] += weight[i] * x


@compiled
def entry(code: float, start: int, end: int) -> int:
    """Return the entry of a category; -1 for one that was never seen."""
    if np.isnan(code):
        return start
    return start + 1 + int(code) if 0 <= code < end - start - 1 else -1


@compiled
def learn_totals(hits: Array, weight: float, totals: Array) -> None:
    """Add a row to the sums of all rows."""
    totals[0] += weight
    for k in range(len(hits)):
        totals[1 + k] += weight * hits[k]
    totals[len(totals) - 1] += 1.0


@compiled
def learn_category(
    at: int, hits: Array, weight: float, is_class: bool, totals: Array, sums: Array, values: Array, due: Array
) -> None:
    """Add a row to the sums of its category, and compute the value of the category when due."""
    sums[at, 0] += weight
    for k in range(len(hits)):
        sums[at, 1 + k] += weight * hits[k]
    if sums[at, 0] < due[at]:
        return
    due[at] = GROWTH * sums[at, 0]
    unit = totals[0] / totals[len(totals) - 1]
    for k in range(len(hits)):
        values[at, k] = value_of(sums[at, 0], sums[at, 1 + k], totals[0], totals[1 + k], unit, is_class)


@compiled
def value_of(mass: float, hits: float, all_mass: float, all_hits: float, unit: float, is_class: bool) -> float:
    """Return smoothed log-odds in a category minus those of all rows; for real labels, the difference of means."""
    if not is_class:
        prior = PRIOR_ROWS * unit
        return (hits - mass * (all_hits / all_mass)) / (mass + prior)
    share = (all_hits + 0.5 * unit) / (all_mass + unit)
    prior = unit * max(PRIOR_ROWS, PRIOR_POSITIVES / min(share, 1.0 - share))
    return log_odds((hits + prior * share) / (mass + prior)) - log_odds(share)


@compiled
def log_odds(rate: float) -> float:
    """Return the log-odds of a rate, bounded."""
    bounded = min(max(rate, MIN_RATE), 1.0 - MIN_RATE)
    return log(bounded / (1.0 - bounded))
