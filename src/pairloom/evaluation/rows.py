"""Rows of a stream, one at a time, and their delayed labels."""

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
    """A part of a stream: rows, labels, weights; the times at which each row ``arrived`` and was ``labelled``.

    A missing label (None or NaN) never arrives. Times are numbers or dates, in order of arrival.
    """

    X: Any
    y: Any
    weight: Any = None
    arrived: Any = None
    labelled: Any = None


class Row(NamedTuple):
    """One row: x of shape (1, d) and the type of X, its label (None: missing), weight, and its two times."""

    x: Any
    y: Any
    weight: float
    arrived: Any
    labelled: Any


def rows_of(stream: Any, delay: int | str) -> Iterator[Row]:
    """Yield the rows of (X, y), of ``Rows``, or of an iterable of either, in order."""
    count = 0
    for given in [stream] if is_part(stream) else stream:
        part = given if isinstance(given, Rows) else Rows(*given)
        n = len(part.y)
        for name in ("X", "weight", "arrived", "labelled"):
            values = getattr(part, name)
            if values is not None and (values.shape[0] if hasattr(values, "shape") else len(values)) != n:
                raise ValueError(f"{name} and y must have the same number of rows; after row {count:,} y has {n:,}")
        if delay == "times" and (part.arrived is None or part.labelled is None):
            raise ValueError("delay='times' needs the times arrived= and labelled= of every row: pass Rows")
        yield from _rows_of_part(part, count, delay)
        count += n


def is_part(stream: Any) -> bool:
    """Whether this is one part of a stream, not an iterable of parts."""
    return isinstance(stream, Rows) or (isinstance(stream, tuple) and len(stream) > 1 and hasattr(stream[0], "shape"))


def _rows_of_part(part: Rows, count: int, delay: int | str) -> Iterator[Row]:
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


def row_as_dict(x: Any) -> dict[Any, Any]:
    """Return one row by column names or numbers; missing values of non-numeric columns are None."""
    if column_names(x) is None:
        return dict(enumerate(np.asarray(x.toarray() if is_sparse(x) else x)[0].tolist()))
    frame = nw.from_native(x, eager_only=True)
    [row] = frame.rows(named=True)  # column by column: in an array, integers would become floats
    return {
        name: None if not dtype.is_numeric() and is_missing(row[name]) else row[name]
        for name, dtype in frame.schema.items()
    }


class Pending:
    """Scored rows whose labels are pending."""

    def __init__(self) -> None:
        self._heap: list[tuple[Any, int, Row]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, row: Row) -> None:
        """Add a scored row; one without a label is dropped."""
        if row.y is not None:
            heappush(self._heap, (row.labelled, self._count, row))
        self._count += 1

    def before(self, time: Any) -> Iterable[Row]:
        """Yield and remove the rows labelled before a time (None: all), by the times of label and arrival."""
        while self._heap and (time is None or self._heap[0][0] < time):
            yield heappop(self._heap)[2]
