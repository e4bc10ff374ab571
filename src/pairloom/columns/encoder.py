"""Rows of mixed columns in, rows of numbers out. The one place that owns what is known of the columns."""

from collections.abc import Mapping, Sequence
from typing import Any, Self, final
from zlib import crc32

import numpy as np

from pairloom.base.tree import copy, nbytes
from pairloom.base.typing import Array
from pairloom.columns.frames import Table
from pairloom.columns.kinds import Columns, Kind
from pairloom.columns.loops import CATEGORY, NUMBER, OPEN, encode
from pairloom.columns.reading import Values, is_gap, read_row, read_table, told_by
from pairloom.columns.state import CODES, KINDS, MARKED, PLAIN, ColumnsState, first_state

UNKNOWN = -1
"""The code of a category that was never learned, while there is room for more."""

WORDS = {code: kind or "open" for kind, code in KINDS.items()}

NO_WEIGHT = np.ones(0)
"""Of rows that are not learned."""


@final
class Encoder:
    """Columns of several kinds as numbers, one row at a time or many; ``state`` is all that it knows.

    A row is encoded by what was known before it, and by its own new categories: so a stream may be cut into calls
    anywhere. ``read`` checks and ``learn`` changes the state; ``encode`` changes nothing.

    Parameters
    ----------
    part : the rules.
    state : what is known of the columns.
    """

    def __init__(self, part: Columns, state: ColumnsState) -> None:
        self.part = part
        self.state = state

    @classmethod
    def of_table(cls, part: Columns, table: Table, layout: int | None) -> Self:
        """For a stream that begins with the first row of a table.

        ``layout``: None is PLAIN if all columns are numbers whose kind was not pinned, else MARKED.
        """
        return cls._of(part, table.names, table.declared, [column[0] for column in table.columns], layout)

    @classmethod
    def of_row(cls, part: Columns, row: Mapping[Any, Any], layout: int | None) -> Self:
        """For a stream that begins with this row."""
        if not row or not all(isinstance(name, str) for name in row):
            raise ValueError(f"the columns of a row given as a mapping must be named by text, got {list(row)}")
        return cls._of(part, list(row), [None] * len(row), list(row.values()), layout)

    @classmethod
    def _of(
        cls, part: Columns, names: list[str], declared: Sequence[Kind | None], first: list[Any], layout: int | None
    ) -> Self:
        pinned: dict[str, Kind] = dict(part.kinds)
        unknown = sorted(pinned.keys() - set(names))
        if unknown:
            raise ValueError(f"columns= names {unknown[0]!r}, which is none of the columns {names}")
        kinds: dict[str, Kind | None] = {}
        for name, kind, value in zip(names, declared, first, strict=True):
            own = pinned.get(name, kind)
            kinds[name] = told_by(value, name, 0) if own is None and not is_gap(value) else own
        used = [name for name, kind in kinds.items() if kind != "drop"]
        if not used:
            raise ValueError("columns= drops all columns: there is nothing to learn from")
        if layout is None:
            layout = PLAIN if all(kinds[name] == "number" and name not in pinned for name in used) else MARKED
        return cls(part, first_state(names, list(kinds.values()), layout, part.max_categories + part.n_hashed))

    @property
    def width(self) -> int:
        """Numbers of a row."""
        return self.state.width

    @property
    def kinds(self) -> dict[str, str]:
        """Kinds by name; "open" while nothing has come that tells."""
        return {name: WORDS[kind] for name, kind in zip(self.state.names, self.state.plain_kinds, strict=True)}

    @property
    def is_plain(self) -> bool:
        """Whether each column is one number, so that rows may come without names."""
        return self.width == len(self.state.names) and bool((self.state.kinds == NUMBER).all())

    @property
    def nbytes(self) -> int:
        """Bytes of all that is known, the names of categories included."""
        return nbytes(self.state) + sum(len(name) for known in self.state.categories for name in known)

    def read(self, rows: Table | Mapping[str, Any] | Sequence[Any], dtype: str) -> Values:
        """Valid values of a table or of one row, or ValueError naming row and column."""
        if type(rows) is Table:
            return read_table(self.state, rows, self.part.on_text, dtype)
        return read_row(self.state, rows, self.part.on_text, dtype)

    def learn(self, values: Values, weight: Array, dtype: str) -> Array:
        """The numbers of rows, which are known from now on."""
        if not self.state.statistics.flags.writeable:
            # Mapped from a file that is not ours to change: joblib.load(..., mmap_mode="r").
            self.state = copy(self.state)
        if values.kinds is not None:
            self.state.tell(values.kinds)
        return self._numbers(values, weight, dtype, learn=True)

    def encode(self, rows: Table | Mapping[str, Any] | Sequence[Any], dtype: str) -> Array:
        """The numbers of rows. What comes in a column whose kind is open is not looked at before it is learned."""
        values = self.read(rows, dtype)
        if values.kinds is not None:
            for j in np.flatnonzero(self.state.kinds == OPEN).tolist():
                values.columns[j] = np.nan if values.one else np.full(values.n, np.nan)
        return self._numbers(values, NO_WEIGHT, dtype, learn=False)

    def _numbers(self, values: Values, weight: Array, dtype: str, *, learn: bool) -> Array:
        state = self.state
        numbers = self._coded(values, learn)
        out = np.zeros((values.n, state.width))
        encode(
            numbers, weight, state.kinds, state.starts, state.statistics, learn, state.layout == CODES,
            self.part.marks_after if state.layout == MARKED else -1, self.part.max_categories, out,
        )  # fmt: skip
        return out.astype(dtype, copy=False)

    def _coded(self, values: Values, learn: bool) -> Array:
        """(rows, columns), with categories as codes."""
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
        """The number of a category; it is written down if it is new and there is room."""
        if value is None:
            return np.nan
        slots, most = self.state.slots[j], self.part.max_categories
        code = slots.get(value)
        if code is not None:
            return code
        if len(slots) >= most:
            return most + crc32(value.encode(errors="replace")) % self.part.n_hashed
        if not learn:
            return UNKNOWN
        slots[value] = len(slots)
        self.state.categories[j].append(value)
        return slots[value]
