"""The encoder of mixed columns: rows of several kinds in, rows of numbers out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, final
from zlib import crc32

import numpy as np

from pairloom.base.tree import copy, nbytes
from pairloom.base.typing import Array
from pairloom.columns.frames import Table
from pairloom.columns.inference import infer_kind
from pairloom.columns.kinds import Columns, Kind
from pairloom.columns.loops import CATEGORY, DATE_WIDTH, NUMBER, OPEN, encode
from pairloom.columns.reading import Values, read_row, read_table
from pairloom.columns.state import CODES, COMPACT, MARKED, ColumnsState, Layouts, first_state
from pairloom.columns.values import is_blank
from pairloom.columns.windows import ColumnWindows

Keep = Callable[[Any], None]
"""Called with rows that are learned, to keep some of them."""

UNKNOWN_CODE = -1
"""The code of a category that was never learned, while more categories can be added."""

NO_SCALING = np.zeros((3, 0))


@final
class Encoder:
    """Encoder of mixed columns as numbers, for one row or many; ``state`` contains everything it has learned.

    A row is encoded with what was learned before it, and with its own new categories, so that results do not depend on
    the chunking. ``read`` validates, ``learn`` changes the state; ``encode`` changes nothing.

    Parameters
    ----------
    part : the rules.
    state : what is known about the columns.
    """

    def __init__(self, part: Columns, state: ColumnsState) -> None:
        self.part = part
        self.state = state
        pinned = dict(part.kinds)
        self.hides_ids = np.array([state.layout == COMPACT and name not in pinned for name in state.names], bool)
        self.n_named, self.n_shared = part.n_codes(state.n_columns, compact=state.layout == COMPACT)

    @classmethod
    def of_table(cls, part: Columns, table: Table, layouts: Layouts) -> Self:
        """Return the encoder of a stream that begins with the first row of a table; its kinds are those of the table.

        ``layouts``: the layout if all columns are numbers whose kind the user has not set, and the layout otherwise.
        """
        pinned, kinds = dict(part.kinds), list(table.declared)
        for j, (name, column) in enumerate(zip(table.names, table.columns, strict=True)):
            if kinds[j] is None and name not in pinned and not is_blank(column[0]):
                kinds[j] = infer_kind(column.tolist(), name)
        return cls._of(part, table.names, kinds, layouts)

    @classmethod
    def of_row(cls, part: Columns, row: Mapping[Any, Any], layouts: Layouts) -> Self:
        """Return the encoder of a stream that begins with this row."""
        if not (row or part.reserve) or not all(isinstance(name, str) for name in row):
            raise ValueError(f"the column names of a row given as a mapping must be strings, got {list(row)}")
        pinned = dict(part.kinds)
        kinds = [None if name in pinned else infer_kind([value], name) for name, value in row.items()]
        return cls._of(part, list(row), kinds, layouts)

    @classmethod
    def _of(cls, part: Columns, names: list[str], inferred: Sequence[Kind | None], layouts: Layouts) -> Self:
        pinned: dict[str, Kind] = dict(part.kinds)
        unknown = sorted(pinned.keys() - set(names))
        if unknown and not part.reserve:
            raise ValueError(f"columns= names {unknown[0]!r}, but the columns are {names}")
        kinds = {name: pinned.get(name, kind) for name, kind in zip(names, inferred, strict=True)}
        used = [name for name, kind in kinds.items() if kind != "drop"]
        if not (used or part.reserve):
            raise ValueError("columns= drops all columns: there is nothing to learn from")
        mixed = bool(part.reserve) or not all(kinds[name] == "number" and name not in pinned for name in used)
        layout = layouts[mixed]
        if part.reserve and layout != COMPACT:
            raise ValueError("Columns(reserve=) is for models: the features of a transformer cannot change")
        n_codes = sum(part.n_codes(len(names) + (part.reserve or 0), compact=layout == COMPACT))
        return cls(part, first_state(names, list(kinds.values()), layout, n_codes, part.reserve))

    @property
    def width(self) -> int:
        """Number of features of a row."""
        return self.state.width

    @property
    def is_plain(self) -> bool:
        """Whether each column is one number, so that rows may come without names."""
        return self.width == len(self.state.names) and bool((self.state.kinds == NUMBER).all())

    @property
    def nbytes(self) -> int:
        """Bytes of the state, the names of categories included."""
        return nbytes(self.state) + sum(len(name) for known in self.state.categories for name in known)

    def read(self, rows: Table | Mapping[str, Any] | Sequence[Any], dtype: str) -> Values:
        """Return the valid values of a table or of one row, or raise ValueError with row and column."""
        if type(rows) is Table:
            return read_table(self.state, rows, self.part.on_text, dtype)
        return read_row(self.state, rows, self.part, dtype)

    def learn(
        self, values: Values, weight: Array, dtype: str, windows: ColumnWindows | None = None, keep: Keep | None = None
    ) -> Array:
        """Encode rows and learn them; ``windows``: those in which changes of the columns are found.

        ``keep`` is called with the values of the rows as numbers (rows, columns), with codes for categories.
        """
        if not self.state.statistics.flags.writeable:
            # Mapped from a read-only file: joblib.load(..., mmap_mode="r").
            self.state = copy(self.state)
        if values.kinds is not None:
            self.state.set_kinds(values.kinds)
        self.state.count_malformed({j: len(rows) for j, rows in values.malformed.items()})
        if values.arrived or values.ignored:
            self._adopt(values)
        numbers = self._with_codes(values, learn=True)
        if windows is not None:
            n = windows.n_columns
            windows.add(numbers[:, :n], self.state.kinds[:n], self.n_named)
        if keep is not None:
            keep(numbers)
        return self._encode(numbers, weight, dtype, learn=True)

    def _adopt(self, values: Values) -> None:
        """Give spare columns to the new names of a row, and count those for which none is left."""
        assert self.state.reserve is not None
        for name, kind, value in values.arrived:
            self.state.adopt(name, kind)
            self.hides_ids = np.append(self.hides_ids, name not in dict(self.part.kinds))
            values.columns.append(value)
        self.state.reserve.ignored += len(values.ignored)

    def count_malformed(self, counts: Mapping[str, int]) -> None:
        """Add numbers of malformed values, by column, that were missing in the rows learned."""
        self.state.count_malformed({self.state.names.index(name): count for name, count in counts.items()})

    def encode(self, rows: Table | Mapping[str, Any] | Sequence[Any], dtype: str) -> Array:
        """Encode rows; values of a column whose kind is still open are treated as missing until they are learned."""
        return self.encode_numbers(self.numbers(self.readable(rows, dtype)), dtype)

    def numbers(self, values: Values) -> Array:
        """Return the values of rows as numbers (rows, columns): days, codes of categories, NaN for missing values."""
        return self._with_codes(values, learn=False)

    def encode_numbers(self, numbers: Array, dtype: str) -> Array:
        """Encode rows given as ``numbers``."""
        return self._encode(numbers, np.ones(0), dtype, learn=False)

    def readable(self, rows: Table | Mapping[str, Any] | Sequence[Any], dtype: str) -> Values:
        """Return valid values; those of a column whose kind is still open are missing."""
        values = self.read(rows, dtype)
        if values.kinds is not None:
            for j in np.flatnonzero(self.state.kinds == OPEN).tolist():
                values.columns[j] = np.nan if values.one else np.full(values.n, np.nan)
        return values

    def compare(self, windows: ColumnWindows, values: Values) -> tuple[Array, Array]:
        """Compare rows with windows, as ``compare_with`` does; changes nothing."""
        n = windows.n_columns
        return windows.compare_with(self._with_codes(values, learn=False)[:, :n], self.state.kinds[:n], self.n_named)

    def _encode(self, numbers: Array, weight: Array, dtype: str, *, learn: bool) -> Array:
        state = self.state
        compact = state.layout == COMPACT
        out = np.full((len(numbers), state.width), np.nan if compact else 0.0)
        encode(
            numbers, weight, (state.kinds, state.starts, self.hides_ids), state.statistics, learn,
            compact or state.layout == CODES, self.part.marks_after if state.layout == MARKED else -1,
            UNKNOWN_CODE if compact else np.nan, self.n_named,
            NO_SCALING if state.reserve is None else state.reserve.scaling, state.n_first, out,
        )  # fmt: skip
        if compact:
            for start in self.state.open_categories:
                out[:, start + DATE_WIDTH], out[:, start] = out[:, start], np.nan
        return out.astype(dtype, copy=False)

    def _with_codes(self, values: Values, learn: bool) -> Array:
        """Return an array (rows, columns) with categories as codes."""
        if values.one:
            row = list(values.columns)
            for j, kind in enumerate(self.state.plain_kinds):
                if kind == CATEGORY:
                    row[j] = self._code(j, row[j], learn)
            return np.array([row], dtype=float)
        numbers = np.empty((values.n, len(values.columns)))
        for j, column in enumerate(values.columns):
            if type(column) is list:
                known = map(self.state.slots[j].get, column)
                column = [self._code(j, v, learn) if c is None else c for v, c in zip(column, known, strict=True)]
            numbers[:, j] = column
        return numbers

    def _code(self, j: int, value: str | None, learn: bool) -> float:
        """Return the code of a category; a new category is added if ``learn`` and the limit is not reached."""
        if value is None:
            return np.nan
        slots, limit = self.state.slots[j], self.n_named
        code = slots.get(value)
        if code is not None:
            return code
        if len(slots) >= limit:
            return limit + crc32(value.encode(errors="replace")) % self.n_shared
        if not learn:
            return UNKNOWN_CODE
        slots[value] = len(slots)
        self.state.categories[j].append(value)
        return slots[value]
