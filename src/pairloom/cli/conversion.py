"""Convert columns of files to numbers and dates, and find all values that cannot be converted."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from pairloom.base.extras import import_extra
from pairloom.base.typing import Array
from pairloom.cli.errors import error_message
from pairloom.columns.frames import Table, table_of
from pairloom.columns.reading import read_table
from pairloom.columns.state import CODES, first_state
from pairloom.columns.values import is_blank
from pairloom.data.readers.base import PARSE_ERRORS, RowErrors
from pairloom.data.readers.text import is_text

MAX_SAFE = 1e6
"""Numbers up to this are never out of range."""


class Converter:
    """Converter of columns to the precision of a model, which need not be fitted."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.pyarrow = import_extra("pyarrow", "io", "Reading columns")
        self.compute = import_extra("pyarrow.compute", "io", "Reading columns")

    def convert(self, name: str, kind: str, column: Any) -> Any:
        """Convert a pyarrow column; raise ValueError for the first value that is not of this kind."""
        numbers = self._numbers(name, kind, column)
        if not is_text(column):
            return column
        if kind == "number":
            return self.pyarrow.array(numbers, self.pyarrow.float64())
        missing = np.isnan(numbers)
        days = [None if gap else _date(text) for gap, text in zip(missing, column.to_pylist(), strict=True)]
        return self.pyarrow.array(days, self.pyarrow.timestamp("us"))

    def convert_valid(
        self, name: str, kind: str, column: Any, read_alone: Callable[[int], Any]
    ) -> tuple[Any, RowErrors]:
        """Return a column with nulls in place of values that are not of this kind, and their errors by position.

        ``read_alone`` reads one value as a column, which may have another type: NA is null in a column of numbers, and
        text in a column of text.
        """
        try:
            return self.convert(name, kind, column), {}
        except PARSE_ERRORS:
            pass
        text, known, errors, converted = is_text(column), dict[Any, tuple[Any, str | None]](), RowErrors(), []
        for place, value in enumerate(column.to_pylist() if text else self._suspects(name, column)):
            if value not in known:
                known[value] = self._convert_one(name, kind, column.slice(place, 1), partial(read_alone, place))
            result, error = known[value]
            converted.append(result)
            if error is not None:
                errors[place] = error
        if not text:
            invalid = np.isin(np.arange(len(column)), list(errors))
            return self.compute.if_else(self.pyarrow.array(invalid), None, column), errors
        type_ = self.pyarrow.float64() if kind == "number" else self.pyarrow.timestamp("us")
        return self.pyarrow.array(converted, type_), errors

    def _convert_one(self, name: str, kind: str, column: Any, read_alone: Callable[[], Any]) -> tuple[Any, str | None]:
        """Return the only value of a column, and its error."""
        try:
            try:
                converted = self.convert(name, kind, column)
            except PARSE_ERRORS:
                converted = self.convert(name, kind, read_alone())
            if not is_text(column):
                return None, None
            return converted.cast(self.pyarrow.float64() if kind == "number" else converted.type)[0].as_py(), None
        except PARSE_ERRORS as error:
            return None, error_message(error)

    def _suspects(self, name: str, column: Any) -> Iterable[Any]:
        """Return a key for each value, equal for equal values; 0 for all values known to be valid."""
        try:
            numbers = table_of(self.pyarrow.table({name: column})).columns[0]
        except PARSE_ERRORS:
            return range(len(column))
        with np.errstate(invalid="ignore"):
            return np.where(np.abs(numbers) > MAX_SAFE, numbers, 0.0).tolist() if numbers.dtype == float else numbers

    def _numbers(self, name: str, kind: str, column: Any) -> Array:
        values = table_of(self.pyarrow.table({name: column})).columns[0]
        table = Table([name], [None], [values], len(values))
        state = first_state([name], [kind], CODES, 1)
        numbers: Array = read_table(state, table, "raise", self.dtype).columns[0]
        return numbers


def _date(text: str | None) -> datetime | None:
    if text is None or is_blank(text):
        return None
    date = datetime.fromisoformat(text.strip())
    return date if date.tzinfo is None else date.astimezone(UTC).replace(tzinfo=None)
