"""The compiled loop of the encoder: the features of each row, and the statistics of each column."""

from math import cos, floor, pi, sin, sqrt
from typing import Any

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array

NUMBER, CATEGORY, DATE, DROP, OPEN = range(5)
"""Kinds of columns; OPEN: only missing values so far."""

N_STATISTICS = 10
MASS, SUM, LOW, HIGH, LAST, COUNT, ORDER, INTEGER, REPEATS, MISSING = range(N_STATISTICS)
"""Rows of the statistics: weight and weighted sum of the numbers (for dates: of the ages), smallest, largest and last
value, number of values, +1 if each was larger than the one before (-1: smaller; 0: neither), 1 if all are integers,
number of rows with a category that was known before, number of missing values."""

DATE_WIDTH = 7
WEEK, YEAR = 7.0, 365.2425

LATE_VALUES = 64
"""Values of a late number or date that set its scale; until then it is missing."""

MAX_LATE = 1e6
"""Maximum absolute scaled value of a late column."""

ID_ROWS, ID_REPEATS = 256, 0.05
"""Values from which a column may look like an id, and the repeats per category below which a category column does."""


@compiled
def encode(
    values: Array, weight: Array, columns: Any, statistics: Array, learn: bool, missing_stay: bool, marks_after: int,
    unknown: float, n_named: int, scaling: Array, n_first: int, out: Array,
) -> None:  # fmt: skip
    """Fill ``out`` (rows, features) from ``values`` (rows, columns), with NaN for missing, and codes.

    ``columns``: kinds, first features, and whether values are missing while the column looks like an id. ``learn``:
    update the statistics with each row after it is encoded. ``missing_stay``: NaN stays NaN, and categories stay codes;
    one that was never learned becomes ``unknown``. ``marks_after``: number of missing values in a column after which
    its missing indicator is used; -1: the layout has no indicators. ``n_named``: codes below it are single categories,
    in order of arrival; hashed categories have larger codes. Columns from ``n_first`` on are late: each has a number
    and a code, the number with a ``scaling`` (3, late columns) of mean, sum of squares, and factor (0: not known yet).
    A column without values so far may be of any kind: its missing value is encoded as 0, or NaN.
    """
    kinds, starts, hides_ids = columns
    for t in range(values.shape[0]):
        now = latest_date(values[t], kinds, statistics)
        for j in range(values.shape[1]):
            value, kind, at, column = values[t, j], kinds[j], starts[j], statistics[:, j]
            missing = np.isnan(value)
            hidden = hides_ids[j] and looks_like_id(kind, column, n_named)
            if hidden or (missing and column[COUNT] == 0):
                if missing_stay and kind != DROP:
                    out[t, at] = np.nan
            elif j >= n_first:
                if kind == CATEGORY:
                    out[t, at + 1] = value if missing or value >= 0 else unknown
                elif not missing and scaling[2, j - n_first] > 0:
                    scaled = ((now - value if kind == DATE else value) - scaling[0, j - n_first]) * scaling[
                        2, j - n_first
                    ]
                    out[t, at] = min(max(scaled, -MAX_LATE), MAX_LATE)
            elif kind == CATEGORY:
                if missing_stay:
                    out[t, at] = value if missing or value >= 0 else unknown
                elif missing:
                    out[t, at] = 1.0
                elif value >= 0:
                    out[t, at + 1 + int(value)] = 1.0
            elif kind == NUMBER:
                out[t, at] = column[SUM] / column[MASS] if missing and not missing_stay else value
                if missing and 0 <= marks_after <= column[MISSING]:
                    out[t, at + 1] = 1.0
            elif kind == DATE:
                out[t, at] = column[SUM] / column[MASS] if missing and not missing_stay else now - value
                if not missing:
                    cyclic_features(value, column[HIGH] - column[LOW], out[t, at + 1 : at + DATE_WIDTH])
                elif missing_stay:
                    out[t, at + 1 : at + DATE_WIDTH] = np.nan
                elif 0 <= marks_after <= column[MISSING]:
                    out[t, at + DATE_WIDTH] = 1.0
            if learn and missing:
                column[MISSING] += 1.0
            elif learn:
                if kind == CATEGORY and column[COUNT] > 0 and value <= column[HIGH] and value < n_named:
                    column[REPEATS] += 1.0
                number = now - value if kind == DATE else value
                if j >= n_first:
                    update_scaling(number, column[COUNT] + 1.0, scaling[:, j - n_first])
                update_statistics(value, number, weight[t], column)


@compiled
def update_scaling(number: float, n: float, own: Array) -> None:
    """Add the n-th number of a late column to its mean and squares, until these set its scale.

    Scales of other columns are set by the model, on its first rows, in which a late column has no values.
    """
    if own[2] > 0:
        return
    away = number - own[0]
    own[0] += away / n
    own[1] += away * (number - own[0])
    if n >= LATE_VALUES and own[1] > n * (1e-9 * own[0]) ** 2 and own[1] > 0:
        own[2] = sqrt(n / own[1])


@compiled
def looks_like_id(kind: int, column: Array, n_named: int) -> bool:
    """Return whether a column has categories that hardly ever repeat, or integers that always rise or always fall."""
    if column[COUNT] < ID_ROWS:
        return False
    if kind == CATEGORY:
        return bool(column[REPEATS] < ID_REPEATS * min(column[HIGH] + 1.0, n_named))
    return bool(kind == NUMBER and column[INTEGER] == 1.0 and column[ORDER] != 0.0)


@compiled
def latest_date(values: Array, kinds: Array, statistics: Array) -> float:
    """Return the latest of all dates so far, those of this row included."""
    now = -np.inf
    for j in range(values.shape[0]):
        if kinds[j] == DATE:
            if statistics[COUNT, j] > 0:
                now = max(now, statistics[HIGH, j])
            if values[j] > now:
                now = values[j]
    return now


@compiled
def cyclic_features(days: float, seen: float, out: Array) -> None:
    """Write sine and cosine of the time of day, of the week (1970 began on a Thursday) and of the year to ``out``.

    A period of which less than half was ``seen`` stays 0: scales fitted on a short arc would not suit the rest.
    """
    for k, period in enumerate((1.0, WEEK, YEAR)):
        if 2.0 * seen >= period:
            turns = (days + 3.0) / period if period == WEEK else days / period
            part = 2.0 * pi * (turns - floor(turns))
            out[2 * k], out[2 * k + 1] = sin(part), cos(part)


@compiled
def update_statistics(value: float, number: float, weight: float, column: Array) -> None:
    """Update the statistics of a column with a value, and with the ``number`` it was encoded as."""
    if column[COUNT] == 0:
        column[LOW] = column[HIGH] = value
        column[INTEGER] = 1.0
    else:
        rises = 1.0 if value > column[LAST] else -1.0 if value < column[LAST] else 0.0
        column[ORDER] = rises if column[COUNT] == 1 or column[ORDER] == rises else 0.0
        column[LOW], column[HIGH] = min(value, column[LOW]), max(value, column[HIGH])
    if value != floor(value):
        column[INTEGER] = 0.0
    column[MASS] += weight
    column[SUM] += weight * number
    column[LAST] = value
    column[COUNT] += 1.0
