"""CSV and TSV with a header, parsed by pyarrow."""

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pairloom.base.extras import import_extra
from pairloom.columns.inference import has_zero_padded, kind_of_cells
from pairloom.columns.kinds import Kinds, kind_of_arrow_type
from pairloom.data.readers.base import RowErrors, ValidRows, errors_by_bisection, rows_without
from pairloom.data.readers.opening import FileError, Gate
from pairloom.data.readers.records import Records, RecordSplitter, row_ends
from pairloom.data.readers.text import as_dates

BOM = b"\xef\xbb\xbf"
Types = dict[str, str | None]
"""Names of pyarrow types by column; None: inferred."""
TYPES: Types = {"number": "double", "category": "string", "date": "string"}

OPEN_QUOTE = "a quote opened here is never closed"
NOT_UTF8 = "the text is not UTF-8"
NOT_SEPARABLE = "the row cannot be separated from the next one"


class DelimitedReader:
    """A CSV or TSV file: UTF-8, with a header; values with a delimiter, quote or newline are in double quotes."""

    def __init__(self, name: str, stream: Any, gate: Gate, chunk_rows: int, delimiter: str) -> None:
        import_extra("pyarrow.csv", "io", "Reading CSV")
        self.name, self.chunk_rows, self.delimiter = name, chunk_rows, delimiter
        self.boolean: set[str] = set()
        self.splitter = RecordSplitter(name, stream, row_ends(delimiter), gate)
        header = self.splitter.next_chunk(1)
        self.header = b"" if header is None else header.record(0)
        self.names = [] if header is None else self._names(header)

    def _names(self, header: Records) -> list[str]:
        where = f"{self.name}:{header.line_of(0)}"
        try:
            text = header.record(0).removeprefix(BOM).decode()
            names = next(csv.reader([text], delimiter=self.delimiter, strict=True))
        except (csv.Error, UnicodeDecodeError, StopIteration) as error:
            raise FileError(f"{where}: the header cannot be read: {error}") from None
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise FileError(f"{where}: the header has the column {repeated[0]!r} more than once")
        return names

    def chunks(self) -> Iterator["DelimitedChunk"]:
        if self.names:
            for records in self.splitter.chunks(self.chunk_rows):
                yield DelimitedChunk(self.name, records, self.names, self.delimiter, self.header, self.boolean)


@dataclass(frozen=True)
class DelimitedChunk:
    """Consecutive rows of a CSV. ``boolean``: columns of numbers with true and false, shared by all chunks."""

    name: str
    records: Records
    names: list[str]
    delimiter: str
    header: bytes
    boolean: set[str]

    def __len__(self) -> int:
        return len(self.records)

    @property
    def columns(self) -> bytes:
        return self.header

    def infer(self, names: list[str]) -> Kinds:
        """Infer the kinds of columns from all rows with the right number of values."""
        # Rows that are not UTF-8 are reported when they are parsed; here they must not prevent inference.
        span = str(self.records.span(0, len(self)), "utf-8", "replace").encode()
        types = self._read(span, dict.fromkeys(names), lambda row: "skip").schema
        kinds: Kinds = {name: kind_of_arrow_type(types.field(name).type) for name in names}
        text = {name for name in names if str(types.field(name).type) == "string"}
        checked = [name for name, kind in kinds.items() if name in text or kind == "number"]
        if checked:
            table = self._read(span, dict.fromkeys(checked, "string"), lambda row: "skip", null_texts=True)
            kinds.update({name: kind_of_cells(table.column(name)) for name in text})
            kinds.update({name: "category" for name in checked if has_zero_padded(table.column(name))})
        return kinds

    def table(self, low: int, high: int, kinds: Kinds) -> Any:
        if self.records.open_quote and high == len(self):
            raise ValueError(OPEN_QUOTE)
        span = self.records.span(low, high)
        try:
            str(span, "utf-8")
        except UnicodeDecodeError:
            raise ValueError(NOT_UTF8) from None
        return self._table(span, high - low, kinds)

    def valid_table(self, low: int, high: int, kinds: Kinds) -> ValidRows:
        try:
            return self._valid(low, high, kinds, self._structural_errors(low, high))
        except ValueError:  # some rows are malformed only when parsed alone
            return self._valid(low, high, kinds, errors_by_bisection(low, high, lambda a, b: self.table(a, b, kinds)))

    def _valid(self, low: int, high: int, kinds: Kinds, errors: RowErrors) -> ValidRows:
        rows = rows_without(errors, low, high)
        table = self._table(self._joined(rows), len(rows), kinds) if len(rows) else None
        return ValidRows(table, rows, errors)

    def _structural_errors(self, low: int, high: int) -> RowErrors:
        """Return errors that do not depend on kinds; raise ValueError if they cannot be found all at once."""
        errors: RowErrors = {len(self) - 1: OPEN_QUOTE} if self.records.open_quote and high == len(self) else {}
        for row in range(low, high):
            try:
                str(self.records.record(row), "utf-8")
            except UnicodeDecodeError:
                errors.setdefault(row, NOT_UTF8)
        rows, wrong_length = rows_without(errors, low, high), []

        def skip(row: Any) -> str:
            wrong_length.append((row.number, row.actual_columns))
            return "skip"

        if len(rows):
            table = self._read(self._joined(rows), {self.names[0]: "string"}, skip, threads=False)
            if table.num_rows + len(wrong_length) != len(rows):
                raise ValueError(NOT_SEPARABLE)
        return errors | {int(rows[number - 1]): self._expected(found) for number, found in wrong_length}

    def _joined(self, rows: Any) -> bytes:
        return b"".join(map(self.records.record, rows.tolist()))

    def _expected(self, found: int) -> str:
        return f"expected {len(self.names)} values, as in the header, got {found}"

    def _table(self, span: bytes, n: int, kinds: Kinds) -> Any:
        """Parse n rows."""
        table = self._parse_numbers(span, kinds) or self._parse_mixed(span, kinds)
        if table.num_rows != n:
            raise ValueError(NOT_SEPARABLE)
        for j, (name, kind) in enumerate(kinds.items()):
            if kind == "date":
                table = table.set_column(j, name, as_dates(table.column(j)))
        return table

    def _parse_numbers(self, span: bytes, kinds: Kinds) -> Any | None:
        """Parse columns of numbers as doubles, which is fastest; return None if some values are not."""
        pyarrow = import_extra("pyarrow", "io", "Reading CSV")
        boolean = self.boolean & kinds.keys()
        types = {name: TYPES.get(kind or "") for name, kind in kinds.items()} | dict.fromkeys(boolean)
        try:
            table = self._read(span, types, lambda row: "error")
        except pyarrow.ArrowInvalid:
            return None
        inferred = (table.schema.field(name).type for name in boolean if kinds[name] == "number")
        return None if any(kind_of_arrow_type(type_) == "date" for type_ in inferred) else table

    def _parse_mixed(self, span: bytes, kinds: Kinds) -> Any:
        """Parse columns of numbers that hold booleans or text; raise ValueError for rows of the wrong length."""
        types = {name: None if kind == "number" else TYPES.get(kind or "") for name, kind in kinds.items()}
        table = self._read_checked(span, types)
        inferred = {name: table.schema.field(name).type for name, kind in kinds.items() if kind == "number"}
        self.boolean.update(name for name, type_ in inferred.items() if str(type_) == "bool")
        # A date is not a number of days: as text it will be reported. pyarrow reads hexadecimal digits as integers,
        # but not as doubles.
        changed: Types = {name: "string" for name, type_ in inferred.items() if kind_of_arrow_type(type_) == "date"}
        changed |= {name: "double" for name, type_ in inferred.items() if str(type_) == "int64"}
        return self._read_checked(span, types | changed) if changed else table

    def _read_checked(self, span: bytes, types: Types) -> Any:
        pyarrow = import_extra("pyarrow", "io", "Reading CSV")
        wrong_length: list[Any] = []

        def remember(row: Any) -> str:
            wrong_length.append(row)
            return "error"

        try:
            return self._read(span, types, remember)
        except pyarrow.ArrowInvalid as error:
            message = self._expected(wrong_length[0].actual_columns) if wrong_length else str(error)
            raise ValueError(message) from None

    def _read(
        self, span: Any, types: Types, on_wrong_length: Any, *, threads: bool = True, null_texts: bool = False
    ) -> Any:
        """Parse the columns in ``types``; row numbers are passed to ``on_wrong_length`` only without threads.

        ``null_texts``: empty values, NA and so on are null in columns of text, as they are in columns of numbers.
        """
        pyarrow, csv_ = import_extra("pyarrow", "io", "Reading CSV"), import_extra("pyarrow.csv", "io", "Reading CSV")
        known = {name: pyarrow.type_for_alias(type_) for name, type_ in types.items() if type_ is not None}
        return csv_.read_csv(
            pyarrow.BufferReader(span),
            csv_.ReadOptions(column_names=self.names, block_size=len(span) + 1, use_threads=threads),
            csv_.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=on_wrong_length),
            csv_.ConvertOptions(include_columns=list(types), column_types=known, strings_can_be_null=null_texts),
        )
