"""Parquet: typed columns, read a few thousand rows at a time."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pairloom.base.extras import import_extra
from pairloom.columns.inference import kind_of_values
from pairloom.columns.kinds import Kinds, kind_of_arrow_type
from pairloom.data.readers.base import ValidRows
from pairloom.data.readers.opening import FileError, is_regular
from pairloom.data.readers.text import is_text

MAX_CHUNK_VALUES = 1 << 21
"""Maximum number of values per chunk: with many columns, chunks have fewer rows."""

FOOTER_BYTES = 1 << 16


class ParquetReader:
    """A Parquet file. It is read from its end, so it cannot be a pipe."""

    def __init__(self, name: str, path: str, chunk_rows: int) -> None:
        pyarrow, parquet = (import_extra(module, "io", "Reading Parquet") for module in ("pyarrow", "pyarrow.parquet"))
        if not is_regular(path):
            raise FileError(f"{name}: Parquet must be a file, not a pipe: it is read from its end")
        try:
            self.file = parquet.ParquetFile(path)
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise FileError(f"{name}: not a Parquet file: {str(error).splitlines()[0]}") from None
        self.name = name
        self.names: list[str] = list(self.file.schema_arrow.names)
        self.chunk_rows = max(1, min(chunk_rows, MAX_CHUNK_VALUES // max(1, len(self.names))))
        with open(path, "rb") as raw:
            raw.seek(max(0, raw.seek(0, 2) - FOOTER_BYTES))
            self.footer = raw.read()  # offsets and statistics of all columns: identifies the file

    def chunks(self) -> Iterator["ParquetChunk"]:
        pyarrow = import_extra("pyarrow", "io", "Reading Parquet")
        first = 0
        try:
            for batch in self.file.iter_batches(self.chunk_rows, use_threads=False):
                yield ParquetChunk(self.name, pyarrow.Table.from_batches([batch]), first, self.names, self.footer)
                first += batch.num_rows
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise FileError(f"{self.name}: the file is damaged after row {first:,}: {error}") from None


@dataclass(frozen=True)
class ParquetChunk:
    """Consecutive rows of a Parquet file. ``first``: the number of rows before them."""

    name: str
    rows: Any
    first: int
    names: list[str]
    footer: bytes
    header: ClassVar[bytes] = b""

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def columns(self) -> bytes:
        """Bytes that identify the column names and their order, which may not be in the last bytes of the file."""
        return json.dumps(self.names).encode()

    @property
    def records(self) -> "ParquetChunk":
        return self

    def line_of(self, i: int) -> int:
        return self.first + i + 1

    def record(self, i: int) -> bytes:
        return f"{ {name: _as_python(self.rows.column(name)[i]) for name in self.names} }\n".encode()

    def feed(self, digest: Any, low: int, high: int) -> None:
        """Update a digest with the end of the file, once."""
        if self.first + low == 0 and high > 0:
            digest.update(self.footer)

    def infer(self, names: list[str]) -> Kinds:
        """Return the kinds of columns by their types; text may be dates."""
        columns = {name: self.rows.column(name) for name in names}
        return {
            name: kind_of_values(column.to_pylist()) if is_text(column) else kind_of_arrow_type(column.type)
            for name, column in columns.items()
        }

    def table(self, low: int, high: int, kinds: Kinds) -> Any:
        """Return rows ``low`` to ``high`` (exclusive) as a table; raise ValueError for dates in place of numbers."""
        table = self.rows.select(list(kinds)).slice(low, high - low)
        for name, kind in kinds.items():
            type_ = table.schema.field(name).type
            if kind == "number" and kind_of_arrow_type(type_) == "date":
                raise ValueError(f"column {name!r} must contain numbers; this file has dates ({type_})")
        return table

    def valid_table(self, low: int, high: int, kinds: Kinds) -> ValidRows:
        """Return all rows, or no rows if a column has the wrong type."""
        try:
            return ValidRows(self.table(low, high, kinds), np.arange(low, high), {})
        except ValueError as error:
            return ValidRows(None, np.arange(0), dict.fromkeys(range(low, high), str(error)))


def _as_python(value: Any) -> Any:
    """Return a value as a Python object, or as text if there is none, such as for the year 300,000."""
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        return str(value.cast("string"))
