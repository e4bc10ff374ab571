"""The states of forests, and the sample of rows from which a growing forest grows its trees."""

from dataclasses import field
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.csr import is_sparse
from pairloom.base.merging import RowCounts, pooled
from pairloom.base.spec import Count, WrongState
from pairloom.base.tree import OPTIONAL, node
from pairloom.base.typing import Array
from pairloom.features.scaling import Scaler
from pairloom.features.trees import Nodes, Tree


@node
class Sample:
    """A ring buffer of the newest rows: ``columns`` (d, size), labels, weights, and their scores on arrival.

    In memory, the values of a row are next to each other: trees read them together.
    """

    columns: Annotated[Array, "R d n"]
    y: Annotated[Array, "f8 n finite"]
    weight: Annotated[Array, "f8 n 0:1e101"]
    scores: Annotated[Array, "f8 n k finite | f8 n 0"]
    count: Count = 0

    def __post_init__(self) -> None:
        self.columns = np.asfortranarray(self.columns)

    @property
    def X(self) -> Array:
        """The rows (size, d)."""
        return self.columns.T

    @classmethod
    def empty(cls, size: int, n_features: int) -> "Sample":
        """Return an empty buffer of ``size`` rows; ``scores`` are allocated when the first rows are added."""
        return cls(np.zeros((n_features, size), order="F"), np.zeros(size), np.zeros(size), np.zeros((size, 0)))

    def add(self, batch: Batch, scores: Array) -> None:
        """Add rows, replacing the oldest."""
        size = len(self.y)
        if not self.scores.shape[1]:
            self.scores = np.zeros((size, scores.shape[1]))
        newest = slice(max(0, len(batch) - size), None)
        to = (self.count + np.arange(len(batch))[newest]) % size
        X = batch.X[newest]
        self.X[to] = X.toarray() if is_sparse(X) else X
        self.y[to], self.weight[to], self.scores[to] = batch.y[newest], batch.weight[newest], scores[newest]
        self.count += len(batch)

    def extend(self, other: "Sample", start: int, end: int) -> None:
        """Add rows ``start`` to ``end`` of another buffer."""
        own = slice(start, end)
        rows = Batch(other.X[own], other.y[own], other.weight[own], np.zeros(0, np.int64))
        self.add(rows, other.scores[own])

    def end_at(self, count: int) -> None:
        """Set the number of rows so far, for which a full buffer is rotated: the newest row of a buffer is last."""
        by = count - self.count
        self.columns = np.asfortranarray(np.roll(self.columns, by, axis=1))
        self.y, self.weight, self.scores = (np.roll(one, by, axis=0) for one in (self.y, self.weight, self.scores))
        self.count = count

    def rows(self, max_rows: int | None = None) -> "Sample":
        """Return the rows in the buffer, or the newest of them, in any order; not a copy if they are adjacent."""
        size, filled = len(self.y), min(self.count, len(self.y))
        n = filled if max_rows is None else min(filled, max_rows)
        first = (self.count - n) % size if n < filled else 0
        newest: Any = slice(first, first + n)
        if first + n > size:
            newest = np.arange(first, first + n) % size
        return Sample(self.X[newest].T, self.y[newest], self.weight[newest], self.scores[newest], n)


def pooled_sample(parts: list[Sample], rows: RowCounts) -> Sample:
    """Return the newest rows that parts have added, from the oldest to the newest."""
    sizes = np.array([min(len(part.y), new) for part, new in zip(parts, rows.new.tolist(), strict=True)])
    part, age = pooled(rows.new, int(sizes.sum()), sizes)
    d, k = len(parts[0].columns), max(one.scores.shape[1] for one in parts)
    n = len(part)
    X, scores = np.zeros((n, d), parts[0].columns.dtype), np.zeros((n, k))
    y, weight = np.zeros(n), np.zeros(n)
    for j, one in enumerate(parts):
        own = np.flatnonzero(part == j)
        if len(own):
            places = (one.count - 1 - age[own]) % len(one.y)
            X[own], scores[own] = one.X[places], one.scores[places]
            y[own], weight[own] = one.y[places], one.weight[places]
    return Sample(X.T, y, weight, scores, n)


class Planting(Protocol):
    """The schedule by which a growing forest plants its trees."""

    @property
    def n_trees(self) -> int: ...

    def next_planting(self, planted: int) -> int:
        """Return the row after which the next tree is planted, if ``planted`` trees have been planted."""


@node
class ForestState:
    """Arrays of a fixed forest; ``grown`` (0-d): the number of labelled rows that it was grown from."""

    scaler: Scaler
    nodes: Nodes
    grown: Annotated[Array, "i8 0:BIG"]

    def check_room(self, most: int) -> None:
        """Raise ValueError unless trees have at most ``most`` nodes."""
        if self.nodes.yes.shape[1] > most:
            raise WrongState(f"must have at most {most} nodes in a tree", "nodes")


@node
class Past:
    """For a forest that has forgotten: forgotten rows, trees grown so far, and trees older than a change."""

    since: Count
    turn: Count
    old: Count


@node
class GroveState(ForestState):
    """A growing forest: the newest rows, the seed of its trees (0-d), and ``planted``, the trees grown so far.

    ``fixed``: no trees are grown until parts of a model are merged.
    """

    changes: ClassVar[bool] = True

    sample: Sample
    seed: Annotated[Array, "i8 0:SEED"]
    planted: Count = 0
    past: Past | None = field(default=None, metadata=OPTIONAL)
    fixed: bool | None = field(default=None, metadata=OPTIONAL)

    @property
    def since(self) -> int:
        """Number of forgotten rows, which no longer count."""
        return 0 if self.past is None else self.past.since

    @property
    def turn(self) -> int:
        """Number of trees grown so far; ``planted`` is the number for a forest of the current age."""
        return self.planted if self.past is None else self.past.turn

    def plant(self, k: int, tree: Tree, levels: Array, most: int) -> None:
        """Replace tree k, in room for at most ``most`` nodes; a thread that predicts has the old or the new nodes."""
        nodes = self.nodes.with_room(len(tree.yes), most)
        nodes.plant(k, tree, levels)
        self.nodes = nodes

    def count_tree(self) -> None:
        """Count one more tree."""
        self.planted += 1
        if self.past is not None:
            self.past.turn += 1
            self.past.old = max(0, self.past.old - 1)

    def skip_trees(self, n: int) -> None:
        """Count trees that were due and are not grown."""
        if n > 0:
            self.planted += n
            if self.past is not None:
                self.past.turn += n

    def check_growth(self, trees: Planting, t: int, most: int) -> None:
        """Raise ValueError unless the forest has seen t rows and planted the trees due before the last row."""
        self.check_room(most)
        past, planted, age = self.past, self.planted, t - self.since
        if self.grown or self.sample.count != t:
            raise WrongState(f"must be {t}", "sample.count")
        if past and not (past.since <= t and past.old <= trees.n_trees and past.turn >= planted):
            raise WrongState("must be the past of a forest that has forgotten", "past")
        if self.fixed:
            return
        # A forest that has just forgotten may have grown a tree at exactly its age.
        early = planted and trees.next_planting(planted - 1) >= age + (past is not None)
        if early or trees.next_planting(planted) < age:
            raise WrongState(f"must be the number of trees that {age} rows grow", "planted")
