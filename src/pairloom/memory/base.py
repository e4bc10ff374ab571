"""The contract of a memory.

What a memory keeps never depends on the model. So it is told twice: ``observe`` is the specification, one example at a
time, in NumPy; ``plan`` runs the same rule over a block of rows ahead of the model and writes down what happens
to which slot, so that one compiled loop serves every memory.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pairloom.typing import Array

Space = Literal["features", "input"]


@dataclass
class Slots:
    """The buffer: ``points`` (S, D), their ``labels``, and the ``mass`` of history each stands for (0: empty)."""

    points: Array
    labels: Array
    mass: Array

    @classmethod
    def empty(cls, count: int, dim: int, dtype: np.dtype) -> "Slots":
        """``count`` empty slots."""
        return cls(np.zeros((count, dim), dtype), np.zeros(count), np.zeros(count))

    def write(self, slot: int, z: Array, y: float, blend: float, mass: float) -> None:
        """Move the point by ``blend`` towards z (1: replace it; 0: only the mass changes)."""
        if blend == 1:
            self.points[slot] = z
        elif blend > 0:
            self.points[slot] += blend * (z - self.points[slot])
        if blend > 0:
            self.labels[slot] = y
        self.mass[slot] = mass


@dataclass
class MemoryState:
    """What every memory keeps; a memory with more to keep extends it."""

    slots: Slots


@dataclass
class Plan:
    """What a block of rows does to the slots.

    ``total[i]``: the mass that the weights of row i's partners are divided by; 0: row i has no partner and
    makes no step. Row i then writes the events ``start[i]:start[i + 1]``, each a (slot, blend, mass) for
    ``Slots.write``.
    """

    total: Array
    start: Array
    slot: Array
    blend: Array
    mass: Array


@dataclass(frozen=True)
class Memory(ABC):
    """A rule that keeps a bounded set of past examples with weights p_j = mass_j / total."""

    @property
    def draws(self) -> int:
        """Uniform random numbers used up by each example."""
        return 0

    @property
    def needs_data(self) -> bool:
        """Whether ``start`` looks at points."""
        return False

    @property
    def space(self) -> Space:
        """Space of the points ``u`` given to ``start``, ``observe`` and ``plan``: u = phi(x), or u = x."""
        return "features"

    @abstractmethod
    def start(self, dim: int, u_dim: int, dtype: np.dtype, points: Array | None) -> MemoryState:
        """An empty memory for mapped examples of length ``dim``, clustered by points of length ``u_dim``.

        ``points``: the first rows' points u, for a memory whose rule speaks of data.
        """

    @abstractmethod
    def total(self, state: MemoryState, y: float, t: int) -> float:
        """The mass that weights are divided by for example number ``t`` labelled ``y``; 0: no partner, no step."""

    @abstractmethod
    def observe(self, state: MemoryState, z: Array, u: Array, y: float, draws: Array) -> None:
        """Take in one example, after the model has learned from it."""

    @abstractmethod
    def plan(self, state: MemoryState, U: Array, y: Array, t: int, draws: Array) -> Plan:
        """``total`` and ``observe`` for rows t, t + 1, ...; changes everything in ``state`` but the slots."""


def group_of(y: float) -> int:
    """The index of a class: 0 for label -1, 1 for label +1."""
    return int(y > 0)
