"""Kinds of columns: how users set them, and how they are inferred from values, data types and text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from numbers import Real
from typing import Any, Literal, get_args

import narwhals as nw
import numpy as np

from pairloom.base.checks import check_choice, check_count
from pairloom.base.extras import import_extra

Kind = Literal["number", "category", "date", "drop"]
OnText = Literal["raise", "missing"]

Kinds = dict[str, str | None]
"""Kinds by column name; None for a column without values so far."""

DECIMAL = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"
"""A number written as text."""

ISO_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ]|\s*$)"

ZERO_PADDED = r"[-+]?0[0-9xX][0-9a-fA-F]*"
"""An integer with leading zeros, such as a postal code: 01 is not 1."""


@dataclass(frozen=True)
class Columns:
    """How the columns of data frames and mappings become numbers.

    Parameters
    ----------
    kinds : kinds by name, such as {"device": "category", "id": "drop"}; those of other columns are inferred.
    max_categories : number of categories of a column that are told apart, in order of arrival. None: 4,096, but about
        65,536 in all columns; 16 in a :class:`~pairloom.columns.ColumnEncoder`.
    n_hashed : number of groups, by hash, that all further categories of a column form. None: 1,024; 4 in a
        :class:`~pairloom.columns.ColumnEncoder`.
    marks_after : missing values of a number or date column before its missing indicator is used. Until then the
        indicator is 0: from a few rows, a model would learn noise.
    on_text : what to do with an invalid value in a number or date column: "raise", or treat it as "missing".

    >>> Columns({"device": "category"}).kinds
    (('device', 'category'),)
    """

    kinds: Mapping[str, Kind] | Iterable[tuple[str, Kind]] = ()
    max_categories: int | None = None
    n_hashed: int | None = None
    marks_after: int = 256
    on_text: OnText = "raise"

    def __post_init__(self) -> None:
        pinned = dict(self.kinds)
        for name, kind in pinned.items():
            if not isinstance(name, str):
                raise ValueError(f"column names in columns= must be strings; got {name!r}")
            check_choice(f"columns[{name!r}]", kind, Kind)
        object.__setattr__(self, "kinds", tuple(pinned.items()))
        for name in ("max_categories", "n_hashed"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if self.marks_after != 0 or isinstance(self.marks_after, bool):
            check_count("marks_after, unless it is 0,", self.marks_after)
        check_choice("on_text", self.on_text, OnText)

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
    """Return the kind of a column with this value; None if no kind accepts it."""
    if isinstance(value, np.timedelta64):  # an integer to NumPy
        return None
    if isinstance(value, (Real, np.bool_)) or hasattr(value, "as_tuple"):  # decimal.Decimal is not a Real
        return "number"
    if isinstance(value, (str, bytes)):
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


def kind_of_text(column: Any) -> Kind:
    """Return the kind of a pyarrow column of text: "number" or "date" if most values are, else "category".

    A typo in a number column is thus reported, and does not turn it into a category column. One integer with a leading
    zero makes a category column: such columns contain codes.

    >>> import pyarrow
    >>> kind_of_text(pyarrow.array(["1", "2.5", "x", None])), kind_of_text(pyarrow.array(["A1", "7", "B2"]))
    ('number', 'category')
    >>> kind_of_text(pyarrow.array(["10115", "01067"]))
    'category'
    """
    compute = import_extra("pyarrow.compute", "io", "Reading columns")
    if has_zero_padded(column):
        return "category"
    n_values = compute.sum(compute.not_equal(column, "")).as_py() or 0
    for kind, pattern in (("number", rf"^\s*{DECIMAL}\s*$"), ("date", rf"^\s*{ISO_DATE}")):
        if (compute.sum(compute.match_substring_regex(column, pattern)).as_py() or 0) > 0.5 * n_values:
            return kind  # type: ignore[return-value]
    return "category"


def has_zero_padded(column: Any) -> bool:
    """Return whether a pyarrow column of text has an integer with leading zeros, or a hexadecimal one."""
    compute = import_extra("pyarrow.compute", "io", "Reading columns")
    return bool(compute.any(compute.match_substring_regex(column, rf"^\s*{ZERO_PADDED}\s*$")).as_py())
