"""Rows on their way to a model."""

from dataclasses import field
from typing import Any

import numpy as np

from pairloom.base.tree import OPTIONAL, node
from pairloom.base.typing import Array


@node
class Batch:
    """Rows in order: x, the model's codes of the labels, weights above 0, and the query each row belongs to.

    ``time``: when each row was, where rows fade by time.
    """

    X: Any
    y: Array
    weight: Array
    query: Array
    time: Array | None = field(default=None, metadata=OPTIONAL)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: slice | Array) -> "Batch":
        time = None if self.time is None else self.time[rows]
        return Batch(self.X[rows], self.y[rows], self.weight[rows], self.query[rows], time)

    @classmethod
    def join(cls, batches: "list[Batch]") -> "Batch":
        """All rows of several batches."""
        if len(batches) == 1:
            return batches[0]
        if any(hasattr(batch.X, "tocsr") for batch in batches):
            from scipy.sparse import csr_array, vstack

            X = vstack([csr_array(batch.X) for batch in batches], format="csr")
        else:
            X = np.concatenate([batch.X for batch in batches])
        names = ("y", "weight", "query") if batches[0].time is None else ("y", "weight", "query", "time")
        return cls(X, *(np.concatenate([getattr(b, name) for b in batches]) for name in names))

    def weighted(self) -> "Batch":
        """The rows of positive weight."""
        keep = self.weight > 0
        return self if keep.all() else self[keep]

    def copy(self) -> "Batch":
        """Rows that the caller cannot change."""
        time = None if self.time is None else self.time.copy()
        return Batch(self.X.copy(), self.y.copy(), self.weight.copy(), self.query.copy(), time)


@node
class Scored:
    """Scores of the newest rows, each given before its row was learned, with labels and weights.

    ``scores`` (n, vectors) are those of the last n rows up to row ``end``. A model that has changed its mind about rows
    it scored before may give their scores again; ``first``, if it is there, are then the scores of the newest rows as
    they were when these came. ``query``: as in :class:`Batch`; None for a model that knows none.
    """

    end: int
    scores: Array
    labels: Array
    weights: Array
    query: Array | None = None
    first: Array | None = None
