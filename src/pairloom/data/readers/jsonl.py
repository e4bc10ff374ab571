"""JSON lines: one object per line, parsed by Python's json."""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from math import inf, isfinite
from typing import Any, ClassVar

from pairloom.base.errors import short_repr
from pairloom.base.extras import import_extra
from pairloom.columns.inference import kind_of_values
from pairloom.columns.kinds import Kinds
from pairloom.columns.values import text_of
from pairloom.data.readers.base import RowErrors, ValidRows, rows_without
from pairloom.data.readers.opening import Gate
from pairloom.data.readers.records import Records, RecordSplitter, line_ends
from pairloom.data.readers.text import as_dates


class JsonReader:
    """A file of JSON lines. Its columns are the keys of the first chunk; a key that a line omits is missing."""

    def __init__(self, name: str, stream: Any, gate: Gate, chunk_rows: int) -> None:
        import_extra("pyarrow", "io", "Reading JSON lines")
        self.name, self.chunk_rows = name, chunk_rows
        self.splitter = RecordSplitter(name, stream, line_ends, gate)
        self.first = self.splitter.next_chunk(chunk_rows)
        rows = () if self.first is None else _valid_objects(self.first)
        self.names = list(dict.fromkeys(key for row in rows for key in row))

    def chunks(self) -> Iterator["JsonChunk"]:
        if self.first is not None:
            for records in chain([self.first], self.splitter.chunks(self.chunk_rows)):
                yield JsonChunk(self.name, records, self.names)


def parse_object(line: bytes) -> dict[str, Any]:
    """Return the JSON object on a line; raise ValueError if there is none."""
    try:
        parsed = json.loads(line, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise ValueError(f"invalid JSON at character {error.pos + 1}: {error.msg}") from None
    except UnicodeDecodeError:
        raise ValueError("the text is not UTF-8") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    except _DuplicateKey as error:
        raise ValueError(f"duplicate key {error.args[0]!r:.60}") from None
    except ValueError:
        raise ValueError("a number has too many digits") from None
    if not isinstance(parsed, dict):
        raise ValueError(f"expected an object, {{...}}, got {short_repr(parsed)}")
    if b"\\u" in line:
        try:
            json.dumps(parsed, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            surrogate = f"\\u{ord(error.object[error.start]):04x}"
            raise ValueError(f"the text has an unpaired surrogate {surrogate}") from None
    return parsed


class _DuplicateKey(ValueError):
    """An object has a key twice."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parsed = dict(pairs)
    if len(parsed) < len(pairs):
        raise _DuplicateKey(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return parsed


def _valid_objects(records: Records) -> Iterator[dict[str, Any]]:
    for i in range(len(records)):
        try:
            yield parse_object(records.record(i))
        except ValueError:
            continue


@dataclass(frozen=True)
class JsonChunk:
    """Consecutive lines."""

    name: str
    records: Records
    names: list[str]
    header: ClassVar[bytes] = b""
    columns: ClassVar[bytes] = b""

    def __len__(self) -> int:
        return len(self.records)

    def infer(self, names: list[str]) -> Kinds:
        """Infer the kinds of columns from the valid lines."""
        rows = list(_valid_objects(self.records))
        return {
            name: kind_of_values(filter(_has_kind, (row.get(name) for row in rows)), text_numbers=True)
            for name in names
        }

    def table(self, low: int, high: int, kinds: Kinds) -> Any:
        found = self.valid_table(low, high, kinds)
        for error in found.errors.values():
            raise ValueError(error)
        return found.table

    def valid_table(self, low: int, high: int, kinds: Kinds) -> ValidRows:
        pyarrow = import_extra("pyarrow", "io", "Reading JSON lines")
        known, errors, rows = set(self.names) | kinds.keys(), RowErrors(), []
        for i in range(low, high):
            try:
                row = parse_object(self.records.record(i))
                _check_values(row, known, kinds)
                rows.append(row)
            except ValueError as error:
                errors[i] = str(error)
        columns = {name: _column(pyarrow, [row.get(name) for row in rows], kind) for name, kind in kinds.items()}
        return ValidRows(pyarrow.table(columns) if rows else None, rows_without(errors, low, high), errors)


def _has_kind(value: Any) -> bool:
    """Whether a value counts for the kind of its column; lists, objects and infinity are malformed in every column."""
    return not isinstance(value, (dict, list)) and (type(value) is not float or isfinite(value))


def _check_values(row: dict[str, Any], known: Collection[str], kinds: Kinds) -> None:
    """Raise ValueError for unknown keys and values that no column can hold."""
    for name, value in row.items():
        if name not in known:
            raise ValueError(f"unknown key {name!r}: it is not in the first chunk")
        if name not in kinds:
            continue
        if isinstance(value, (dict, list)):
            raise ValueError(f"{name!r} is {json.dumps(value)[:40]}, neither a number nor text: use --drop {name}")
        if type(value) is float and kinds[name] != "number" and value in (inf, -inf):
            raise ValueError(f"{name!r} is infinite, which is not a category")
        if type(value) is int and kinds[name] in ("number", None):
            try:
                float(value)
            except OverflowError:
                raise ValueError(f"{name!r} is too large for a 64-bit float") from None


def _column(pyarrow: Any, values: list[Any], kind: str | None) -> Any:
    values = [None if value != value else value for value in values]
    if kind is None and all(value is None for value in values):
        return pyarrow.nulls(len(values))
    if kind in ("number", None):
        numbers = [value if value is None or isinstance(value, str) else float(value) for value in values]
        if not any(isinstance(value, str) for value in numbers):
            return pyarrow.array(numbers, pyarrow.float64())
        # The model reports text among numbers. Numbers are written as they would be without it.
        values = [repr(number) if kind and isinstance(number, float) else value
                  for number, value in zip(numbers, values, strict=True)]  # fmt: skip
    text = pyarrow.array([None if value is None else text_of(value) for value in values], pyarrow.string())
    return as_dates(text) if kind == "date" else text
