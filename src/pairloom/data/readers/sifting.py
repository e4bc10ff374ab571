"""Separate rows that can be read from those that cannot, many at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairloom.base.typing import Array

REFUSED = (ValueError, OverflowError, NotImplementedError)
"""What a row raises that cannot be taken: the last two come from conversions of pyarrow and NumPy."""

Faults = dict[int, str]
"""What is wrong with rows, by their places in a piece."""


@dataclass(frozen=True)
class Sifted:
    """Rows of a piece that can be read, and what is wrong with the others.

    ``table``: of named columns, or numbers and labels of LIBSVM; None if there are no rows. ``rows``: their places.
    """

    table: Any
    rows: Array
    faults: Faults


def in_halves(
    low: int, high: int, attempt: Callable[[int, int], object], on_bad: Callable[[int, ValueError], None]
) -> None:
    """Attempt rows as a whole; where that raises ValueError, and so changes nothing, each half of them in turn.

    Rows are attempted in order, and those before a bad one have been when it is reported. b bad rows of n cost about
    2 b log2(n / b) attempts more.

    >>> def attempt(low, high):
    ...     if low <= 5 < high:
    ...         raise ValueError("five")
    ...     print("rows", low, "to", high)
    >>> in_halves(0, 8, attempt, lambda row, error: print(error, "is row", row))
    rows 0 to 4
    rows 4 to 5
    five is row 5
    rows 6 to 8
    """
    if low >= high:
        return
    try:
        attempt(low, high)
    except REFUSED as error:
        if high - low == 1:
            on_bad(low, error if isinstance(error, ValueError) else ValueError(str(error)))
            return
    else:
        return
    middle = (low + high) // 2
    in_halves(low, middle, attempt, on_bad)
    in_halves(middle, high, attempt, on_bad)


def faults_by_halves(low: int, high: int, attempt: Callable[[int, int], object]) -> Faults:
    """What is wrong with rows for which there is no faster way to say it."""
    found: Faults = {}
    in_halves(low, high, attempt, lambda row, error: found.update({row: str(error)}))
    return found


def others(low: int, high: int, faults: Faults) -> Array:
    """The rows from ``low`` to before ``high`` that have no fault."""
    keep = np.ones(high - low, dtype=bool)
    keep[[row - low for row in faults]] = False
    return np.flatnonzero(keep) + low
