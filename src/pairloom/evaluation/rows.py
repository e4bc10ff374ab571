"""Rows of a stream, one at a time, and when their labels come."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from pairloom.base.csr import is_sparse
from pairloom.base.validation import column_names, is_missing


@dataclass(frozen=True)
class Rows:
    """A piece of a stream: rows, labels, weights; when each row ``arrived`` and when its label did (``labelled``).

    A label that is missing (None or NaN) never comes. Times are numbers or dates, in order of arrival.
    """

    X: Any
    y: Any
    weight: Any = None
    arrived: Any = None
    labelled: Any = None


class Row(NamedTuple):
    """One row: x as a (1, d) piece of what was given, its label (None: missing), weight, and its two times."""

    x: Any
    y: Any
    weight: float
    arrived: Any
    labelled: Any


def rows_of(stream: Any, delay: int | str) -> Iterator[Row]:
    """The rows of (X, y), of ``Rows``, or of an iterable of either, in order."""
    count = 0
    for piece in [stream] if is_piece(stream) else stream:
        part = piece if isinstance(piece, Rows) else Rows(*piece)
        n = len(part.y)
        for name in ("X", "weight", "arrived", "labelled"):
            values = getattr(part, name)
            if values is not None and (values.shape[0] if hasattr(values, "shape") else len(values)) != n:
                raise ValueError(f"{name} and y must have as many rows; after row {count:,} y has {n:,}")
        if delay == "times" and (part.arrived is None or part.labelled is None):
            raise ValueError("delay='times' needs the times arrived= and labelled= of every row: pass Rows")
        yield from _each(part, count, delay)
        count += n


def is_piece(stream: Any) -> bool:
    """Whether this is one piece and not many."""
    return isinstance(stream, Rows) or (isinstance(stream, tuple) and len(stream) > 1 and hasattr(stream[0], "shape"))


def _each(part: Rows, count: int, delay: int | str) -> Iterator[Row]:
    y = np.asarray(part.y).tolist() if hasattr(part.y, "shape") else list(part.y)
    for i, label in enumerate(y):
        weight = 1.0 if part.weight is None else float(part.weight[i])
        if delay == "times":
            arrived, labelled = _at(part.arrived, i), _at(part.labelled, i)
        else:
            arrived, labelled = count + i, count + i + int(delay)
        missing = is_missing(label) or is_missing(labelled)
        yield Row(_row(part.X, i), None if missing else label, weight, arrived, labelled)


def _at(values: Any, i: int) -> Any:
    return values.iloc[i] if hasattr(values, "iloc") else values[i]


def _row(X: Any, i: int) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[i : i + 1]
    if is_sparse(X) or hasattr(X, "shape"):
        return X[i : i + 1]
    return np.asarray(X[i])[None, :]


def named(x: Any) -> dict[Any, Any]:
    """One row as a mapping, by its column names or numbers; what is missing in a column of another type is None."""
    if column_names(x) is None:
        return dict(enumerate(np.asarray(x.toarray() if is_sparse(x) else x)[0].tolist()))
    frame = nw.from_native(x, eager_only=True)
    [row] = frame.rows(named=True)  # column by column: in an array, whole numbers would become doubles
    return {
        name: None if not dtype.is_numeric() and is_missing(row[name]) else row[name]
        for name, dtype in frame.schema.items()
    }


class Pending:
    """Rows that were scored and whose labels are still to come."""

    def __init__(self) -> None:
        self._heap: list[tuple[Any, int, Row]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, row: Row) -> None:
        """A row that was scored; one without a label never comes back."""
        if row.y is not None:
            heappush(self._heap, (row.labelled, self._count, row))
        self._count += 1

    def before(self, time: Any) -> Iterable[Row]:
        """The rows whose labels came before a time, in the order of their labels, then of their arrival."""
        while self._heap and self._heap[0][0] < time:
            yield heappop(self._heap)[2]

    def rest(self) -> Iterable[Row]:
        """All that are left, in order."""
        while self._heap:
            yield heappop(self._heap)[2]
