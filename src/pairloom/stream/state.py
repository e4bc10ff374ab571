"""All that a stream of rows has changed, as one tree."""

from dataclasses import field
from typing import Any

from pairloom.base.batch import Batch
from pairloom.base.tree import OPTIONAL, node


@node
class Kept:
    """The first rows of the stream, while rules on data are not yet settled."""

    batches: list[Batch] = field(default_factory=list)
    count: int = 0

    def add(self, batch: Batch) -> None:
        """Keep more rows."""
        self.batches.append(batch.copy())
        self.count += len(batch)

    def all(self) -> Batch:
        """The rows, joined for good."""
        self.batches = [Batch.join(self.batches)]
        return self.batches[0]

    def rows(self, start: int, end: int) -> Batch:
        """Some of the rows, without joining all."""
        found, at = [], 0
        for batch in self.batches:
            if at < end and at + len(batch) > start:
                found.append(batch[max(0, start - at) : end - at])
            at += len(batch)
        return Batch.join(found)

    def canonical(self) -> "Kept":
        """The same rows, however they came."""
        return Kept([Batch.join(self.batches)] if self.batches else [], self.count)


@node
class StreamState:
    """After ``t`` rows: what the model has learned, the first rows while they are kept, and what observers have seen.

    ``time``: of the newest row, where rows have one. Copy it, store it, and learning goes on as if nothing had
    happened.
    """

    t: int
    n_features: int
    learned: Any
    kept: Kept | None
    observed: dict[str, Any]
    time: float | None = field(default=None, metadata=OPTIONAL)
