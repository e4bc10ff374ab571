"""More slots for strata of high variance (Neyman allocation).

A stratum owns some of the *seats* of its clustering. A seat holds one member of the stratum: it is an independent
one-element reservoir, or a position in the queue of the newest members. Seats that hold the same example share one
slot, so that copying a seat does not copy an example. The mass of a slot is the sum of n_j / m_j over its seats, where
m_j is the number of filled seats of the stratum: the masses of a stratum sum to n_j.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np

from pairloom.base.checks import check_choice, check_count
from pairloom.base.compiled import compiled
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.memory.slots import Example, Plan, Slots, concatenate

Allocation = Literal["equal", "neyman"]

REALLOCATION_ROWS = 256
"""Number of examples of a clustering between two allocations of its seats."""

NO_OWNER, EMPTY, TAKES_ROW = -1, -1, -2
"""Owner of a spare seat; slot of a seat without an example; slot of a seat that takes the current example."""


def check_allocation(allocation: str, slots: int | None, max_strata: int, representative: str) -> None:
    """Raise ValueError unless these parameters of ``Strata`` are compatible."""
    check_choice("allocation", allocation, Allocation)
    if allocation == "equal" and slots is not None:
        raise ValueError(f"slots={slots!r} is for allocation='neyman': equal strata have one slot each")
    if allocation == "neyman" and representative == "centroid":
        raise ValueError("a centroid has no sampling variance: allocation='neyman' changes nothing")
    if slots is not None:
        check_count("slots", slots)
        if slots < max_strata:
            raise ValueError(f"every stratum needs a slot: slots must be at least max_strata={max_strata}; got {slots}")


@node
class Seats:
    """``count``: n_j of each stratum; ``rows``: the number of rows of each clustering.

    For each seat, arrays (clusterings, seats): the stratum that owns it (``owner``), its slot within the clustering
    (``slot``), and the row of the clustering that filled it (``born``; queues only).
    """

    count: Annotated[Array, "f8 c"]
    rows: Annotated[Array, "i8 g 0:BIG"]
    owner: Annotated[Array, "i8 g s -1:c"]
    slot: Annotated[Array, "i8 g s -1:s"]
    born: Annotated[Array, "i8 g s 0:BIG"]

    def check(self) -> None:
        if ((self.slot >= 0) & (self.owner < 0)).any():
            raise ValueError("has filled seats without an owner")

    @classmethod
    def empty(cls, groups: int, strata: int, seats: int) -> "Seats":
        """Return seats without owners."""
        spare = np.full((groups, seats), NO_OWNER)
        count, rows = np.zeros(groups * strata), np.zeros(groups, np.int64)
        return cls(count, rows, spare, spare.copy(), np.zeros((groups, seats), np.int64))


def is_due(rows: Array) -> Array:
    """Return whether seats are reallocated after this many rows of a clustering."""
    return np.asarray(rows % REALLOCATION_ROWS == 0)


def allocate(need: Array, seats: int, tie: float) -> Array:
    """Return m_j: one seat for each stratum, then one at a time to the largest need_j / m_j, need_j = n_j sigma_j.

    Strata with zero variance have one seat. Needs with a relative difference below ``tie`` are treated as equal, so
    that rounding errors do not matter.

    >>> allocate(np.array([1.0, 6.0, 0.0]), seats=6, tie=1e-10)
    array([1, 4, 1])
    """
    m = np.ones(len(need), np.int64)
    while m.sum() < seats and need.any():
        gain = need / m
        m[np.argmax(gain >= (1.0 - tie) * gain.max())] += 1
    return m


def reallocate(
    seats: Seats, g: int, strata: slice, scatter: Array, rounding: Array, tie: float, queue: bool
) -> Array:  # fmt: skip
    """Reallocate the seats of a clustering, and return the masses of its slots.

    A new seat starts as a copy of another seat, or empty in a queue. Which seats are closed or copied never depends on
    the examples in them, so that the examples remain a uniform sample.
    """
    owner, slot, n = seats.owner[g], seats.slot[g], seats.count[strata]
    need = np.where(scatter / n > rounding, np.sqrt(n * scatter), 0.0)
    m = dict(enumerate(allocate(need, len(owner), tie), start=strata.start))
    for j in m:
        while np.count_nonzero(owner == j) > m[j]:
            seat = oldest(owner, slot, seats.born[g], j)
            owner[seat], slot[seat] = NO_OWNER, EMPTY
    for j in m:
        own = np.flatnonzero(owner == j)
        opened = np.flatnonzero(owner == NO_OWNER)[: m[j] - len(own)]
        owner[opened] = j
        slot[opened] = EMPTY if queue else np.resize(slot[own], len(opened))
    return masses(seats.count, owner, slot)


def observe_seats(
    seats: Seats, slots: Slots, g: int, j: int, example: Example, queue: bool, fading: bool
) -> None:  # fmt: skip
    """Add an example that has joined stratum ``j`` of clustering ``g``, whose count is already up to date.

    ``fading``: the example may have founded the stratum by replacing a light one, whose seats are then emptied.
    """
    owner, slot, born = seats.owner[g], seats.slot[g], seats.born[g]
    seats.rows[g] += 1
    if fading and seats.count[j] == example.weight:
        slot[owner == j] = EMPTY
    if not (owner == j).any():
        claim(owner, slot, born, j)
    if queue:
        seat = oldest(owner, slot, born, j)
        slot[seat], born[seat] = TAKES_ROW, seats.rows[g]
    else:
        taking = (slot == EMPTY) | (example.draws < example.weight / seats.count[j])
        slot[(owner == j) & taking] = TAKES_ROW
    taking = slot == TAKES_ROW
    if taking.any():
        # There are as many slots as seats, and a seat has just left its slot, so one slot is free.
        slot[taking] = np.setdiff1d(np.arange(len(slot)), slot)[0]
        slots.write(g * len(slot) + int(slot[taking][0]), example, blend=1.0, mass=0.0)
    slots.mass[g * len(slot) :][: len(slot)] = masses(seats.count, owner, slot)


def oldest(owner: Array, slot: Array, born: Array, j: int) -> int:
    """Return the seat that stratum ``j`` loses first: an empty seat, or the seat filled first, or the first seat."""
    own = np.flatnonzero(owner == j)
    return int(own[np.argmin(np.where(slot[own] == EMPTY, -1, born[own]))])


def claim(owner: Array, slot: Array, born: Array, j: int) -> None:
    """Give the new stratum ``j`` a seat: a spare seat, or a seat of the stratum with the most seats."""
    spare = np.flatnonzero(owner == NO_OWNER)
    seat = int(spare[0]) if spare.size else oldest(owner, slot, born, int(np.argmax(np.bincount(owner))))
    owner[seat], slot[seat] = j, EMPTY


def masses(count: Array, owner: Array, slot: Array) -> Array:
    """Return the mass of each slot of a clustering: the sum of n_j / m_j over its seats."""
    filled = slot >= 0
    owner = owner[filled]
    m = np.bincount(owner, minlength=len(count))
    return np.bincount(slot[filled], weights=count[owner] / m[owner], minlength=len(slot))


def plan_seats(
    seats: Seats, mass: Array, group: Array, weight: Array, draws: Array, queue: bool, fading: bool,
    cluster: Callable[[slice], Plan], reallocated: Callable[[int], Array],
) -> Plan:  # fmt: skip
    """Apply ``observe_seats`` to the rows of a block: ``cluster`` and seat the rows up to an allocation, reallocate."""
    size = seats.owner.shape[1]
    mass = mass.reshape(-1, size).copy()
    last = np.zeros(len(group), bool)
    for g in np.unique(group):
        own = np.flatnonzero(group == g)
        last[own] = is_due(seats.rows[g] + 1 + np.arange(len(own)))
    parts = []
    for a, b in pairwise(np.unique([0, *(np.flatnonzero(last) + 1), len(group)])):
        joined = cluster(slice(a, b))
        room = (b - a + 1) * size
        part = Plan(joined.start, np.empty(room, np.int64), np.zeros(room), np.empty(room))
        end = seat_rows(
            joined.slot, joined.mass, group[a:b], weight[a:b], draws[a:b], queue, fading,
            (seats.count, seats.rows, seats.owner, seats.slot, seats.born), mass, tuple(part),
        )  # fmt: skip
        if last[b - 1]:
            g = group[b - 1]
            now = reallocated(g)
            changed = np.flatnonzero(now != mass[g])
            part.start[-1] = end + len(changed)
            part.slot[end : part.start[-1]] = g * size + changed
            part.mass[end : part.start[-1]] = now[changed]
            mass[g] = now
        parts.append(part)
    return concatenate(parts)


@compiled
def seat_rows(
    strata: Array, n: Array, group: Array, weight: Array, draws: Array, queue: bool, fading: bool,
    seats: Any, masses: Array, plan_: Any,
) -> int:  # fmt: skip
    """Apply ``observe_seats`` to rows that join ``strata``, whose counts become ``n``; return the number of events.

    ``seats``: the fields of ``Seats``; ``plan_``: the fields of a ``Plan`` large enough for all events, to be filled.
    """
    (count, rows, owners, slots, borns), plan = seats, Plan(*plan_)
    size = owners.shape[1]
    now, m, used = np.empty(size), np.empty(count.shape[0], np.int64), np.empty(size, np.bool_)
    e = 0
    for i in range(n.shape[0]):
        g, j = group[i], strata[i]
        owner, slot, mass = owners[g], slots[g], masses[g]
        rows[g] += 1
        count[j] = n[i]
        founded = fading and n[i] == weight[i]
        take_seats(owner, slot, borns[g], j, rows[g], founded, weight[i] / n[i], draws[i], queue, m)
        free = find_slot(slot, used)
        weigh(count, owner, slot, m, now)
        for r in range(size):
            if r == free or now[r] != mass[r]:
                plan.slot[e] = g * size + r
                plan.blend[e] = 1.0 if r == free else 0.0
                plan.mass[e] = mass[r] = now[r]
                e += 1
        plan.start[i + 1] = e
    return e


@compiled
def take_seats(
    owner: Array, slot: Array, born: Array, j: int, row: int, founded: bool, share: float, draws: Array, queue: bool,
    held: Array,
) -> None:  # fmt: skip
    """Mark the seats that take the row, after ``claim`` for a new stratum."""
    size = owner.shape[0]
    held[:] = 0
    for s in range(size):
        if owner[s] != NO_OWNER:
            held[owner[s]] += 1
    if held[j] == 0:
        seat = first_seat(owner, slot, born, NO_OWNER)
        if seat < 0:
            seat = first_seat(owner, slot, born, int(np.argmax(held)))
        owner[seat] = j
        slot[seat] = EMPTY
    elif founded:
        for s in range(size):
            if owner[s] == j:
                slot[s] = EMPTY
    if queue:
        seat = first_seat(owner, slot, born, j)
        slot[seat] = TAKES_ROW
        born[seat] = row
        return
    for s in range(size):
        if owner[s] == j and (slot[s] == EMPTY or draws[s] < share):
            slot[s] = TAKES_ROW


@compiled
def first_seat(owner: Array, slot: Array, born: Array, j: int) -> int:
    """Return the ``oldest`` seat, or -1 if there is none."""
    seat, age = -1, 0
    for s in range(owner.shape[0]):
        if owner[s] == j:
            filled = born[s] if slot[s] != EMPTY else -1
            if seat < 0 or filled < age:
                seat, age = s, filled
    return seat


@compiled
def find_slot(slot: Array, used: Array) -> int:
    """Move the seats that take the row to the first free slot; return this slot, or -1 if no seat takes the row."""
    used[:] = False
    taking = False
    for s in range(slot.shape[0]):
        if slot[s] >= 0:
            used[slot[s]] = True
        taking |= slot[s] == TAKES_ROW
    if not taking:
        return -1
    free = int(np.argmin(used))
    for s in range(slot.shape[0]):
        if slot[s] == TAKES_ROW:
            slot[s] = free
    return free


@compiled
def weigh(count: Array, owner: Array, slot: Array, m: Array, mass: Array) -> None:
    """Fill ``mass`` with the result of ``masses``, and m with the number of seats of each stratum."""
    m[:] = 0
    mass[:] = 0.0
    for s in range(slot.shape[0]):
        if slot[s] >= 0:
            m[owner[s]] += 1
    for s in range(slot.shape[0]):
        if slot[s] >= 0:
            mass[slot[s]] += count[owner[s]] / m[owner[s]]
