"""y, y': which pairs count, and which way round each should be ranked."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairloom.compiled import compiled
from pairloom.typing import Array


@dataclass(frozen=True)
class Pairs(ABC):
    """The sign a of a pair: its margin is a <w, phi(x) - phi(x')>; 0 means that the pair does not count."""

    code: ClassVar[int]

    @abstractmethod
    def sign(self, y: float, partners: Array) -> Array:
        """Signs of the pairs of an example labelled ``y`` with partners labelled ``partners``."""


@dataclass(frozen=True)
class OppositeClass(Pairs):
    """Labels -1 and +1; a pair counts when its labels differ, and the positive should score higher (AUC).

    >>> OppositeClass().sign(+1.0, np.array([-1.0, +1.0]))
    array([1., 0.])
    """

    code = 0

    def sign(self, y: float, partners: Array) -> Array:
        return np.where(partners == y, 0.0, y)


@compiled
def pair_sign(code: int, y: float, partner: float) -> float:
    """The sign of one pair. Only one code so far: opposite class."""
    return 0.0 if partner == y else y
