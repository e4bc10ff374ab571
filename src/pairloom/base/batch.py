"""Rows on their way to a model, and the scores they had."""

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from pairloom.base.csr import is_sparse
from pairloom.base.spec import WEIGHT
from pairloom.base.tree import OPTIONAL, node
from pairloom.base.typing import Array


@dataclass(frozen=True)
class TimeColumn:
    """The column with the time of each row, by name, or by position in rows without names.

    ``dates``: the column contains dates, and times are seconds since 1970; otherwise numbers, used as they are.
    """

    column: str | int
    dates: bool


@node
class Batch:
    """Rows in order: features, the model's codes of the labels, positive weights, and the query of each row.

    ``time``: the time of each row, for models with a half-life in time.
    """

    X: Annotated[Any, "rows"]
    y: Annotated[Array, "label _n"]
    weight: Annotated[Array, f"f8 _n {WEIGHT}"]
    query: Annotated[Array, "i8 _n"]
    time: Annotated[Array, "f8 _n EARLY:LATE"] | None = field(default=None, metadata=OPTIONAL)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: slice | Array) -> "Batch":
        time = None if self.time is None else self.time[rows]
        return Batch(self.X[rows], self.y[rows], self.weight[rows], self.query[rows], time)

    @classmethod
    def join(cls, batches: "list[Batch]") -> "Batch":
        """Concatenate several batches."""
        if len(batches) == 1:
            return batches[0]
        if any(is_sparse(batch.X) for batch in batches):
            from scipy.sparse import csr_array, vstack

            X = vstack([csr_array(batch.X) for batch in batches], format="csr")
        else:
            X = np.concatenate([batch.X for batch in batches])
        names = ("y", "weight", "query") if batches[0].time is None else ("y", "weight", "query", "time")
        return cls(X, *(np.concatenate([getattr(b, name) for b in batches]) for name in names))

    def with_positive_weight(self) -> "Batch":
        """Return the rows of positive weight."""
        keep = self.weight > 0
        return self if keep.all() else self[keep]

    def copy(self) -> "Batch":
        """Return a copy that shares no memory with the caller's arrays."""
        time = None if self.time is None else self.time.copy()
        return Batch(self.X.copy(), self.y.copy(), self.weight.copy(), self.query.copy(), time)


@node
class Scored:
    """Scores of the newest rows, computed before each row was learned, with labels and weights.

    ``scores`` (n, vectors) belong to the last n rows up to row ``end``. A model whose rules have changed may score
    earlier rows again; ``first`` then contains the scores that the newest rows had on arrival. ``query``: as in
    :class:`Batch`; None for a model without queries.
    """

    end: int
    scores: Array
    labels: Array
    weights: Array
    query: Array | None = None
    first: Array | None = None
