"""Everything that learning changes: arrays, counters and one random generator."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from pairloom.typing import Array

T = TypeVar("T")

RECENT = 4096
"""Test-then-train scores kept."""

STEPS, PAIRS, LOSS, WORST, CUT, SKIPPED, LONG = range(7)
"""The tally: weight of the steps taken, pairs used, weighted sum of the steps' losses, largest instability, steps cut,
steps skipped, steps that moved w far though nothing tells whether they are stable."""


@dataclass
class Batch:
    """Rows in order: x, the learner's codes of the labels, weights above 0, and the query each row belongs to."""

    X: Any
    y: Array
    weight: Array
    query: Array

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: slice | Array) -> "Batch":
        return Batch(self.X[rows], self.y[rows], self.weight[rows], self.query[rows])

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
        rest = (np.concatenate([getattr(b, name) for b in batches]) for name in ("y", "weight", "query"))
        return cls(X, *rest)

    def copy(self) -> "Batch":
        """Rows that the caller cannot change."""
        return Batch(self.X.copy(), self.y.copy(), self.weight.copy(), self.query.copy())


@dataclass
class Recent:
    """The newest scores, each given before its example was learned, with labels and weights: a ring of fixed size."""

    scores: Array
    labels: Array = field(default_factory=lambda: np.zeros(RECENT))
    weights: Array = field(default_factory=lambda: np.zeros(RECENT))
    count: int = 0

    def add(self, scores: Array, batch: Batch) -> None:
        """Keep the newest; the place of a score depends on its row number alone."""
        at, end = 0, len(batch)
        while at < end:
            place = (self.count + at) % RECENT
            n = min(RECENT - place, end - at)
            self.scores[place : place + n] = scores[at : at + n]
            self.labels[place : place + n] = batch.y[at : at + n]
            self.weights[place : place + n] = batch.weight[at : at + n]
            at += n
        self.count += at

    def view(self) -> tuple[Array, Array, Array]:
        """Scores (n, models), labels and weights."""
        return self.scores[: self.count], self.labels[: self.count], self.weights[: self.count]


@dataclass
class LazyModel:
    """w = sigma w_hat and w_bar = a w_hat + b u_hat of each model, ``factors`` being (sigma, a, b, ...) of each.

    The points of the slots are lists of their entries: ``columns`` and ``values`` (slots, room), ``counts`` in use.
    ``stale``: slots whose dense points are out of date.
    """

    w_hat: Array
    u_hat: Array
    factors: Array
    columns: Array
    values: Array
    counts: Array
    stale: Array


@dataclass
class LazyCenters:
    """c_j = factor_j c_hat[:, j], with ``squares`` ||c_j||^2; ``stale``: strata whose dense centres are out of date."""

    c_hat: Array
    factors: Array
    squares: Array
    stale: Array


@dataclass
class Lazy:
    """What the engine for CSR rows keeps between calls, so that the cuts between calls do not show in the bits.

    The arrays of ``State`` are written from these at the end of every call.
    """

    model: LazyModel | None = None
    centers: LazyCenters | None = None


@dataclass
class State:
    """The state of one pass: copy it, store it, and learning goes on as if nothing had happened.

    ``w`` and ``w_bar`` have one row per model of the pairs (one row but for more than two classes). ``totals`` (models,
    2): weight of the rows so far that are not, and that are, of the class of each model; empty unless the weights of
    pairs are sums. ``lazy`` is there once CSR rows were learned without a dense feature map.
    """

    phi: Any
    memory: Any
    rng: np.random.Generator
    w: Array
    w_bar: Array
    recent: Recent
    t: int = 0
    tally: Array = field(default_factory=lambda: np.zeros(7))
    totals: Array = field(default_factory=lambda: np.zeros((0, 2)))
    lazy: Lazy | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> "State":
        """A copy over the same feature map: learning never writes into a map, and it may be most of the memory."""
        memo[id(self.phi)] = self.phi
        return type(self)(**{f.name: deepcopy(getattr(self, f.name), memo) for f in fields(self)})


@dataclass
class Kept:
    """The first rows of the stream, while rules on data are not yet settled."""

    batches: list[Batch] = field(default_factory=list)
    count: int = 0


def cast(tree: T, old: Any, new: Any) -> T:
    """Convert every array of dtype ``old`` in a dataclass of arrays to ``new``; the others are not copied."""
    if np.dtype(old) == np.dtype(new):
        return tree
    if isinstance(tree, np.ndarray):
        return tree.astype(new) if tree.dtype == old and tree.ndim else tree  # type: ignore[return-value]
    if is_dataclass(tree) and not isinstance(tree, type):
        return type(tree)(**{f.name: cast(getattr(tree, f.name), old, new) for f in fields(tree)})
    return tree


def nbytes(tree: Any) -> int:
    """Bytes of all arrays in a dataclass of arrays, each counted once; sparse rows count their three arrays."""
    return sum({id(array): array.nbytes for array in list(arrays(tree))}.values())


def arrays(tree: Any) -> Iterator[Array]:
    """All arrays in a dataclass of arrays; a learner tells by ``held`` what it has besides its state."""
    if isinstance(tree, np.ndarray):
        yield tree
    elif hasattr(tree, "indptr"):
        yield from (tree.data, tree.indices, tree.indptr)
    elif isinstance(tree, list) or hasattr(tree, "held"):
        for part in getattr(tree, "held", tree):
            yield from arrays(part)
    elif is_dataclass(tree):
        for f in fields(tree):
            yield from arrays(getattr(tree, f.name, None))
