"""The newest rows of each class, kept to compare other rows with them."""

from typing import Annotated, Any, Self

import numpy as np

from pairloom.base.csr import is_sparse
from pairloom.base.spec import Count, WrongState
from pairloom.base.tree import copy, node
from pairloom.base.typing import Array

N_NEWEST = 32
"""Rows kept of each class."""

MAX_VALUES = 1 << 17
"""Values kept in all (1 MB): with more classes and columns, no rows are kept."""


@node
class NewestRows:
    """The newest 32 rows of each class, with named columns as numbers: days, codes of categories, NaN for missing.

    ``values`` (classes, 32, columns); ``row`` (classes, 32): the numbers of the rows, from 1 on; 0 for empty places;
    ``counts`` (classes,): rows of each class so far; ``t``: rows in all. The place of a row depends on its number among
    the rows of its class only.

    Cost: 256 bytes for each class and column.
    """

    values: Annotated[Array, f"f8 _k {N_NEWEST} _c"]
    row: Annotated[Array, f"i8 _k {N_NEWEST} 0:BIG"]
    counts: Annotated[Array, "i8 _k 0:BIG"]
    t: Count = 0

    @classmethod
    def empty(cls, n_classes: int, n_columns: int) -> Self | None:
        """Return the state before the first row; None if there are too many classes and columns."""
        if n_classes * N_NEWEST * n_columns > MAX_VALUES:
            return None
        values = np.zeros((n_classes, N_NEWEST, n_columns))
        return cls(values, np.zeros((n_classes, N_NEWEST), np.int64), np.zeros(n_classes, np.int64))

    def check(self) -> None:
        filled = np.minimum(self.counts, N_NEWEST)
        if (self.row > self.t).any() or ((self.row > 0).sum(axis=1) != filled).any() or self.counts.sum() > self.t:
            raise WrongState(f"must be the newest of {self.t} rows")

    def add(self, codes: Array, rows: Any) -> None:
        """Add rows, dense or CSR, of the classes with these codes."""
        if not self.values.flags.writeable:
            # Mapped from a read-only file: joblib.load(..., mmap_mode="r").
            vars(self).update(vars(copy(self)))
        late = rows.shape[1] - self.values.shape[2]
        if late:  # columns that were missing so far
            gaps = np.full((*self.row.shape, late), np.nan)
            self.values = np.concatenate([self.values, gaps], axis=2)
        if len(codes) == 1:  # often: the general case takes several times as long
            k, row = int(codes[0]), rows.toarray()[0] if is_sparse(rows) else rows[0]
            place = self.counts[k] % N_NEWEST
            self.values[k, place], self.row[k, place] = row, self.t + 1
            self.counts[k] += 1
            self.t += 1
            return
        for k in np.unique(codes).astype(int).tolist():
            own = np.flatnonzero(codes == k)
            newest = own[-N_NEWEST:]
            self.counts[k] += len(own)
            places = (self.counts[k] - len(newest) + np.arange(len(newest))) % N_NEWEST
            added = rows[newest]
            self.values[k, places] = added.toarray() if is_sparse(added) else added
            self.row[k, places] = self.t + 1 + newest
        self.t += len(codes)

    def newest(self, classes: Array, n: int) -> Array:
        """Return the newest n rows of some classes, the oldest first."""
        values, row = self.values[classes].reshape(-1, self.values.shape[2]), self.row[classes].ravel()
        order = np.argsort(row)[-n:]
        return values[order[row[order] > 0]]
