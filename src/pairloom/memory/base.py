"""The base classes of memories.

The content of a memory never depends on the model. So its rule is written twice: ``observe`` is the specification, one
example at a time, in NumPy; ``plan`` applies the same rule to a block of rows before the model learns them and returns
the changes of the slots, so that all memories share one compiled loop.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from pairloom.base.capabilities import MayBeLimited
from pairloom.base.checks import check_choice
from pairloom.base.csr import CSRRows
from pairloom.base.spec import StateSpec, return_type
from pairloom.base.typing import Array
from pairloom.memory.merging import MergesSlots
from pairloom.memory.slots import Example, MemoryState, Plan

Space = Literal["features", "input"]
Normalization = Literal["class", "history", "sum"]
By = Literal["class", "joint"]


@dataclass(frozen=True)
class Memory(MayBeLimited, ABC):
    """A rule that keeps a bounded set of past examples.

    Optional features are capabilities: properties that are None by default; a memory with the capability returns
    itself.

    The weight of partner j is p_j = mass_j / total, where total is the mass of all partners (``weighting`` "class")
    or of all slots ("history"). "sum" is "class" times the weight of all past rows that form a pair with the example:
    the partners then estimate a sum over the history, not a mean.
    """

    @property
    def weighting(self) -> Normalization:
        """Normalization of the weights."""
        return "class"

    @property
    def joint(self) -> bool:
        """Whether classes share slots. If not, each class has its own."""
        return False

    @property
    def draws(self) -> int:
        """Number of uniform random numbers per example."""
        return 0

    @property
    def needs_data(self) -> bool:
        """Whether ``start`` uses points."""
        return False

    @property
    def space(self) -> Space:
        """The space of the points ``u``: u = phi(x), or u = x."""
        return "features"

    @property
    def holds_rows(self) -> bool:
        """Whether each point is phi of one past row, and nothing else in the state is in the feature space."""
        return True

    @property
    def blends(self) -> bool:
        """Whether a point may be a mean of rows."""
        return False

    @abstractmethod
    def start(self, dim: int, u_dim: int, n_classes: int, dtype: np.dtype, points: Array | None) -> MemoryState:
        """Return an empty memory for examples with ``dim`` features, clustered by points with ``u_dim`` coordinates.

        ``points``: the points u of the first rows, for a memory that depends on data.
        """

    def state_spec(self, n_classes: int) -> StateSpec:
        """Return the specification of the state for ``n_classes`` classes; ``S`` is the number of slots."""
        return StateSpec(return_type(type(self).start))

    @abstractmethod
    def observe(self, state: Any, example: Example) -> None:
        """Add one example, after the model has learned it."""

    @abstractmethod
    def plan(self, state: Any, U: Any, y: Array, weight: Array, draws: Array) -> Plan:
        """Apply ``observe`` to the rows of a block; update everything in ``state`` except the slots."""

    @property
    def csr(self) -> "CSRMemory | None":
        """The memory, if it uses points, and supports CSR points."""
        return None

    @property
    def merging(self) -> MergesSlots | None:
        """The memory, if those of several parts can be merged."""
        return None


class CSRMemory(Memory):
    """A memory that uses points, and supports CSR points at a cost linear in their entries.

    A memory that does not use points does not need this class: engines pass points of any kind to ``plan``.
    """

    @property
    def csr(self) -> "CSRMemory | None":
        return self

    @abstractmethod
    def start_csr(self, u_dim: int, n_classes: int, dtype: np.dtype, points: Array | None) -> MemoryState:
        """Return an empty memory, as ``start`` does, for a map whose points are always CSR and not stored here."""

    @abstractmethod
    def plan_csr(self, state: Any, U: CSRRows, y: Array, weight: Array, draws: Array, center: Array) -> Plan:
        """Plan CSR points, as ``plan`` does; dense rows are CSR rows minus ``center``."""

    @abstractmethod
    def settle(self, state: Any, center: Array) -> None:
        """Update dense arrays after ``plan_csr``."""


@dataclass(frozen=True)
class Grouped(Memory):
    """A memory with one buffer per "class", or one for all classes ("joint").

    If ``normalization`` is None, weights are relative to the paired class, or to the whole history if joint.
    """

    by: By = field(default="class", kw_only=True)
    normalization: Normalization | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_choice("by", self.by, By)
        if self.normalization is not None:
            check_choice("normalization", self.normalization, Normalization)
        if self.by == "class" and self.normalization == "history":
            raise ValueError(
                "a memory per class does not know the classes' shares of the history: use by='joint', or "
                "normalization='class' or 'sum'"
            )

    @property
    def joint(self) -> bool:
        return self.by == "joint"

    @property
    def weighting(self) -> Normalization:
        return self.normalization or ("history" if self.joint else "class")

    @property
    def forgetting(self) -> "Grouped":
        return self

    @abstractmethod
    def forget(self, state: Any, keep: float) -> None:
        """Multiply the weight of past rows by ``keep`` (:class:`~pairloom.base.capabilities.Forgets`)."""


def grouped_spec(memory: Memory, n_classes: int, size: int) -> StateSpec:
    """Return the ``state_spec`` of a memory with ``size`` slots for each class, or for all."""
    g = 1 if memory.joint else n_classes
    return StateSpec(return_type(type(memory).start), {"g": g, "s": size, "S": g * size})


def groups_of(memory: Memory, y: Array) -> Array:
    """Return the group of each row: its class, or 0 if classes share slots."""
    return np.zeros(len(y), np.int64) if memory.joint else y.astype(np.int64)


def chosen_memory(memory: Memory | None, default: Memory) -> Memory:
    """Return ``memory``, or ``default`` if it is None; raise ValueError unless it is a memory."""
    if memory is not None and not isinstance(memory, Memory):
        raise ValueError(f"memory must be a memory, such as Window(64), or None; got {memory!r}")
    return default if memory is None else memory
