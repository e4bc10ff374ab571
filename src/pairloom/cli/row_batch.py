"""Rows of a chunk, as commands pass them to a model."""

from dataclasses import dataclass
from typing import Any

from pairloom.base.typing import Array


@dataclass(frozen=True)
class RowBatch:
    """Rows of a chunk: features, labels as in the file, weights, columns to copy, and row numbers in the chunk.

    ``malformed``: for columns with malformed values that are treated as missing, whether each row has one.
    """

    X: Any
    labels: Any
    weight: Array | None
    kept: Any
    rows: Array
    malformed: dict[str, Array]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice | Array) -> "RowBatch":
        """Select rows by a slice or a mask."""
        malformed = {name: mask[rows] for name, mask in self.malformed.items()}
        parts = (self.X, self.labels, self.weight, self.kept, self.rows)
        X, labels, weight, kept, own = (_select(part, rows) for part in parts)
        return RowBatch(X, labels, weight, kept, own, malformed)

    @property
    def malformed_counts(self) -> dict[str, int]:
        """Numbers of malformed values that are treated as missing, by column."""
        return {name: int(mask.sum()) for name, mask in self.malformed.items() if mask.any()}


def _select(part: Any, rows: slice | Array) -> Any:
    if part is None:
        return None
    if not isinstance(rows, slice):
        return part.filter(rows) if hasattr(part, "filter") else part[rows]  # pyarrow or NumPy
    return part.slice(rows.start, rows.stop - rows.start) if hasattr(part, "slice") else part[rows]
