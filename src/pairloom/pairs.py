"""Pairs of labels y, y': which pairs are used, and how their scores should differ.

The margin of a pair is a <w, phi(x) - phi(x')> + b. Its sign a and offset b are written twice: in a NumPy class
(the specification) and as one line of the compiled ``pair_sign`` and ``pair_offset``.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np

from pairloom.base.checks import check_count
from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.base.validation import check_unmasked

__all__ = ["ClassDifference", "Difference", "OppositeClass", "Order", "Pairs"]

NO_QUERY = int(np.iinfo(np.int64).min)
"""The query of rows without one."""


@dataclass(frozen=True)
class Pairs(ABC):
    """A rule that makes pairs from two labels."""

    code: ClassVar[int]
    opposite: ClassVar[bool] = False
    """Whether exactly the pairs of different classes count."""
    exact: ClassVar[bool] = False
    """Whether score differences have a target value: the margin is then an error, ideally 0."""

    @property
    def is_compiled(self) -> bool:
        """Whether compiled engines support this rule: built-in rules, but not their subclasses, which may differ."""
        return type(self) in BUILT_IN

    @property
    def targets(self) -> Array:
        """The class of each weight vector, if there are more than two classes; a single entry otherwise."""
        return np.zeros(1)

    @property
    def n_groups(self) -> int:
        """Number of classes that a memory can distinguish; 0 if labels are not classes."""
        return 0

    @abstractmethod
    def encode(self, y: Array) -> Array:
        """Return labels as float64 codes; raise ValueError for invalid labels."""

    @abstractmethod
    def sign(self, y: float, partners: Array, target: float) -> Array:
        """Return a for the pairs of an example labelled ``y`` with its partners; 0: the pair does not count."""

    def offset(self, y: float, partners: Array, target: float) -> Array:
        """Return b."""
        return np.zeros(len(partners))


@dataclass(frozen=True)
class OppositeClass(Pairs):
    """Pairs of different classes; the positive should score higher (AUC).

    With more than two classes there is one weight vector for each class against the rest, over one memory.

    Parameters
    ----------
    n_classes : 2 for labels -1 or 0 and +1; K > 2 for labels 0 ... K - 1.

    >>> OppositeClass().sign(1.0, np.array([0.0, 1.0]), target=1.0)
    array([1., 0.])
    """

    n_classes: int = 2

    code = 0
    opposite = True

    def __post_init__(self) -> None:
        check_count("n_classes", self.n_classes)

    @property
    def targets(self) -> Array:
        return np.array([1.0]) if self.n_classes == 2 else np.arange(self.n_classes, dtype=float)

    @property
    def n_groups(self) -> int:
        return self.n_classes

    def encode(self, y: Array) -> Array:
        known = (-1, 0, 1) if self.n_classes == 2 else range(self.n_classes)
        invalid = np.flatnonzero(~np.isin(y, known))
        if invalid.size:
            raise ValueError(f"label {y[invalid[0]]} at row {invalid[0]} is not one of {', '.join(map(str, known))}")
        return np.asarray(y > 0 if self.n_classes == 2 else y, dtype=float)

    def sign(self, y: float, partners: Array, target: float) -> Array:
        return np.asarray(float(y == target) - (partners == target))

    def signs(self, y: Array) -> Array:
        """Return +1 for the class of a model, -1 for the rest: (n, models)."""
        return np.where(y[:, None] == self.targets, 1.0, -1.0)


@dataclass(frozen=True)
class ClassDifference(OppositeClass):
    """All pairs, even within a class; scores should differ like the targets t: +1 for the class of a model, else -1.

    a = 1 and b = -(t - t'), so that the margin is the error of the difference.

    >>> ClassDifference().offset(1.0, np.array([0.0, 1.0]), target=1.0)
    array([-2., -0.])
    """

    code = 3
    opposite = False
    exact = True

    def sign(self, y: float, partners: Array, target: float) -> Array:
        return np.ones(len(partners))

    def offset(self, y: float, partners: Array, target: float) -> Array:
        return -2.0 * super().sign(y, partners, target)


@dataclass(frozen=True)
class Order(Pairs):
    """Pairs of different labels, graded or real; the larger label should score higher.

    >>> Order().sign(2.0, np.array([1.0, 2.0, 3.5]), target=0.0)
    array([ 1.,  0., -1.])
    """

    code = 1

    def encode(self, y: Array) -> Array:
        return check_real(y)

    def sign(self, y: float, partners: Array, target: float) -> Array:
        return np.sign(y - partners)


@dataclass(frozen=True)
class Difference(Pairs):
    """All pairs; the scores should differ like the labels: with the square loss, (delta - (y - y'))^2.

    a = 1 and b = -(y - y'), so that the margin is the error of the difference.

    >>> Difference().offset(3.0, np.array([1.0]), target=0.0)
    array([-2.])
    """

    code = 2
    exact = True

    def encode(self, y: Array) -> Array:
        return check_real(y)

    def sign(self, y: float, partners: Array, target: float) -> Array:
        return np.ones(len(partners))

    def offset(self, y: float, partners: Array, target: float) -> Array:
        return -(y - partners)


BUILT_IN = frozenset({OppositeClass, ClassDifference, Order, Difference})
"""Rules in the compiled functions."""


def check_real(y: Array) -> Array:
    """Return float64 labels; raise ValueError naming the first row that is not finite."""
    invalid = np.flatnonzero(~np.isfinite(y))
    if invalid.size:
        raise ValueError(f"Input y contains NaN or infinity at row {invalid[0]}: {y[invalid[0]]}")
    return y.astype(float)


@compiled
def pair_sign(code: int, y: float, partner: float, target: float) -> float:
    """Return a of one pair, for the rule with this code."""
    if code == 0:
        return (1.0 if y == target else 0.0) - (1.0 if partner == target else 0.0)
    if code == 1:
        return (1.0 if y > partner else 0.0) - (1.0 if y < partner else 0.0)
    return 1.0


@compiled
def pair_offset(code: int, y: float, partner: float, target: float) -> float:
    """Return b of one pair, for the rule with this code."""
    if code == 2:
        return partner - y
    return -2.0 * pair_sign(0, y, partner, target) if code == 3 else 0.0


def query_codes(groups: Any, n: int) -> Array:
    """Return an integer code for each row's query, the same in every call and process.

    An integer is its own code and text has a 64-bit hash, so that a stream may have any number of queries.

    >>> query_codes([7, 7, 9], 3)
    array([7, 7, 9])
    """
    if groups is None:
        return np.full(n, NO_QUERY)
    check_unmasked("groups", groups)
    names = np.asarray(groups)
    if names.shape != (n,):
        raise ValueError(f"groups has {len(names) if names.ndim else 1} entries, but X has {n} rows")
    if names.dtype.kind in "biu":
        return np.asarray(names, dtype=np.int64)
    known: dict[Any, int] = {}
    for row, name in enumerate(names.tolist()):
        try:
            if name not in known:
                known[name] = _query_code(name)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"groups must be integers or text; got {name!r} at row {row}") from None
    return np.array([known[name] for name in names.tolist()], np.int64)


def query_code(group: Any) -> Array:
    """Return the ``query_codes`` of one row; fast for an integer."""
    if group is None:
        return np.array([NO_QUERY])
    if type(group) in (int, np.int64) and abs(group) < 2**63:
        return np.array([group])
    return query_codes([group], 1)


def _query_code(name: Any) -> int:
    """Return the code of one query's name; raise TypeError, ValueError or OverflowError for other names."""
    if isinstance(name, str):
        return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), signed=True)
    if isinstance(name, (int, float, np.integer, np.floating)) and int(name) == name:
        return int(np.array(int(name), dtype=np.int64))
    raise TypeError
