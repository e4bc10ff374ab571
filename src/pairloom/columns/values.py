"""One value of a column as a number, a date, a category or text: exactly, so that different values stay different."""

import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from math import isfinite
from numbers import Integral
from typing import Any

import numpy as np

from pairloom.base.validation import is_missing
from pairloom.columns.kinds import DECIMAL, kind_of_value

NUMBER_TEXT = re.compile(rf"\s*({DECIMAL}|[-+]?(nan|inf|infinity))\s*", re.I)

WITHOUT_TEXT = (
    list, tuple, dict, set, frozenset, np.ndarray, complex, timedelta, np.timedelta64, type(None),
)  # fmt: skip
"""Containers, and types that libraries print differently."""

MAX_CATEGORY_LENGTH = 64
"""Maximum length of a category; a longer one is identified by its start and its hash."""

MAX_DIGITS = 400
"""Maximum digits of a Decimal before or after the point; no double has more."""

FIRST_YEAR, LAST_YEAR = 1, 9999
"""Years that every library supports."""

DAY_MICROSECONDS = 86_400e6
"""Days are one division of an integer, so that every container gives the same bits."""

EPOCH = date(1970, 1, 1).toordinal()


def is_blank(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, NaT, NA, or an empty string."""
    return not value if isinstance(value, (str, bytes)) else is_missing(value)


def number_of(value: Any) -> float:
    """Return a number, which may be given as text in ASCII; ValueError for other values.

    >>> number_of(" 1e3 "), number_of("nan"), number_of(True)
    (1000.0, nan, 1.0)
    """
    if isinstance(value, str):
        if not NUMBER_TEXT.fullmatch(value):  # float() accepts underscores and digits of other alphabets
            raise ValueError
        return float(value)
    if kind_of_value(value) == "number":
        try:
            return float(value)
        except OverflowError:
            return np.inf if value > 0 else -np.inf
    raise ValueError


def days_of(value: Any) -> Any:
    """Return a date as days since 1970, in UTC; infinity outside the years 1 to 9999. Text must be in ISO format.

    ValueError for other values.

    >>> days_of(date(1970, 1, 2)), days_of("1970-01-02T12:00"), days_of("0001-01-01T00:00+14:00")
    (1.0, 1.5, inf)
    """
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    if isinstance(value, datetime):
        try:
            value = without_zone(value)
        except ValueError:
            return np.inf
        if not FIRST_YEAR <= value.year <= LAST_YEAR:  # a pandas Timestamp
            return np.inf
        # Call the base class: the method of pandas takes as long as the rest of a row.
        seconds = (datetime.toordinal(value) - EPOCH) * 86_400 + value.hour * 3600 + value.minute * 60 + value.second
        return (seconds * 1_000_000 + value.microsecond) / DAY_MICROSECONDS
    if isinstance(value, date):
        return float(value.toordinal() - EPOCH)
    if isinstance(value, np.datetime64):
        return float(days_in(value))
    raise ValueError


def days_in(moments: Any) -> Any:
    """Return ``days_of`` an array of ``datetime64``, or of one; NaN where it is missing."""
    known = as_microseconds(moments)
    unknown = np.where(np.isnat(moments), np.nan, np.inf)
    return np.where(np.isnat(known), unknown, known.astype(np.int64) / DAY_MICROSECONDS)


def category_of(value: Any) -> str:
    """Return the name of a category: 3, 3.0 and "3" are the same; ValueError for values without a text form.

    >>> category_of(3.0), category_of("a" * 100)
    ('3', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa#cdd655dc3d3e202f')
    """
    text = text_of(value)
    if len(text) <= MAX_CATEGORY_LENGTH:
        return text
    return f"{text[:40]}#{blake2b(text.encode(errors='surrogatepass'), digest_size=8).hexdigest()}"


def text_of(value: Any) -> str:
    """Return a value as text; ValueError for infinity, containers, durations and complex numbers.

    An integer has the same text in every type, as does a date, in UTC.

    >>> text_of(3), text_of(3.0), text_of("3.0"), text_of(2**53 + 1), text_of(True), text_of(np.float32(0.5))
    ('3', '3', '3.0', '9007199254740993', 'True', '0.5')
    >>> text_of(date(2024, 1, 2)), text_of(np.datetime64("2024-01-02T03:04"))
    ('2024-01-02', '2024-01-02T03:04:00')
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, WITHOUT_TEXT):
        raise ValueError
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        if not isfinite(number := float(value)):
            raise ValueError
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, Decimal):
        if not value.is_finite() or abs(value.adjusted()) > MAX_DIGITS:
            raise ValueError
        return str(int(value)) if value == value.to_integral_value() else f"{value:f}".rstrip("0")
    if isinstance(value, (date, np.datetime64)):
        return _date_text(value)
    text = str(value)
    if text == object.__repr__(value):
        raise ValueError  # the text would be the address of the object
    return text


def _date_text(value: Any) -> str:
    """Return a date in ISO format in UTC, without the time at midnight."""
    if isinstance(value, datetime):
        # A pandas Timestamp has nanoseconds, and years that Python does not support.
        value = value.to_datetime64() if hasattr(value, "to_datetime64") else without_zone(value)
    moment = np.datetime64(value)
    known = as_microseconds(moment)
    if np.isnat(known):
        raise ValueError
    if np.datetime_data(moment.dtype)[0] == "ns" and moment != known:
        return str(moment)
    return str(known.item().isoformat()).removesuffix("T00:00:00")


def as_microseconds(moments: Any) -> Any:
    """Return ``datetime64`` values in microseconds; NaT where they are missing or outside the years 1 to 9999."""
    years = moments.astype("datetime64[Y]").astype(np.int64) + 1970  # in coarser units nothing overflows
    known = (years >= FIRST_YEAR) & (years <= LAST_YEAR)
    return np.where(known, moments, np.datetime64("NaT")).astype("datetime64[us]")[()]


def without_zone(value: datetime) -> datetime:
    """Return a time in UTC, without its zone; ValueError if it is outside the years 1 to 9999."""
    offset = None if value.tzinfo is None else value.utcoffset()
    try:
        return value if offset is None else value.replace(tzinfo=None) - offset
    except OverflowError:
        raise ValueError from None
