"""JSON lines: an object on each line. Parsed by Python's own parser, whose errors say where they are."""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, ClassVar

from pairloom.base.exact import text_of
from pairloom.base.extras import needed
from pairloom.base.refusal import shown
from pairloom.data.readers.kinds import Kinds, as_dates, kind_of_text
from pairloom.data.readers.opening import Gate
from pairloom.data.readers.records import Cutter, Records, line_ends
from pairloom.data.readers.sifting import Faults, Sifted, others


class JsonReader:
    """A file of JSON lines. The columns are the keys of its first piece; a key that a line leaves out is missing."""

    def __init__(self, name: str, stream: Any, gate: Gate, most: int) -> None:
        needed("pyarrow", "io", "Reading JSON lines")
        self.name, self.most = name, most
        self.cutter = Cutter(name, stream, line_ends, gate)
        self.first = self.cutter.piece(most)
        self.names = [] if self.first is None else list(dict.fromkeys(k for row in readable(self.first) for k in row))

    def pieces(self) -> Iterator["JsonPiece"]:
        """The rows, piece by piece."""
        records = self.first
        while records is not None:
            yield JsonPiece(self.name, records, self.names)
            records = self.cutter.piece(self.most)


def readable(records: Records) -> Iterator[dict[str, Any]]:
    """The lines that are objects."""
    for i in range(len(records)):
        try:
            yield parsed(records.record(i))
        except ValueError:
            continue


def parsed(line: bytes) -> dict[str, Any]:
    """The object on a line; ValueError if there is none."""
    try:
        made = json.loads(line, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error.msg}, at letter {error.pos + 1}") from None
    except UnicodeDecodeError:
        raise ValueError("the text is not UTF-8") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    except _Twice as error:
        raise ValueError(f"the key {error.args[0]!r:.60} is there twice") from None
    except ValueError:
        raise ValueError("a number has more digits than can be read") from None
    if not isinstance(made, dict):
        raise ValueError(f"expected an object, {{...}}, got {shown(made)}")
    if b"\\u" in line:
        try:
            json.dumps(made, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(error.object[error.start]):04x}"
            raise ValueError(f"the text holds {half}, one half of a character without the other") from None
    return made


class _Twice(ValueError):
    """A key that an object has twice: nobody knows which one is meant."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _Twice(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return made


@dataclass(frozen=True)
class JsonPiece:
    """So many lines."""

    name: str
    records: Records
    names: list[str]
    header: ClassVar[bytes] = b""
    columns: ClassVar[bytes] = b""

    def __len__(self) -> int:
        return len(self.records)

    def infer(self, names: list[str]) -> Kinds:
        """The kinds of columns by all lines of this piece that can be read: what most values are."""
        rows = list(readable(self.records))
        return {name: _kind([row.get(name) for row in rows]) for name in names}

    def table(self, low: int, high: int, kinds: Kinds) -> Any:
        """Lines from ``low`` to before ``high`` as a table of these columns; ValueError if one cannot be read."""
        found = self.sift(low, high, kinds)
        for fault in found.faults.values():
            raise ValueError(fault)
        return found.table

    def sift(self, low: int, high: int, kinds: Kinds) -> Sifted:
        """A table of the lines that can be read, and what is wrong with the others."""
        pyarrow = needed("pyarrow", "io", "Reading JSON lines")
        known, faults, rows = set(self.names) | kinds.keys(), Faults(), []
        for i in range(low, high):
            try:
                row = parsed(self.records.record(i))
                _check(row, known, kinds)
                rows.append(row)
            except ValueError as error:
                faults[i] = str(error)
        made = {name: _column(pyarrow, [row.get(name) for row in rows], kind) for name, kind in kinds.items()}
        return Sifted(pyarrow.table(made) if rows else None, others(low, high, faults), faults)


def _check(row: dict[str, Any], known: Collection[str], kinds: Kinds) -> None:
    """ValueError for keys that are new and values that no column takes."""
    for name, value in row.items():
        if name not in known:
            raise ValueError(f"the key {name!r} is new: it was on none of the first lines")
        if name in kinds and isinstance(value, (dict, list)):
            raise ValueError(
                f"{name!r} holds {json.dumps(value)[:40]}, which is neither a number nor text: --drop {name}"
            )
        if type(value) is float and name in kinds and kinds[name] != "number" and value in (inf, -inf):
            raise ValueError(f"{name!r} holds infinity, which is not a category")
        if type(value) is int and name in kinds and kinds[name] in ("number", None):
            try:
                float(value)
            except OverflowError:
                raise ValueError(f"{name!r} holds a number beyond all doubles") from None


def _kind(values: list[Any]) -> str | None:
    there = [value for value in values if value not in (None, "") and not isinstance(value, (dict, list))]
    there = [value for value in there if not isinstance(value, float) or isfinite(value)]
    if not there:
        return None
    if not any(isinstance(value, str) for value in there):
        return "number"
    pyarrow = needed("pyarrow", "io", "Reading JSON lines")
    return kind_of_text(pyarrow.array(map(text_of, there), pyarrow.string()))


def _column(pyarrow: Any, values: list[Any], kind: str | None) -> Any:
    values = [None if value != value else value for value in values]
    if kind is None and all(value is None for value in values):
        return pyarrow.nulls(len(values))
    if kind in ("number", None):
        made = [value if value is None or isinstance(value, str) else float(value) for value in values]
        if not any(isinstance(value, str) for value in made):
            return pyarrow.array(made, pyarrow.float64())
        # Text among numbers: whoever takes it reports which is not one. A number stays what it would be without text.
        values = [repr(value) if kind and isinstance(value, float) else given
                  for value, given in zip(made, values, strict=True)]  # fmt: skip
    text = pyarrow.array([None if value is None else text_of(value) for value in values], pyarrow.string())
    return as_dates(text) if kind == "date" else text
