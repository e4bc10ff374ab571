"""One value of a column, whatever Python has for it, as its kind wants it. Missing values come here never."""

from datetime import date, datetime
from hashlib import blake2b
from numbers import Real
from typing import Any

import numpy as np

from pairloom.base.exact import FIRST_YEAR, LAST_YEAR, microseconds, naive, number_in, text_of
from pairloom.columns.kinds import Kind

LONGEST = 64
"""Letters of a category that are kept: a longer one is known by its start and its hash."""

MICROSECONDS = 86_400e6
"""Of a day. Days are one division of a whole number, so that every container gives the same bits."""

EPOCH = date(1970, 1, 1).toordinal()


def kind_of(value: Any) -> Kind | None:
    """The kind that a value speaks for; None for what is none."""
    if isinstance(value, np.timedelta64):  # which NumPy counts among the whole numbers
        return None
    if isinstance(value, (Real, np.bool_)) or hasattr(value, "as_tuple"):  # decimal.Decimal is no Real
        return "number"
    if isinstance(value, (str, bytes)):
        return "category"
    if isinstance(value, (date, np.datetime64)):
        return "date"
    return None


def number_of(value: Any) -> float:
    """A number, also one that is written as text; ValueError for all else."""
    if isinstance(value, str):
        return number_in(value)
    if kind_of(value) == "number":
        try:
            return float(value)
        except OverflowError:
            return np.inf if value > 0 else -np.inf
    raise ValueError


def days_of(value: Any) -> Any:
    """Days since 1970, in UTC; infinity outside the years 1 to 9999. A date may also be text in ISO form.

    ValueError for all else.

    >>> from datetime import date
    >>> days_of(date(1970, 1, 2)), days_of("1970-01-02T12:00"), days_of("0001-01-01T00:00+14:00")
    (1.0, 1.5, inf)
    """
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        try:
            value = naive(value)
        except ValueError:
            return np.inf
        if not FIRST_YEAR <= value.year <= LAST_YEAR:  # a timestamp of pandas
            return np.inf
        # By the base class: pandas' own takes as long as all the rest of a row.
        seconds = (datetime.toordinal(value) - EPOCH) * 86_400 + value.hour * 3600 + value.minute * 60 + value.second
        return (seconds * 1_000_000 + value.microsecond) / MICROSECONDS
    if isinstance(value, date):
        return float(value.toordinal() - EPOCH)
    if isinstance(value, np.datetime64):
        return float(days_in(value))
    raise ValueError


def days_in(moments: Any) -> Any:
    """``days_of`` of an array of ``datetime64``, or of one; NaN where it is missing."""
    known = microseconds(moments)
    strange = np.where(np.isnat(moments), np.nan, np.inf)
    return np.where(np.isnat(known), strange, known.astype(np.int64) / MICROSECONDS)


def category_of(value: Any) -> str:
    """The name of a category: 3, 3.0 and "3" are one; ValueError for what is none.

    >>> category_of(3.0), category_of("a" * 100)
    ('3', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa#cdd655dc3d3e202f')
    """
    text = text_of(value)
    if len(text) <= LONGEST:
        return text
    return f"{text[:40]}#{blake2b(text.encode(errors='surrogatepass'), digest_size=8).hexdigest()}"
