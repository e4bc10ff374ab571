"""CSR rows: how to recognise them, and the arrays that compiled code takes.

SciPy's sparse module is imported only when sparse rows arrive: importing it would slow down every start.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pairloom.base.typing import Array

MIN_SCALE = 1e-100
"""A lazy scale factor below this is multiplied into the vector, at the cost of a pass over all columns."""


def is_sparse(X: Any) -> bool:
    """Return whether ``X`` is a SciPy sparse matrix or array, of any format."""
    return hasattr(X, "tocsr")


def to_csr(X: Any) -> Any:
    """Return dense rows as CSR; sparse rows are returned unchanged."""
    from scipy.sparse import csr_array

    return X if is_sparse(X) else csr_array(X)


@dataclass(frozen=True)
class CSRRows:
    """The three arrays of CSR rows, as compiled code takes them; slices share the entries."""

    data: Array
    indices: Array
    indptr: Array

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, part: slice) -> "CSRRows":
        start, stop, _ = part.indices(len(self))
        return CSRRows(self.data, self.indices, self.indptr[start : stop + 1])

    @classmethod
    def of(cls, X: Any) -> "CSRRows":
        """Return the rows of a CSR array."""
        return cls(
            np.ascontiguousarray(X.data), X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
        )

    @classmethod
    def of_cells(cls, cells: Array, dtype: Any) -> "CSRRows":
        """Return rows of norm 1 with the same value in m places each, ``cells`` (n, m), in order."""
        n, m = cells.shape
        return cls(np.full(n * m, 1.0 / np.sqrt(m), dtype), cells.reshape(-1), np.arange(0, n * m + 1, m))
