"""Merging: one state from parts, which are copies of a base that continued on rows of their own.

Whatever the base knew is in every part. So a merge adds what each part has beyond the base, and counts the base once:
a sum becomes base + sum over parts of (part - base).
"""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from pairloom.base.tree import copy, same
from pairloom.base.typing import Array

T = TypeVar("T")


@dataclass(frozen=True)
class RowCounts:
    """Numbers of rows learned: by the base, and by each part, the rows of the base included.

    >>> RowCounts(10, (12, 15)).total, RowCounts(10, (12, 15)).new.tolist()
    (17, [2, 5])
    """

    base: int
    parts: tuple[int, ...]

    @property
    def new(self) -> Array:
        """The number of rows of each part alone."""
        return np.array(self.parts, np.int64) - self.base

    @property
    def total(self) -> int:
        """The number of rows after the merge."""
        return self.base + int(self.new.sum())

    @property
    def shares(self) -> Array:
        """The share of each part in the new rows; 0 without new rows."""
        return self.new / max(1, int(self.new.sum()))


class MergesSums(Protocol):
    """A rule whose statistics can be merged (``merging``)."""

    def merge(self, base: Any, parts: list[Any], rows: RowCounts) -> Any:
        """Return merged statistics; the parts have learned ``rows``."""


def added(base: T, parts: list[T]) -> T:
    """Return a sum, an array or a number, with what each part has added to it.

    >>> float(added(10.0, [12.0, 15.0]))
    17.0
    """
    total: Any = base
    for part in parts:
        total = total + (part - base)  # type: ignore[operator]
    return total  # type: ignore[no-any-return]


def moved(base: Array, parts: list[Array], shares: Array) -> Array:
    """Return base + sum over parts of share (part - base); ``shares`` (parts, ...) broadcast, and sum to 1 at most."""
    total = np.zeros(base.shape)
    for part, share in zip(parts, shares, strict=True):
        total += share * (part.astype(float) - base)
    return np.asarray((base + total).astype(base.dtype))


def joined_moments(base: Any, parts: list[Any]) -> tuple[Array, Array, Array]:
    """Return weight, mean and scatter of a base and of the rows that parts have added, each (weight, mean, scatter).

    The formulas of Chan, Golub and LeVeque: backwards to remove the base from each part, forwards to join the rest.
    """
    weight, mean, scatter = base
    for part in parts:
        weight, mean, scatter = _with(weight, mean, scatter, *_without(part, base))
    return weight, mean, scatter


def _without(part: Any, base: Any) -> tuple[float, Array, Array]:
    """Return the moments of the rows that a part has added."""
    weight = part[0] - base[0]
    if weight <= 0:
        return 0.0, np.zeros_like(part[1]), np.zeros_like(part[2])
    away = part[1] - base[1]
    mean = part[1] + (base[0] / weight) * away
    return weight, mean, part[2] - base[2] - (base[0] * part[0] / weight) * np.outer(away, away)


def _with(
    weight: float, mean: Array, scatter: Array, more: float, its: Array, apart: Array
) -> tuple[float, Array, Array]:
    """Return the moments of two sets of rows."""
    if more == 0:
        return weight, mean, scatter
    total, away = weight + more, its - mean
    return total, mean + (more / total) * away, scatter + apart + (weight * more / total) * np.outer(away, away)


def pooled(new: Array, size: int, kept: Array | None = None) -> tuple[Array, Array]:
    """Return the part and the age (0: its newest) of ``size`` new rows, from the oldest to the newest of the pool.

    Each part gives its newest rows, as many as its share of all ``new`` rows, and parts alternate. ``kept``: the number
    of newest rows that each part has, if not all.

    >>> part, age = pooled(np.array([4, 2]), 3)
    >>> part.tolist(), age.tolist()
    ([0, 1, 0], [1, 0, 0])
    """
    total = int(new.sum())
    if total <= size:
        taken = new.astype(np.int64)
    else:
        exact = new * (size / total)
        taken = np.floor(exact).astype(np.int64)
        most = np.argsort(taken - exact, kind="stable")[: size - int(taken.sum())]
        taken[most] += 1
    taken = taken if kept is None else np.minimum(taken, kept)
    part = np.repeat(np.arange(len(new)), taken)
    order = np.concatenate([np.arange(n) for n in taken.tolist()] or [np.zeros(0, np.int64)]).astype(np.int64)
    place = (order + 0.5) / np.maximum(1, taken[part])
    first = np.lexsort((part, place))
    return part[first], (taken[part] - 1 - order)[first]


def forked(tree: T, number: int, pace: float) -> T:
    """Return a copy of a state for a part: with random numbers of its own, and ``fixed`` where nodes can be.

    A node with the field ``fixed`` keeps its structure while it is set: trees, and the candidates of a race. One with
    the field ``pace`` multiplies its steps by it. The mean of K parts has the progress of one part and a Kth of its
    noise; with K times the step, both are those of one pass over all rows (the linear scaling rule of Goyal et al.,
    Accurate, Large Minibatch SGD, 2017).
    """
    made = copy(tree)
    _fork(made, number, pace)
    return made


def _fork(tree: Any, number: int, pace: float) -> None:
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            if isinstance(value, np.random.Generator):
                tree[key] = _own(value, number)
            else:
                _fork(value, number, pace)
    elif is_dataclass(tree) and not isinstance(tree, type):
        for f in fields(tree):
            value = getattr(tree, f.name, None)
            if f.name == "fixed":
                setattr(tree, f.name, True)
            elif f.name == "pace":
                setattr(tree, f.name, float(pace))
            elif isinstance(value, np.random.Generator):
                setattr(tree, f.name, _own(value, number))
            elif not f.metadata.get("derived"):
                _fork(value, number, pace)


def _own(rng: np.random.Generator, number: int) -> np.random.Generator:
    return np.random.default_rng((int(copy(rng).integers(2**63)), number, 0xF04C))


def merged_generator(rng: np.random.Generator, rows: RowCounts) -> np.random.Generator:
    """Return the generator of a merged state: it depends on that of the base and on the numbers of rows."""
    return np.random.default_rng((int(copy(rng).integers(2**63)), rows.base, *rows.parts))


def check_equal(what: str, base: Any, parts: list[Any], hint: str = "") -> None:
    """Raise ValueError, naming the part, unless all parts have the same tree of values as the base."""
    for k, part in enumerate(parts):
        if not same(base, part):
            raise ValueError(f"part {k} has other {what} than the base{hint}")


GROWN = ", so their weights cannot be merged: let parts continue from base.fork(n), which keeps the structure"
"""The hint for a part whose structure has changed."""


def cannot_merge(who: str, why: str) -> TypeError:
    """Return the error of a learner that cannot be merged."""
    return TypeError(f"{who} cannot be merged: {why}")
