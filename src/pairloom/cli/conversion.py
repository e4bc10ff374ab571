"""Columns of files as the kinds that they are to have, and all values that are not of their kind at once."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from pairloom.base.extras import needed
from pairloom.base.typing import Array
from pairloom.cli.ending import message_of
from pairloom.columns.frames import Table, table_of
from pairloom.columns.kinds import OnText
from pairloom.columns.reading import is_gap, read_table
from pairloom.columns.state import CODES, first_state
from pairloom.data.readers.sifting import REFUSED

CONVERTED = ("number", "date")
PLAIN = 1e6
"""Numbers up to this are never too large."""

Said = dict[int, str]
"""What is wrong with values, by their places in a column."""


class Converter:
    """Makes a column of numbers or dates, by the rules of a model that may not have seen a row.

    So text among the numbers of the first rows is a malformed row, as later, and does not make a column of categories.
    """

    def __init__(self, on_text: OnText, dtype: str) -> None:
        self.on_text, self.dtype = on_text, dtype
        self.pyarrow = needed("pyarrow", "io", "Reading columns")

    def convert(self, name: str, kind: str, column: Any) -> Any:
        """A column of pyarrow; ValueError naming the first value that is not of its kind."""
        numbers = self._numbers(name, kind, column)
        if not self.is_text(column):
            return column
        if kind == "number":
            return self.pyarrow.array(numbers, self.pyarrow.float64())
        gaps = np.isnan(numbers)
        days = [None if gap else _date(text) for gap, text in zip(gaps, column.to_pylist(), strict=True)]
        return self.pyarrow.array(days, self.pyarrow.timestamp("us"))

    def sift(self, name: str, kind: str, column: Any, alone: Callable[[int], Any]) -> tuple[Any, Said]:
        """A column with gaps in place of values that are not of its kind, and what is wrong with these.

        ``alone``: the value at a place as a column of its own, which may have another type: NA is a gap among numbers
        and text among text.
        """
        try:
            return self.convert(name, kind, column), {}
        except REFUSED:
            pass
        text, known, said, made = self.is_text(column), dict[Any, tuple[Any, str | None]](), Said(), []
        for place, value in enumerate(column.to_pylist() if text else self._suspects(name, column)):
            if value not in known:
                known[value] = self._one(name, kind, column.slice(place, 1), partial(alone, place))
            own, fault = known[value]
            made.append(own)
            if fault is not None:
                said[place] = fault
        if not text:
            return column, said
        type_ = self.pyarrow.float64() if kind == "number" else self.pyarrow.timestamp("us")
        return self.pyarrow.array(made, type_), said

    def _one(self, name: str, kind: str, column: Any, alone: Callable[[], Any]) -> tuple[Any, str | None]:
        """The value of a column of one, and what is wrong with it."""
        try:
            try:
                made = self.convert(name, kind, column)
            except REFUSED:
                made = self.convert(name, kind, alone())
            if not self.is_text(column):
                return None, None
            return made.cast(self.pyarrow.float64() if kind == "number" else made.type)[0].as_py(), None
        except REFUSED as error:
            return None, message_of(error)

    def _suspects(self, name: str, column: Any) -> Iterable[Any]:
        """Something for each value that is the same for equal ones; 0 for all that are plainly right."""
        try:
            numbers = table_of(self.pyarrow.table({name: column})).columns[0]
        except REFUSED:
            return range(len(column))
        with np.errstate(invalid="ignore"):
            return np.where(np.abs(numbers) > PLAIN, numbers, 0.0).tolist() if numbers.dtype == float else numbers

    def _numbers(self, name: str, kind: str, column: Any) -> Array:
        values = table_of(self.pyarrow.table({name: column})).columns[0]
        table = Table([name], [None], [values], len(values))
        made: Array = read_table(first_state([name], [kind], CODES, 1), table, self.on_text, self.dtype).columns[0]
        return made

    def is_text(self, column: Any) -> bool:
        types = self.pyarrow.types
        return bool(types.is_string(column.type) or types.is_large_string(column.type))


def each(n: int, attempt: Callable[[int, int], object]) -> Said:
    """What is wrong with values that are looked at one by one, unless all are right."""
    if n == 0:
        return {}
    try:
        attempt(0, n)
        return {}
    except REFUSED:
        pass
    said: Said = {}
    for place in range(n):
        try:
            attempt(place, place + 1)
        except REFUSED as error:
            said[place] = message_of(error)
    return said


def _date(text: str | None) -> datetime | None:
    if text is None or is_gap(text):
        return None
    made = datetime.fromisoformat(text)
    return made if made.tzinfo is None else made.astimezone(UTC).replace(tzinfo=None)
