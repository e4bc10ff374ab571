"""The state of gradient boosting on a stream: the newest rows, their bins, and generations of trees."""

from dataclasses import field
from typing import Annotated, Any, Self

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.spec import WEIGHT, Count
from pairloom.base.tree import DERIVED, OPTIONAL, node
from pairloom.base.typing import Array
from pairloom.engines.bins import N_CUTS, bin_columns
from pairloom.engines.boosting import TreeArrays

NOWHERE = -1
"""The slot of no row."""


SIZE = 3
"""Position in ``Queues``."""

Queues = tuple[Array, Array, Array, Array]
"""The rows of each class from the oldest to the newest: the next row of the same class (slots,); the oldest and newest
row and the number of rows of each class."""


@node
class Ring:
    """The newest rows, ``count`` of them, with labels, weights and row numbers.

    The oldest row of a class with more than ``quota`` rows is replaced: rare classes keep their rows for longer.
    ``queues`` follow from labels and row numbers (:meth:`index`).
    """

    X: Annotated[Array, "X n d"]
    y: Annotated[Array, "label n"]
    weight: Annotated[Array, "f8 n 0:MASS"]
    row: Annotated[Array, "i8 n 0:BIG"]
    count: Count = 0
    queues: Queues = field(default=None, repr=False, metadata=DERIVED)  # type: ignore[assignment]

    @classmethod
    def empty(cls, size: int, n_features: int, dtype: str) -> Self:
        """Return a ring with room for ``size`` rows."""
        return cls(np.zeros((size, n_features), dtype), np.zeros(size), np.zeros(size), np.zeros(size, np.int64))

    def check(self) -> None:
        if self.count > len(self.y):
            raise ValueError("must have room for the rows that it counts")

    def resized(self, size: int) -> "Ring":
        """Return a ring with room for more rows."""
        made = Ring.empty(size, self.X.shape[1], self.X.dtype.str)
        n = made.count = self.count
        for name in ("X", "y", "weight", "row"):
            getattr(made, name)[:n] = getattr(self, name)[:n]
        return made

    def newest(self, n: int) -> "Ring":
        """Return a ring of the newest n rows, in order, without further room."""
        order = np.argsort(self.row[: self.count])[max(0, self.count - n) :]
        made = Ring.empty(len(order), self.X.shape[1], self.X.dtype.str)
        made.count = len(order)
        for name in ("X", "y", "weight", "row"):
            getattr(made, name)[:] = getattr(self, name)[order]
        return made

    def add(self, X: Array, y: Array, weight: Array, first: int) -> Array:
        """Add rows with the row numbers ``first``, ``first`` + 1, ..., and return their slots."""
        slots, quota = np.empty(len(y), np.int64), len(self.y) // (2 * len(self.class_sizes))
        self.count = assign_slots(y.astype(np.int64), first, self.count, quota, self.row, self.queues, slots)
        self.X[slots], self.y[slots], self.weight[slots] = (
            X,
            y,
            weight,
        )  # of rows with the same slot, the last one stays
        return slots

    def index(self, n_classes: int) -> None:
        """Compute the queues."""
        n = min(self.count, len(self.y))
        self.queues = queues_of(self.y[:n], self.row[:n], n_classes, len(self.y))

    @property
    def class_sizes(self) -> Array:
        """The number of rows of each class."""
        return self.queues[SIZE]

    @property
    def class_weights(self) -> Array:
        """The weight of the rows of each class."""
        n = self.count
        return np.bincount(self.y[:n].astype(np.int64), self.weight[:n], minlength=len(self.class_sizes))


def queues_of(y: Array, row: Array, n_classes: int, size: int) -> Queues:
    """Return the queues of the rows in a ring of ``size`` slots."""
    after = np.full(size, NOWHERE)
    oldest, newest, count = (np.full(n_classes, start) for start in (NOWHERE, NOWHERE, 0))
    for k in range(n_classes):
        own = np.flatnonzero(y == k)
        own = own[np.argsort(row[own])]
        if len(own):
            after[own[:-1]] = own[1:]
            oldest[k], newest[k], count[k] = own[0], own[-1], len(own)
    return after, oldest, newest, count


@compiled
def assign_slots(
    y: Array, first: int, count: int, quota: int, row: Array, queues: Queues, slots: Array
) -> int:  # fmt: skip
    """Fill ``slots`` with those of new rows, update queues and row numbers, and return the number of slots in use."""
    after, oldest, newest, size = queues
    for i in range(len(y)):
        slot, k = count, y[i]
        if count < len(row):
            count += 1
        else:
            slot = pop_oldest(quota, row, after, oldest, size)
        if size[k]:
            after[newest[k]] = slot
        else:
            oldest[k] = slot
        newest[k] = slots[i] = slot
        size[k] += 1
        row[slot] = first + i
    return count


@compiled
def pop_oldest(quota: int, row: Array, after: Array, oldest: Array, size: Array) -> int:
    """Remove the oldest row of the classes with more than ``quota`` rows, and return its slot."""
    k = -1
    for c in range(len(size)):
        if size[c] > quota and (k < 0 or row[oldest[c]] < row[oldest[k]]):
            k = c
    slot: int = oldest[k]
    oldest[k] = after[slot]
    size[k] -= 1
    return slot


@node
class Bins:
    """The cuts between the bins of each column, padded with infinity, and whether the column is a category."""

    cuts: Annotated[Array, f"X d {N_CUTS}"]
    category: Annotated[Array, "b1 d"]


@node
class Trees:
    """The trees of a generation, ``grown`` of them for each target; other fields as in ``TreeArrays``."""

    columns: Annotated[Array, "i4 v _T _N -1:d"]
    masks: Annotated[Array, "i8 v _T _N"]
    children: Annotated[Array, "i4 v _T _N 0:_N"]
    values: Annotated[Array, "f8 v _T _N finite"]
    squares: Annotated[Array, "f8 v _T _N 1:LATE"]
    grown: Annotated[Array, "i8 v 0:_T+1"]

    @classmethod
    def empty(cls, n_targets: int, n_trees: int, max_leaves: int) -> Self:
        """Return room for trees."""
        shape = (n_targets, n_trees, 2 * max_leaves - 1)
        return cls(
            np.full(shape, -1, np.int32), np.zeros(shape, np.int64), np.zeros(shape, np.int32), np.zeros(shape),
            np.ones(shape), np.zeros(n_targets, np.int64),
        )  # fmt: skip

    def check(self) -> None:
        here = np.arange(self.columns.shape[2])
        if not ((self.columns < 0) | ((self.children > here) & (self.children + 1 < len(here)))).all():
            raise ValueError("must have every node after its parent")

    @property
    def arrays(self) -> TreeArrays:
        """The arrays for compiled loops, a plain tuple: Numba unpacks named tuples slowly."""
        return self.columns, self.masks, self.children, self.values, self.squares

    def cut(self, grown: Array) -> "Trees":
        """Return the first ``grown`` trees of each target, with room for at least one."""
        n = max(1, int(grown.max(initial=0)))
        nodes = 1 + int(np.where(self.columns[:, :n] >= 0, self.children[:, :n] + 1, 0).max(initial=0))
        columns, masks, children, values, squares = (array[:, :n, :nodes].copy() for array in self.arrays)
        return Trees(columns, masks, children, values, squares, grown.copy())


@node
class Generation:
    """Trees that predict: the score is ``base`` plus the values of their leaves.

    ``bins``: the index of their bins in ``BoostingState.bins``; ``rows``: rows in the ring when the first tree was
    grown; ``unit``: the mean weight of these rows.
    """

    trees: Trees
    base: Annotated[Array, "f8 v finite"]
    bins: Count
    rows: Count
    unit: Annotated[float, WEIGHT]


@node
class Curve:
    """By how much each block of trees reduced the loss of rows that the trees had not seen, and their weight."""

    max_leaves: Count
    drops: Annotated[Array, "f8 v B"]
    mass: Annotated[Array, "f8 v B"]


@node
class Growing:
    """A generation while its trees grow, ``done`` of ``goal`` for each target; ``binned``: columns with new bins.

    ``start``: the age at which it started; ``n_columns``: columns tried for each tree; ``scores``: of the rows in the
    ring by the trees so far; ``factors``: the weight of positive rows in ``curve``.
    """

    generation: Generation
    curve: Curve
    start: Count
    goal: Count
    done: Count
    binned: Count
    n_columns: Count
    scores: Annotated[Array, "f8 n v finite"]
    factors: Annotated[Array, "f8 v 0:LATE"]


@node
class BoostingState:
    """The state after ``t`` rows, of which ``age`` are not forgotten.

    ``bins``: those of the generations, and the newest. ``generations``: at most two, whose mean predicts. ``end``: the
    age at which the current period ends; ``fitted``: the age at which the newest bins were fitted, 0 without bins.
    ``goal`` and ``max_leaves`` of the next generation follow from the ``curve`` of the last. ``came``: weight of the
    rows so far by class. ``fixed``: no trees are grown until parts of a model are merged. ``ring_bins`` (d, slots): the
    newest bins of the rows in the ring.
    """

    ring: Ring
    rng: np.random.Generator
    bins: list[Bins]
    generations: list[Generation]
    growing: Growing | None
    curve: Curve | None
    came: Annotated[Array, "f8 C 0:MASS"]
    goal: Count
    max_leaves: Count
    end: Count
    t: Count = 0
    age: Count = 0
    fitted: Count = 0
    fixed: bool | None = field(default=None, metadata=OPTIONAL)
    ring_bins: Array = field(default=None, repr=False, metadata=DERIVED)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        self.replace_ring(self.ring)

    def __setstate__(self, fields: dict[str, Any]) -> None:
        vars(self).update(fields)
        self.__post_init__()

    def make_room(self, size: int) -> None:
        """Make room for ``size`` rows in the ring; all rows keep their slots and bins."""
        d, n = self.ring_bins.shape
        ring, bins = self.ring.resized(size), np.zeros((d, size), np.uint8)
        ring.index(len(self.came))
        bins[:, :n] = self.ring_bins
        self.ring, self.ring_bins = ring, bins

    def replace_ring(self, ring: Ring) -> None:
        """Replace the ring, and compute its queues and bins."""
        self.ring = ring
        ring.index(len(self.came))
        n, d = ring.X.shape
        self.ring_bins = np.zeros((d, n), np.uint8)
        if self.bins:
            bins = self.bins[-1]
            bin_columns(ring.X, min(ring.count, n), 0, d, bins.category, bins.cuts, self.ring_bins)
