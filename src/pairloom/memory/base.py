"""The contract of a memory.

What a memory keeps never depends on the model. So it is told twice: ``observe`` is the specification, one example at
a time, in NumPy; ``plan`` runs the same rule over a block of rows ahead of the model and writes down what happens to
which slot, so that one compiled loop serves every memory.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from pairloom.base.checks import check_choice
from pairloom.base.csr import Rows
from pairloom.base.tree import Rounded, node
from pairloom.base.typing import Array

Space = Literal["features", "input"]
Normalization = Literal["class", "history", "sum"]
By = Literal["class", "joint"]


@node
class Slots:
    """The buffer: ``points`` (S, D), their ``labels`` and ``queries``, and the ``mass`` each stands for (0: empty).

    ``rows`` (S, d): the x of each point phi(x), for a map that grows.
    """

    points: Rounded
    labels: Array
    queries: Array
    mass: Array
    rows: Rounded | None = None

    @classmethod
    def empty(cls, count: int, dim: int, dtype: np.dtype) -> "Slots":
        """``count`` empty slots."""
        return cls(np.zeros((count, dim), dtype), np.zeros(count), np.zeros(count, np.int64), np.zeros(count))

    def write(self, slot: int, example: "Example", blend: float, mass: float) -> None:
        """Move the point by ``blend`` towards the example (1: replace it; 0: only the mass changes)."""
        if blend == 1:
            self.points[slot] = example.z
        elif blend > 0:
            self.points[slot] += blend * (example.z - self.points[slot])
        if blend > 0:
            self.labels[slot] = example.y
            self.queries[slot] = example.query
            if self.rows is not None:
                self.rows[slot] = example.x
        self.mass[slot] = mass

    def keep_rows(self, plan: "Plan", X: Any) -> None:
        """Write ``rows``, if there are any, as a plan writes points by rows X, dense or CSR; blends are 0 or 1."""
        if self.rows is None:
            return
        taken = np.flatnonzero(plan.blend > 0)[::-1]
        # Of the events of a slot, newest first, the first is the one that stays.
        slot, newest = np.unique(plan.slot[taken], return_index=True)
        source = np.searchsorted(plan.start, taken[newest], side="right") - 1
        rows = X[source]
        self.rows[slot] = rows.toarray() if hasattr(rows, "toarray") else rows


@dataclass(frozen=True)
class Example:
    """One row: z = phi(x), the point u by which it is clustered, its label, weight and query, random numbers, and x."""

    z: Array
    u: Array
    y: float
    weight: float
    query: int
    draws: Array
    x: Array | None = None


@node
class MemoryState:
    """What every memory keeps; a memory with more to keep extends it."""

    slots: Slots


class Plan(NamedTuple):
    """What a block of rows does to the slots.

    Row i writes the events ``start[i]:start[i + 1]``, each a (slot, blend, mass) for ``Slots.write``, in order.
    """

    start: Array
    slot: Array
    blend: Array
    mass: Array


@dataclass(frozen=True)
class Memory(ABC):
    """A rule that keeps a bounded set of past examples.

    The weight of partner j is p_j = mass_j / total, where total is the mass of all partners (``weighting`` "class")
    or of all slots ("history"). "sum" is "class" times the weight of all rows so far that would make a pair: the
    partners then stand for a sum over the history, not a mean.
    """

    grows: ClassVar[bool] = False
    """Whether it keeps more and more, up to a limit, and refuses the next row."""

    @property
    def weighting(self) -> Normalization:
        """What weights are relative to."""
        return "class"

    @property
    def joint(self) -> bool:
        """Whether classes share slots. If not, there are slots of its own for each class."""
        return False

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
        """Space of the points ``u``: u = phi(x), or u = x."""
        return "features"

    @property
    def holds_rows(self) -> bool:
        """Whether each point is phi of one past row, and nothing else that is kept lives in the feature space."""
        return True

    @property
    def blends(self) -> bool:
        """Whether a point may be a mean of rows."""
        return False

    # Not abstract: doing nothing is right for every memory of fixed size.
    def check_room(self, state: MemoryState | None, n: int) -> None:  # noqa: B027
        """Raise ValueError unless ``n`` more rows can be taken in; only memories that grow ever do."""

    @property
    def forgets(self) -> bool:
        """Whether it weighs rows by how many there were, so that there is something to ``forget``."""
        return False

    # Not abstract: the newest rows are the newest, whatever was before them.
    def forget(self, state: MemoryState, keep: float) -> None:  # noqa: B027
        """Let the rows so far count ``keep`` times as much."""

    @abstractmethod
    def start(self, dim: int, u_dim: int, n_classes: int, dtype: np.dtype, points: Array | None) -> MemoryState:
        """An empty memory for mapped examples of length ``dim``, clustered by points of length ``u_dim``.

        ``points``: the first rows' points u, for a memory whose rule speaks of data.
        """

    def start_csr(self, dim: int, u_dim: int, n_classes: int, dtype: np.dtype, points: Array | None) -> MemoryState:
        """``start`` for a map whose points are always CSR: they have no dense form, and take no room here."""
        return self.start(0, u_dim, n_classes, dtype, points)

    @abstractmethod
    def observe(self, state: MemoryState, example: Example) -> None:
        """Take in one example, after the model has learned from it."""

    @abstractmethod
    def plan(self, state: MemoryState, U: Any, y: Array, weight: Array, draws: Array) -> Plan:
        """``observe`` for the rows of a block; changes everything in ``state`` but the slots."""

    def plan_csr(self, state: MemoryState, U: Rows, y: Array, weight: Array, draws: Array, center: Array) -> Plan:
        """``plan`` for CSR points, from which dense rows differ by ``center``; most memories do not look at points."""
        return self.plan(state, U, y, weight, draws)

    # Not abstract: most memories keep nothing that CSR points could leave behind.
    def settle(self, state: MemoryState, center: Array) -> None:  # noqa: B027
        """Bring dense arrays up to date after ``plan_csr``."""


@dataclass(frozen=True)
class Grouped(Memory):
    """A memory of each "class" for itself, or one for all ("joint").

    ``normalization`` None: weights relative to the paired class, or to the whole history if joint.
    """

    by: By = field(default="class", kw_only=True)
    normalization: Normalization | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_choice("by", self.by, By)
        if self.normalization is not None:
            check_choice("normalization", self.normalization, Normalization)
        if self.by == "class" and self.normalization == "history":
            raise ValueError(
                "a memory of each class does not know the classes' shares of the history: use by='joint', or "
                "normalization='class' or 'sum'"
            )

    @property
    def joint(self) -> bool:
        return self.by == "joint"

    @property
    def weighting(self) -> Normalization:
        return self.normalization or ("history" if self.joint else "class")


def chosen_memory(memory: Memory | None, default: Memory) -> Memory:
    """``memory``, if there is one; ValueError unless it is a memory."""
    if memory is not None and not isinstance(memory, Memory):
        raise ValueError(f"memory must be a memory, such as Window(64), or None; got {memory!r}")
    return default if memory is None else memory
