"""The buffer of a memory, and plans for its updates by a block of rows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.csr import is_sparse
from pairloom.base.tree import node
from pairloom.base.typing import Array

if TYPE_CHECKING:
    from pairloom.memory.base import Memory


@dataclass(frozen=True)
class Example:
    """One row: z = phi(x), the point u for clustering, label, weight, query, random numbers, and x."""

    z: Array
    u: Array
    y: float
    weight: float
    query: int
    draws: Array
    x: Array | None = None


class Plan(NamedTuple):
    """The updates of the slots by a block of rows.

    Row i has the events ``start[i]:start[i + 1]``, each a (slot, blend, mass) for ``Slots.write``, in order.
    """

    start: Array
    slot: Array
    blend: Array
    mass: Array


@node
class Slots:
    """The buffer: ``points`` (S, D), their ``labels``, ``queries`` and ``mass`` (0: empty).

    ``rows`` (S, d): the x of each point phi(x), for a map that grows. A map whose points have no dense form has p = 0.
    """

    points: Annotated[Array, "R S p finite"]
    labels: Annotated[Array, "label S"]
    queries: Annotated[Array, "i8 S"]
    mass: Annotated[Array, "f8 S 0:MASS"]
    rows: Annotated[Array, "R S d"] | None = None

    @classmethod
    def empty(cls, count: int, dim: int, dtype: np.dtype) -> "Slots":
        """Return ``count`` empty slots."""
        return cls(np.zeros((count, dim), dtype), np.zeros(count), np.zeros(count, np.int64), np.zeros(count))

    def write(self, slot: int, example: Example, blend: float, mass: float) -> None:
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

    def keep_rows(self, plan: Plan, X: Any) -> None:
        """Write ``rows``, unless it is None, for a plan of rows X, dense or CSR; blends are 0 or 1."""
        if self.rows is None:
            return
        if not is_sparse(X):
            write_rows(plan.start, plan.slot, plan.blend, X, self.rows)
            return
        taken = np.flatnonzero(plan.blend > 0)[::-1]
        # Events are in reverse order: the first event of a slot is the one that remains.
        slot, newest = np.unique(plan.slot[taken], return_index=True)
        source = np.searchsorted(plan.start, taken[newest], side="right") - 1
        self.rows[slot] = X[source].toarray()


@compiled
def write_rows(start: Array, slot: Array, blend: Array, X: Array, rows: Array) -> None:
    """Write the dense rows X to the slots of their events with a blend above 0, in order."""
    for i in range(X.shape[0]):
        for e in range(start[i], start[i + 1]):
            if blend[e] > 0:
                rows[slot[e]] = X[i]


@node
class MemoryState:
    """The state of every memory; subclasses add fields."""

    slots: Slots


def concatenate(parts: list[Plan]) -> Plan:
    """Return one plan for the rows of several; events after the last ``start`` of a part are unused."""
    ends = np.cumsum([0] + [part.start[-1] for part in parts])
    start = np.concatenate([[0], *(part.start[1:] + end for part, end in zip(parts, ends, strict=False))])
    slot, blend, mass = (
        np.concatenate([getattr(part, name)[: part.start[-1]] for part in parts]) for name in ("slot", "blend", "mass")
    )
    return Plan(start, slot, blend, mass)


def checked_plan(plan: Plan, memory: "Memory", n_rows: int, n_slots: int) -> Plan:
    """Return a valid plan for ``n_rows`` rows; raise ValueError, naming the memory, if it is not valid.

    Compiled loops write to the slots of a plan without checking any index.
    """
    try:
        return _valid_plan(plan, memory.blends, n_rows, n_slots)
    except ValueError as error:
        raise ValueError(f"{memory!r} has returned an invalid plan: {error}") from None


def _valid_plan(plan: Plan, blends: bool, n_rows: int, n_slots: int) -> Plan:
    if not isinstance(plan, Plan):
        raise ValueError(f"plan must return a Plan; got {plan!r}")
    start, slot = (_as_array(plan, name, "iu") for name in ("start", "slot"))
    blend, mass = (_as_array(plan, name, "iuf") for name in ("blend", "mass"))
    if not len(slot) == len(blend) == len(mass):
        counts = f"{len(slot)}, {len(blend)} and {len(mass)}"
        raise ValueError(f"slot, blend and mass need one number for each event; got {counts}")
    ends = len(start) == n_rows + 1 and start[0] == 0 and start[-1] == len(slot)
    if not ends or (np.diff(start) < 0).any():
        wanted = f"{n_rows + 1} numbers that increase from 0 to {len(slot)}, the number of events"
        raise ValueError(f"start must be {wanted}; got {start}")
    _check_events("slot", slot, (slot >= 0) & (slot < n_slots), f"below {n_slots:,}, the number of slots")
    if blends:
        _check_events("blend", blend, (blend >= 0) & (blend <= 1), "between 0 and 1")
    else:
        _check_events("blend", blend, (blend == 0) | (blend == 1), "0 or 1, because the memory has blends=False")
    _check_events("mass", mass, (mass >= 0) & (mass < np.inf), "finite and at least 0")
    return Plan(start, slot, blend, mass)


def _as_array(plan: Plan, name: str, kinds: str) -> Array:
    """Return a field of a plan as an array of the dtype that compiled loops need."""
    values = np.asarray(getattr(plan, name))
    if values.ndim != 1 or (values.size and values.dtype.kind not in kinds):
        what = "numbers" if "f" in kinds else "integers"
        raise ValueError(f"{name} must be an array (n,) of {what}; got {values.dtype} {values.shape}")
    return values.astype(float if "f" in kinds else np.int64, copy=False)


def _check_events(name: str, values: Array, valid: Array, wanted: str) -> None:
    """Raise ValueError, naming the first event that is not valid."""
    if not valid.all():
        event = int(np.argmin(valid))
        raise ValueError(f"{name} must be {wanted}; got {values[event]:,} in event {event}")
