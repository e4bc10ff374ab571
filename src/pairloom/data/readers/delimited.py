"""CSV and TSV: a header, then rows, parsed by pyarrow."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pairloom.base.extras import needed
from pairloom.data.readers.kinds import Kinds, as_dates, has_codes, kind_of_text, kind_of_type
from pairloom.data.readers.opening import Gate, InputError
from pairloom.data.readers.records import Cutter, Records, row_ends
from pairloom.data.readers.sifting import Faults, Sifted, faults_by_halves, others

BOM = b"\xef\xbb\xbf"
Types = dict[str, str | None]
"""Names of pyarrow's types by column; None: as the values say."""
TYPES: Types = {"number": "double", "category": "string", "date": "string"}

OPEN_END = "a quote is opened here and never closed"
NOT_UTF8 = "the text is not UTF-8"
NOT_APART = "the row cannot be separated from the next one"


class DelimitedReader:
    """A CSV or TSV file. UTF-8, a header, values in double quotes where they hold a delimiter, a quote or a newline."""

    def __init__(self, name: str, stream: Any, gate: Gate, most: int, delimiter: str) -> None:
        needed("pyarrow.csv", "io", "Reading CSV")
        self.name, self.most, self.delimiter = name, most, delimiter
        self.loose: set[str] = set()
        self.cutter = Cutter(name, stream, row_ends(delimiter), gate)
        header = self.cutter.piece(1)
        self.header = b"" if header is None else header.record(0)
        self.names = [] if header is None else self._names(header)

    def _names(self, header: Records) -> list[str]:
        try:
            text = header.record(0).removeprefix(BOM).decode()
            names = next(csv.reader([text], delimiter=self.delimiter, strict=True))
        except (csv.Error, UnicodeDecodeError, StopIteration) as error:
            raise InputError(f"{self.name}:{header.line_of(0)}: the header cannot be read: {error}") from None
        twice = [name for k, name in enumerate(names) if name in set(names[:k])] if len(set(names)) < len(names) else []
        if twice:
            raise InputError(f"{self.name}:{header.line_of(0)}: the header names {twice[0]!r} twice")
        return names

    def pieces(self) -> Iterator["DelimitedPiece"]:
        """The rows, piece by piece."""
        if self.names:
            for records in self.cutter.pieces(self.most):
                yield DelimitedPiece(self.name, records, self.names, self.delimiter, self.header, self.loose)


@dataclass(frozen=True)
class DelimitedPiece:
    """So many rows of a CSV. ``loose``: columns of numbers that are true and false here, which all pieces share."""

    name: str
    records: Records
    names: list[str]
    delimiter: str
    header: bytes
    loose: set[str]

    def __len__(self) -> int:
        return len(self.records)

    @property
    def columns(self) -> bytes:
        """What names the columns."""
        return self.header

    def infer(self, names: list[str]) -> Kinds:
        """The kinds of columns by all rows of this piece; those with too many or too few values are left out."""
        # What is no text is told when its row is learned; here it must not be in the way of the others.
        span = str(self.records.span(0, len(self)), "utf-8", "replace").encode()
        found = self._read(span, dict.fromkeys(names), lambda row: "skip")
        kinds = {name: self._kind(found.column(name)) for name in names}
        numbers = [name for name, kind in kinds.items() if kind == "number"]
        if numbers:
            texts = self._read(span, dict.fromkeys(numbers, "string"), lambda row: "skip")
            kinds |= {name: "category" for name in numbers if has_codes(texts.column(name))}
        return kinds

    @staticmethod
    def _kind(column: Any) -> str | None:
        return kind_of_text(column) if str(column.type) == "string" else kind_of_type(column.type)

    def table(self, low: int, high: int, kinds: Kinds) -> Any:
        """Rows from ``low`` to before ``high`` as a table of these columns; ValueError if one cannot be read."""
        if self.records.open_end and high == len(self):
            raise ValueError(OPEN_END)
        span = self.records.span(low, high)
        try:
            str(span, "utf-8")
        except UnicodeDecodeError:
            raise ValueError(NOT_UTF8) from None
        return self._table(span, high - low, kinds)

    def sift(self, low: int, high: int, kinds: Kinds) -> Sifted:
        """A table of the rows that can be read, and what is wrong with the others."""
        try:
            faults = self._faults(low, high)
            rows = others(low, high, faults)
            table = self._table(self._joined(rows), len(rows), kinds) if len(rows) else None
        except ValueError:  # rows that only show alone what they are
            faults = faults_by_halves(low, high, lambda a, b: self.table(a, b, kinds))
            rows = others(low, high, faults)
            table = self._table(self._joined(rows), len(rows), kinds) if len(rows) else None
        return Sifted(table, rows, faults)

    def _faults(self, low: int, high: int) -> Faults:
        """What is wrong with rows whatever their columns are; ValueError if that cannot be said of all at once."""
        faults: Faults = {len(self) - 1: OPEN_END} if self.records.open_end and high == len(self) else {}
        for row in range(low, high):
            try:
                str(self.records.record(row), "utf-8")
            except UnicodeDecodeError:
                faults.setdefault(row, NOT_UTF8)
        rows, odd = others(low, high, faults), []

        def skip(row: Any) -> str:
            odd.append((row.number, row.actual_columns))
            return "skip"

        if len(rows):
            read = self._read(self._joined(rows), {self.names[0]: "string"}, skip, threads=False)
            if read.num_rows + len(odd) != len(rows):
                raise ValueError(NOT_APART)
        return faults | {int(rows[number - 1]): self._expected(found) for number, found in odd}

    def _joined(self, rows: Any) -> bytes:
        """Rows without what lies between them."""
        return b"".join(map(self.records.record, rows.tolist()))

    def _expected(self, found: int) -> str:
        return f"expected {len(self.names)} values, as the header has, got {found}"

    def _table(self, span: bytes, n: int, kinds: Kinds) -> Any:
        """The table of n rows."""
        made = self._numbers(span, kinds) or self._anything(span, kinds)
        if made.num_rows != n:
            raise ValueError(NOT_APART)
        for j, (name, kind) in enumerate(kinds.items()):
            if kind == "date":
                made = made.set_column(j, name, as_dates(made.column(j)))
        return made

    def _numbers(self, span: bytes, kinds: Kinds) -> Any | None:
        """The table, if its numbers are plain ones, which is fastest; None if not."""
        pyarrow = needed("pyarrow", "io", "Reading CSV")
        types = {name: TYPES.get(kind or "") for name, kind in kinds.items()} | dict.fromkeys(self.loose & kinds.keys())
        try:
            made = self._read(span, types, lambda row: "error")
        except pyarrow.ArrowInvalid:
            return None
        loose = (made.schema.field(name).type for name in self.loose & kinds.keys() if kinds[name] == "number")
        return None if any(kind_of_type(own) == "date" for own in loose) else made

    def _anything(self, span: bytes, kinds: Kinds) -> Any:
        """The table with true and false, or text, in columns of numbers where there is such; or an error in words."""
        types = {name: None if kind == "number" else TYPES.get(kind or "") for name, kind in kinds.items()}
        made = self._checked(span, types)
        found = {name: made.schema.field(name).type for name, kind in kinds.items() if kind == "number"}
        self.loose.update(name for name, own in found.items() if str(own) == "bool")
        # A date among numbers is not a number of days: as text it will be reported. Hexadecimal digits are whole
        # numbers for pyarrow, but not doubles.
        strange: Types = {name: "string" for name, own in found.items() if kind_of_type(own) == "date"}
        strange |= {name: "double" for name, own in found.items() if str(own) == "int64"}
        return self._checked(span, types | strange) if strange else made

    def _checked(self, span: bytes, types: Types) -> Any:
        pyarrow = needed("pyarrow", "io", "Reading CSV")
        odd: list[Any] = []

        def remember(row: Any) -> str:
            odd.append(row)
            return "error"

        try:
            return self._read(span, types, remember)
        except pyarrow.ArrowInvalid as error:
            raise ValueError(self._expected(odd[0].actual_columns) if odd else str(error)) from None

    def _read(self, span: Any, types: Types, on_odd: Any, *, threads: bool = True) -> Any:
        """The table of the columns that ``types`` names, from text in UTF-8; without threads, odd rows have numbers."""
        pyarrow, csv_ = needed("pyarrow", "io", "Reading CSV"), needed("pyarrow.csv", "io", "Reading CSV")
        known = {name: pyarrow.type_for_alias(own) for name, own in types.items() if own is not None}
        return csv_.read_csv(
            pyarrow.BufferReader(span),
            csv_.ReadOptions(column_names=self.names, block_size=len(span) + 1, use_threads=threads),
            csv_.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=on_odd),
            csv_.ConvertOptions(include_columns=list(types), column_types=known),
        )
