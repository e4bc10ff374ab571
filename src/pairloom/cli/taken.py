"""Rows that a command has taken, and what is wrong with the labels of some."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairloom.base.typing import Array
from pairloom.cli.ending import message_of
from pairloom.cli.labels import texts
from pairloom.data.readers.sifting import REFUSED, Faults


@dataclass(frozen=True)
class Taken:
    """Rows: what the model sees, the labels as the file has them, weights, and columns to be handed through.

    ``rows``: their places in the piece.
    """

    X: Any
    labels: Any
    weight: Array | None
    kept: Any
    rows: Array

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice | Array) -> "Taken":
        """Some of the rows: a slice, or a mask."""
        return Taken(*(_some(part, rows) for part in (self.X, self.labels, self.weight, self.kept, self.rows)))


def readable(labels: Any) -> Any:
    """Labels as they are; ValueError for some that cannot be read."""
    texts(labels)
    return labels


def label_faults(taken: Taken, read: Callable[[Any], object]) -> Faults:
    """What is wrong with labels: each different one is read once."""
    if not len(taken):
        return {}
    try:
        read(taken.labels)
        return {}
    except REFUSED:
        pass
    try:
        _, codes = texts(taken.labels)
    except REFUSED:
        codes = np.arange(len(taken))
    said: Faults = {}
    for code in np.unique(codes).tolist():
        places = np.flatnonzero(codes == code)
        try:
            read(taken.labels[int(places[0]) : int(places[0]) + 1])
        except REFUSED as error:
            said |= dict.fromkeys(taken.rows[places].tolist(), message_of(error))
    return said


def _some(part: Any, rows: slice | Array) -> Any:
    if part is None:
        return None
    if not isinstance(rows, slice):
        return part.filter(rows) if hasattr(part, "filter") else part[rows]  # pyarrow's, or NumPy's
    return part.slice(rows.start, rows.stop - rows.start) if hasattr(part, "slice") else part[rows]
