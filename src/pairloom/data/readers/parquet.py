"""Parquet: typed columns, read a few thousand rows at a time."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pairloom.base.extras import needed
from pairloom.data.readers.kinds import Kinds, kind_of_type
from pairloom.data.readers.opening import InputError, is_regular
from pairloom.data.readers.sifting import Sifted

MOST_CELLS = 1 << 21
"""Values of a piece: fewer rows are read at a time where there are many columns."""

FOOTER = 1 << 16


class ParquetReader:
    """A Parquet file. It is read from its end: a pipe will not do."""

    def __init__(self, name: str, path: str, most: int) -> None:
        pyarrow, parquet = (
            needed("pyarrow", "io", "Reading Parquet"),
            needed("pyarrow.parquet", "io", "Reading Parquet"),
        )
        if not is_regular(path):
            raise InputError(f"{name}: Parquet is read from its end, so it must be a file, not a pipe")
        try:
            self.file = parquet.ParquetFile(path)
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise InputError(f"{name}: no Parquet file: {str(error).splitlines()[0]}") from None
        self.name = name
        self.names: list[str] = list(self.file.schema_arrow.names)
        self.most = max(1, min(most, MOST_CELLS // max(1, len(self.names))))
        with open(path, "rb") as raw:
            raw.seek(max(0, raw.seek(0, 2) - FOOTER))
            # The end of a file tells it from others: it has the places and the statistics of all columns.
            self.mark = raw.read()

    def pieces(self) -> Iterator["ParquetPiece"]:
        """The rows, piece by piece."""
        pyarrow = needed("pyarrow", "io", "Reading Parquet")
        first = 0
        try:
            for batch in self.file.iter_batches(self.most, use_threads=False):
                yield ParquetPiece(self.name, pyarrow.Table.from_batches([batch]), first, self.names, self.mark)
                first += batch.num_rows
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise InputError(f"{self.name}: the file is damaged after row {first:,}: {error}") from None


@dataclass(frozen=True)
class ParquetPiece:
    """So many rows of a Parquet file, the first of them number ``first``."""

    name: str
    rows: Any
    first: int
    names: list[str]
    mark: bytes
    header: ClassVar[bytes] = b""

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def columns(self) -> bytes:
        """What names the columns: the end of a file may not have all of it."""
        return json.dumps(self.names).encode()

    @property
    def records(self) -> "ParquetPiece":
        """Where rows are, and what they were."""
        return self

    def line_of(self, i: int) -> int:
        """The number of a row in the file, from 1 on."""
        return self.first + i + 1

    def record(self, i: int) -> bytes:
        """A row as text."""
        return f"{ {name: _plain(self.rows.column(name)[i]) for name in self.names} }\n".encode()

    def feed(self, digest: Any, low: int, high: int) -> None:
        """Update a digest: with the end of the file, once; the number of rows is the position's."""
        if self.first + low == 0 and high > 0:
            digest.update(self.mark)

    def infer(self, names: list[str]) -> Kinds:
        """The kinds that the types of columns say."""
        return {name: kind_of_type(self.rows.schema.field(name).type) for name in names}

    def table(self, low: int, high: int, kinds: Kinds) -> Any:
        """Rows from ``low`` to before ``high`` as a table of these columns; ValueError for dates among numbers."""
        made = self.rows.select(list(kinds)).slice(low, high - low)
        for name, kind in kinds.items():
            own = made.schema.field(name).type
            if kind == "number" and kind_of_type(own) == "date":
                raise ValueError(f"column {name!r} is one of numbers, but the file has dates in it ({own})")
        return made

    def sift(self, low: int, high: int, kinds: Kinds) -> Sifted:
        """All rows: what is wrong with the type of a column is wrong with every row."""
        try:
            return Sifted(self.table(low, high, kinds), np.arange(low, high), {})
        except ValueError as error:
            return Sifted(None, np.arange(0), dict.fromkeys(range(low, high), str(error)))


def _plain(value: Any) -> Any:
    """A value as Python has it; as text, if it has none, such as a date in the year 300,000."""
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        return str(value.cast("string"))
