"""Kinds of columns: how users set them, and the kinds of values and data types."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from numbers import Real
from typing import Any, ClassVar, Literal, get_args

import narwhals as nw
import numpy as np

from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.extras import import_extra

Kind = Literal["number", "category", "date", "drop"]
OnText = Literal["raise", "missing"]

Kinds = dict[str, str | None]
"""Kinds by column name; None for a column without values so far."""

DECIMAL = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"
"""A number written as text."""

ISO_DATE = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}(:?[0-9]{2}(:?[0-9]{2}([.,][0-9]+)?)?)?(Z|[-+][0-9]{2}(:?[0-9]{2})?)?)?"
)
"""The form of a date written as text, with or without a time; 2024-02-30 has the form, but is malformed."""

ISO_TEXT = re.compile(rf"\s*{ISO_DATE}\s*")

ZERO_PADDED = r"[-+]?0[0-9xX][0-9a-fA-F]*"
"""An integer with leading zeros, such as a postal code: 01 is not 1."""


MAX_CODES = 1 << 20
"""Maximum number of codes, which float32 represents exactly."""

MAX_RESERVE = 4096
"""Maximum number of spare columns: each costs time in every row."""


class ColumnsWarning(UserWarning):
    """Some columns are of little use to the model, or have no place in it."""


@dataclass(frozen=True)
class Columns:
    """How the columns of data frames and mappings become numbers.

    Parameters
    ----------
    kinds : kinds by name, such as {"device": "category", "id": "drop"}; those of other columns are inferred.
    max_categories : number of categories of a column that are stored, in order of arrival. None: 4,096, but about
        65,536 in all columns; 16 where they become one-hot columns.
    n_hashed : number of groups, by hash, that all further categories of a column form. None: 1,024; 4 where they become
        one-hot columns.
    marks_after : missing values of a number or date column before its missing indicator is used. Until then the
        indicator is 0: from a few rows, a model would learn noise.
    on_text : what to do with a malformed value of a number or date column: "raise", or treat it as "missing"; such
        values are counted by column.
    reserve : number of spare columns, for names that ``learn_one`` meets after the first row: a new name with a value
        takes the next one, and its values before are missing. Values of names beyond the reserve are ignored, counted,
        and reported once. None: a new name raises ValueError.

    >>> Columns({"device": "category"}).kinds
    (('device', 'category'),)
    """

    added: ClassVar[dict[str, Any]] = {"reserve": None}

    kinds: Mapping[str, Kind] | Iterable[tuple[str, Kind]] = ()
    max_categories: int | None = None
    n_hashed: int | None = None
    marks_after: int = 256
    on_text: OnText = "raise"
    reserve: int | None = None

    def __post_init__(self) -> None:
        pinned = dict(self.kinds)
        for name, kind in pinned.items():
            if not isinstance(name, str):
                raise ValueError(f"column names in columns= must be strings; got {name!r}")
            check_choice(f"columns[{name!r}]", kind, Kind)
        object.__setattr__(self, "kinds", tuple(pinned.items()))
        for name in ("max_categories", "n_hashed"):
            value = getattr(self, name)
            if value is not None:
                check_count(name, value)
                if value > MAX_CODES:
                    raise ValueError(f"{name} must be at most {MAX_CODES:,}; got {value:,}")
        if self.marks_after != 0 or isinstance(self.marks_after, bool):
            check_count("marks_after, unless it is 0,", self.marks_after)
        check_choice("on_text", self.on_text, OnText)
        if self.reserve is not None:
            check_number("reserve, unless it is None,", self.reserve, 0)
            if self.reserve != int(self.reserve) or self.reserve > MAX_RESERVE:
                raise ValueError(f"reserve must be an integer of at most {MAX_RESERVE:,}; got {self.reserve!r}")

    def n_codes(self, n_columns: int, *, compact: bool) -> tuple[int, int]:
        """Return the number of categories of a column with a code of their own, and of codes that all others share."""
        known, shared = (min(4096, 65_536 // max(1, n_columns) + 1), 1024) if compact else (16, 4)
        return self.max_categories or known, self.n_hashed or shared


ColumnsLike = Columns | Mapping[str, Kind] | None


def columns_of(given: ColumnsLike) -> Columns:
    """Convert the parameter ``columns=`` to ``Columns``."""
    if given is None:
        return Columns()
    if isinstance(given, Columns):
        return given
    if isinstance(given, Mapping):
        return Columns(given)
    kinds = ", ".join(get_args(Kind))
    raise ValueError(f"columns must be a mapping from names to kinds ({kinds}), a Columns, or None; got {given!r}")


def kind_of_value(value: Any) -> Kind | None:
    """Return the kind of a value; None if no kind accepts it. Text is a date if it has the form of one.

    >>> [kind_of_value(value) for value in (1, "1", "2024-01-31", "2024-01-31 10:00 late", [1])]
    ['number', 'category', 'date', 'category', None]
    """
    if isinstance(value, str):
        return "date" if ISO_TEXT.fullmatch(value) else "category"
    if isinstance(value, np.timedelta64):  # an integer to NumPy
        return None
    if isinstance(value, (Real, np.bool_)) or hasattr(value, "as_tuple"):  # decimal.Decimal is not a Real
        return "number"
    if isinstance(value, bytes):
        return "category"
    if isinstance(value, (date, np.datetime64)):
        return "date"
    return None


def kind_of_dtype(dtype: Any) -> Kind | None:
    """Return the kind of a column of this narwhals dtype; None if no kind accepts it."""
    if dtype.is_numeric() or dtype == nw.Boolean:
        return "number"
    if isinstance(dtype, (nw.String, nw.Categorical, nw.Enum, nw.Binary)):
        return "category"
    return "date" if isinstance(dtype, (nw.Datetime, nw.Date)) else None


def kind_of_arrow_type(type_: Any) -> Kind | None:
    """Return the kind of a column in a file, by its pyarrow type; None without values. Other types count as text.

    >>> import pyarrow
    >>> [kind_of_arrow_type(one) for one in (pyarrow.int8(), pyarrow.date32(), pyarrow.time32("s"))]
    ['number', 'date', 'category']
    """
    types = import_extra("pyarrow.types", "io", "Reading columns")
    if types.is_null(type_):
        return None
    if any(is_one(type_) for is_one in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)):
        return "number"
    return "date" if types.is_timestamp(type_) or types.is_date(type_) else "category"
