"""The weighted sum of several linear models over one feature map, as one loop over dense rows."""

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

import numpy as np

from pairloom.base.tree import node
from pairloom.base.typing import Array


class Share(NamedTuple):
    """The first fields of a :class:`Member`."""

    name: str
    weight: float
    offset: Array


@node
class Member(ABC):
    """A candidate that only predicts, in arrays of its own.

    ``weight``: of the candidate in the mixture; ``offset`` (classes,): the part of its score that no row changes.
    """

    name: str
    weight: float
    offset: Array

    @abstractmethod
    def add(self, X: Array, out: Array) -> None:
        """Add the rest of its score of dense rows to ``out`` (rows, classes)."""


class LinearSum(Protocol):
    """The sum over models m of slopes_m <w_m, phi(x)>, in arrays that it shares with a map and its models."""

    def add(self, X: Array, out: Array) -> None:
        """Add the sum for each of the dense rows to ``out`` (rows, classes)."""

    def frozen(self, share: Share) -> Member:
        """The same in arrays of its own, and nothing else."""


def combined(w: Array, slopes: Array) -> Array:
    """One weight for each feature and class (D, classes), in place of those of several models (models, classes, D)."""
    return np.asarray(np.einsum("rk,rkd->dk", slopes, w.astype(float)))
