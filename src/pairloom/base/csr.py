"""CSR rows: how to tell them, and how compiled code takes them.

SciPy's sparse module is imported only once sparse rows are there: loading it would slow down every start.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pairloom.base.typing import Array

FOLD = 1e-100
"""A factor below this is multiplied in, which is a pass over all columns."""


def is_sparse(X: Any) -> bool:
    """Whether ``X`` is a SciPy sparse matrix or array, of any format."""
    return hasattr(X, "tocsr")


def csr(X: Any) -> Any:
    """Dense rows as CSR; CSR rows as they are."""
    from scipy.sparse import csr_array

    return X if is_sparse(X) else csr_array(X)


@dataclass(frozen=True)
class Rows:
    """CSR rows as compiled code takes them; a slice of them shares the entries."""

    data: Array
    indices: Array
    indptr: Array

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, part: slice) -> "Rows":
        start, stop, _ = part.indices(len(self))
        return Rows(self.data, self.indices, self.indptr[start : stop + 1])

    @classmethod
    def of(cls, X: Any) -> "Rows":
        """The rows of a CSR array."""
        return cls(
            np.ascontiguousarray(X.data), X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
        )


def rows_of_cells(cells: Array, dtype: Any) -> Rows:
    """Rows of length 1 with the same number in m places each, ``cells`` (n, m), in order."""
    n, m = cells.shape
    return Rows(np.full(n * m, 1.0 / np.sqrt(m), dtype), cells.reshape(-1), np.arange(0, n * m + 1, m))
