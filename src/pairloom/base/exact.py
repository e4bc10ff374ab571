"""Values as text, text as numbers, and dates as moments, exactly: what is different stays different."""

import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from numbers import Integral
from typing import Any

import numpy as np

NESTED = (list, tuple, dict, set, frozenset, np.ndarray)
WORDLESS = (*NESTED, complex, timedelta, np.timedelta64, type(None))
"""What has no text of its own: containers, and what each library spells in its own way."""

MOST_DIGITS = 400
"""Of a decimal number, before or after its point; no double has more."""

NUMBER = re.compile(r"\s*([-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?(nan|inf|infinity))\s*", re.I)

FIRST_YEAR, LAST_YEAR = 1, 9999
"""Years of dates that every library knows."""


def text_of(value: Any) -> str:
    """The text by which a value is known; ValueError for infinity, nested values, durations and complex numbers.

    Whole numbers have the same text whatever holds them; so have moments, in UTC.

    >>> text_of(3), text_of(3.0), text_of("3.0"), text_of(2**53 + 1), text_of(True), text_of(np.float32(0.5))
    ('3', '3', '3.0', '9007199254740993', 'True', '0.5')
    >>> text_of(date(2024, 1, 2)), text_of(np.datetime64("2024-01-02T03:04"))
    ('2024-01-02', '2024-01-02T03:04:00')
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, WORDLESS):
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
        if not value.is_finite() or abs(value.adjusted()) > MOST_DIGITS:
            raise ValueError
        return str(int(value)) if value == value.to_integral_value() else f"{value:f}".rstrip("0")
    if isinstance(value, (date, np.datetime64)):
        return _date_text(value)
    text = str(value)
    if text == object.__repr__(value):
        raise ValueError  # the address of an object says nothing
    return text


def number_in(text: str) -> float:
    """The number that a text spells, in ASCII and without underscores; ValueError if it spells none.

    >>> number_in(" 1e3 "), number_in("nan")
    (1000.0, nan)
    """
    if not NUMBER.fullmatch(text):
        raise ValueError
    return float(text)


def microseconds(moments: Any) -> Any:
    """``datetime64`` in microseconds, an array or one; NaT where it is missing or outside the years 1 to 9999."""
    years = moments.astype("datetime64[Y]").astype(np.int64) + 1970  # in coarser units nothing overflows
    known = (years >= FIRST_YEAR) & (years <= LAST_YEAR)
    return np.where(known, moments, np.datetime64("NaT")).astype("datetime64[us]")[()]


def naive(value: datetime) -> datetime:
    """A time in UTC, without its zone; ValueError if that is before year 1 or after year 9999."""
    offset = None if value.tzinfo is None else value.utcoffset()
    try:
        return value if offset is None else value.replace(tzinfo=None) - offset
    except OverflowError:
        raise ValueError from None


def _date_text(value: Any) -> str:
    """ISO form in UTC, without the time at midnight."""
    if isinstance(value, datetime):
        # A timestamp of pandas has nanoseconds, and years that Python does not have.
        value = value.to_datetime64() if hasattr(value, "to_datetime64") else naive(value)
    moment = np.datetime64(value)
    known = microseconds(moment)
    if np.isnat(known):
        raise ValueError
    if np.datetime_data(moment.dtype)[0] == "ns" and moment != known:
        return str(moment)
    return str(known.item().isoformat()).removesuffix("T00:00:00")
