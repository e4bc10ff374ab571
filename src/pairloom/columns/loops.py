"""The compiled loop of the encoder: what is known of each column, row by row, and the numbers of each row."""

from math import cos, floor, pi, sin

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array

NUMBER, CATEGORY, DATE, DROP, OPEN = range(5)
"""Kinds of columns; OPEN: nothing has come yet that tells."""

MASS, SUM, LOW, HIGH, LAST, COUNT, ORDER, WHOLE, AGAIN, GAPS = range(10)
"""Rows of the statistics: weight and weighted sum of the numbers (of dates: ages), smallest, largest and last value,
their number, +1 if each was larger than the last (-1: smaller; 0: neither), 1 if all are whole numbers, how many rows
had a category that had come before, and how many had none."""

N_STATISTICS = 10
DATE_WIDTH = 7
WEEK, YEAR = 7.0, 365.2425


@compiled
def encode(
    values: Array, weight: Array, kinds: Array, starts: Array, statistics: Array, learn: bool, missing_stay: bool,
    marks_after: int, n_named: int, out: Array,
) -> None:  # fmt: skip
    """Fill ``out`` (rows, numbers), zero before, from ``values`` (rows, columns): NaN is missing, categories are codes.

    ``learn``: take each row into the statistics after it was encoded. ``missing_stay``: NaN stays NaN, and categories
    stay codes. ``marks_after``: a number has a mark of missing beside it, which is used once so many were missing; -1:
    it has none. ``n_named``: codes of single categories, given in
    the order in which these come; hashes have larger ones. A column of which nothing has come yet may be of
    any kind: whatever it is, its missing value is 0, or NaN.
    """
    for t in range(values.shape[0]):
        now = newest(values[t], kinds, statistics)
        for j in range(values.shape[1]):
            value, kind, at, column = values[t, j], kinds[j], starts[j], statistics[:, j]
            missing = np.isnan(value)
            if missing and column[COUNT] == 0:
                if missing_stay and kind != DROP:
                    out[t, at] = np.nan
            elif kind == CATEGORY:
                if missing_stay:
                    out[t, at] = value if value >= 0 else np.nan
                elif missing:
                    out[t, at] = 1.0
                elif value >= 0:
                    out[t, at + 1 + int(value)] = 1.0
            elif kind == NUMBER:
                out[t, at] = column[SUM] / column[MASS] if missing and not missing_stay else value
                if missing and 0 <= marks_after <= column[GAPS]:
                    out[t, at + 1] = 1.0
            elif kind == DATE:
                out[t, at] = column[SUM] / column[MASS] if missing and not missing_stay else now - value
                if not missing:
                    circles(value, column[HIGH] - column[LOW], out[t, at + 1 : at + DATE_WIDTH])
                elif missing_stay:
                    out[t, at + 1 : at + DATE_WIDTH] = np.nan
                elif 0 <= marks_after <= column[GAPS]:
                    out[t, at + DATE_WIDTH] = 1.0
            if learn and missing:
                column[GAPS] += 1.0
            elif learn:
                if kind == CATEGORY and column[COUNT] > 0 and value <= column[HIGH] and value < n_named:
                    column[AGAIN] += 1.0
                remember(value, now - value if kind == DATE else value, weight[t], column)


@compiled
def newest(values: Array, kinds: Array, statistics: Array) -> float:
    """The latest of all dates so far, those of this row included."""
    now = -np.inf
    for j in range(values.shape[0]):
        if kinds[j] == DATE:
            if statistics[COUNT, j] > 0:
                now = max(now, statistics[HIGH, j])
            if values[j] > now:
                now = values[j]
    return now


@compiled
def circles(days: float, seen: float, out: Array) -> None:
    """Where in the day, the week (1970 began on a Thursday) and the year a time is, as points on circles.

    A circle of which less than a half was ``seen`` stays 0: a scale fixed on a short arc would not hold for the rest.
    """
    for k, period in enumerate((1.0, WEEK, YEAR)):
        if 2.0 * seen >= period:
            turns = (days + 3.0) / period if period == WEEK else days / period
            part = 2.0 * pi * (turns - floor(turns))
            out[2 * k], out[2 * k + 1] = sin(part), cos(part)


@compiled
def remember(value: float, number: float, weight: float, column: Array) -> None:
    """Take one value into the statistics of its column, and the number that it became."""
    if column[COUNT] == 0:
        column[LOW] = column[HIGH] = value
        column[WHOLE] = 1.0
    else:
        rises = 1.0 if value > column[LAST] else -1.0 if value < column[LAST] else 0.0
        column[ORDER] = rises if column[COUNT] == 1 or column[ORDER] == rises else 0.0
        column[LOW], column[HIGH] = min(value, column[LOW]), max(value, column[HIGH])
    if value != floor(value):
        column[WHOLE] = 0.0
    column[MASS] += weight
    column[SUM] += weight * number
    column[LAST] = value
    column[COUNT] += 1.0
