"""The kind of a column: that of nearly all of its first values, in data frames, mappings and files alike."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from pairloom.base.errors import InvalidDataError
from pairloom.base.extras import import_extra
from pairloom.columns.kinds import DECIMAL, ISO_DATE, ZERO_PADDED, Kind, kind_of_value
from pairloom.columns.values import NUMBER_TEXT, is_blank

ALLOWED = 20
"""One value in this many may be of another kind: it is malformed."""

NUMBER_CELL = rf"(?i)^\s*({DECIMAL}|[-+]?(nan|inf|infinity)|true|false)\s*$"
DATE_CELL = rf"^\s*{ISO_DATE}\s*$"
PADDED_CELL = rf"^\s*{ZERO_PADDED}\s*$"
PADDED_TEXT = re.compile(PADDED_CELL)


def nearly_all(n: int, numbers: int, dates: int) -> Kind | None:
    """Return the kind of a column from the number of its values that are not missing; None without values.

    At least 95 % of the values are numbers, or dates; of fewer than 20 values, all are.

    >>> nearly_all(20, 19, 1), nearly_all(19, 18, 0), nearly_all(1000, 0, 950), nearly_all(0, 0, 0)
    ('number', 'category', 'date', None)
    """
    if n == 0:
        return None
    if n - numbers <= n // ALLOWED:
        return "number"
    return "date" if n - dates <= n // ALLOWED else "category"


def kind_of_values(values: Iterable[Any], *, text_numbers: bool = False) -> Kind | None:
    """Return the kind of a column of Python objects; None if all are missing.

    ``text_numbers``: text of numbers counts as numbers, unless one is an integer with leading zeros.

    >>> kind_of_values(["01", "7", None]), kind_of_values(["2024-01-31", ""]), kind_of_values([0.5] * 18 + ["12.5O"])
    ('category', 'date', 'category')
    >>> kind_of_values([0.5] * 19 + ["12.5O"]), kind_of_values([1, "2.5"], text_numbers=True)
    ('number', 'number')
    """
    present = [value for value in values if not is_blank(value)]
    counts = Counter(map(kind_of_value, present))
    numbers = counts["number"]
    if text_numbers:
        texts = [value for value in present if isinstance(value, str)]
        if any(map(PADDED_TEXT.match, texts)):
            return "category"
        numbers += sum(NUMBER_TEXT.fullmatch(text) is not None for text in texts)
    return nearly_all(len(present), numbers, counts["date"])


def infer_kind(values: list[Any], name: str) -> Kind | None:
    """Return the kind of a column of Python objects; ValueError for a value of no kind, unless it is malformed."""
    kind = kind_of_values(values)
    if kind == "category":
        for row, value in enumerate(values):
            if not is_blank(value) and kind_of_value(value) is None:
                raise InvalidDataError(
                    f"column {name!r} contains a {type(value).__name__}", row=row, then=", not numbers, text or dates",
                    python=f': leave it out, columns={{{name!r}: "drop"}}',
                    command=f": fit with --set columns.{name}=drop",
                )  # fmt: skip
    return kind


def kind_of_cells(column: Any) -> Kind | None:
    """Return the kind of a pyarrow column of text from a CSV, in which missing values are null.

    >>> import pyarrow
    >>> kind_of_cells(pyarrow.array(["1", "2.5", None])), kind_of_cells(pyarrow.array(["A1", "7", "B2"]))
    ('number', 'category')
    """
    return nearly_all(len(column) - column.null_count, _matches(column, NUMBER_CELL), _matches(column, DATE_CELL))


def has_zero_padded(column: Any) -> bool:
    """Return whether a pyarrow column of text has an integer with leading zeros, or a hexadecimal one.

    One such integer makes a category column: such columns contain codes.
    """
    return _matches(column, PADDED_CELL) > 0


def _matches(column: Any, pattern: str) -> int:
    compute = import_extra("pyarrow.compute", "io", "Reading columns")
    return compute.sum(compute.match_substring_regex(column, pattern)).as_py() or 0
