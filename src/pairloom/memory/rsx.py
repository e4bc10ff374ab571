"""A sample of the past with replacement: its members are independent."""

from dataclasses import dataclass, field

import numpy as np

from pairloom.base.aging import aged
from pairloom.base.checks import check_count
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.memory.base import By, Example, Grouped, MemoryState, Plan, Slots

Event = tuple[int, float, float]
"""(slot, blend, mass), for ``Slots.write``."""


@node
class RSxState(MemoryState):
    """Of each group: rows so far, their total weight, and the slot in which each draw of the sample lies (G, size).

    Draws that took the same example share a slot; its mass is their number.
    """

    seen: Array
    total: Array
    pointer: Array


@dataclass(frozen=True)
class RSx(Grouped):
    """Keep ``size`` independent draws from the past, each uniform on all examples so far (RS-x).

    Row t is appended while there is room. At t = size + 1 the sample is drawn anew: ``size`` independent draws from
    the size + 1 rows, with replacement (without this step the draws would stay dependent). Then each draw is
    replaced by row t with probability 1 / t, independently of the others. The gradient at a fixed w is unbiased,
    with variance sigma^2 / size, sigma^2 the variance of the pair gradient over all rows so far.

    Parameters
    ----------
    size : number of draws, in all or of each class; the theory asks for about sqrt(T).
    by : one sample for all rows ("joint", the publication: pairs of equal labels teach nothing, but count in the
        divisor), or one per "class".
    normalization : "sum" for sums over the history in place of means; by default as ``by`` says.

    With weights, W their total so far: a draw takes the row with probability w / W. While all rows fit, masses are
    weights. So a row of weight k stands for k equal rows.

    With more than two classes and a sample of each, the full samples of two classes weigh the same, whatever the
    sizes of the classes: take ``by="joint"`` for shares of the history.

    In a kernel space long-kept examples are a trap: the model stores its margin at them and learns nothing
    elsewhere. There, prefer ``Strata`` with "fifo" or "centroid" representatives, or ``Latest``.

    Cost: ``size`` slots and ``size`` random numbers per example, or so many per class.

    Reference: Kar et al., On the Generalization Ability of Online Learning Algorithms for Pairwise Loss Functions,
    ICML 2013.
    """

    size: int = 100
    by: By = field(default="joint", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("size", self.size)

    @property
    def draws(self) -> int:
        return self.size

    def start(self, dim: int, u_dim: int, n_classes: int, dtype: np.dtype, points: Array | None) -> RSxState:
        groups = 1 if self.joint else n_classes
        pointer = np.tile(np.arange(self.size), (groups, 1))
        return RSxState(
            Slots.empty(groups * self.size, dim, dtype), np.zeros(groups, np.int64), np.zeros(groups), pointer
        )

    @property
    def forgets(self) -> bool:
        return True

    def forget(self, state: MemoryState, keep: float) -> None:
        """A draw takes a new row with a higher probability; while all rows fit, their masses are weights, and fade."""
        assert isinstance(state, RSxState)
        factors = aged(state.total, keep)
        state.total *= factors
        state.slots.mass *= np.repeat(np.where(state.seen > self.size, 1.0, factors), self.size)

    def observe(self, state: MemoryState, example: Example) -> None:
        assert isinstance(state, RSxState)
        g = 0 if self.joint else int(example.y)
        first = g * self.size
        state.seen[g] += 1
        state.total[g] += example.weight
        mass = state.slots.mass[first : first + self.size]
        seen, total = int(state.seen[g]), float(state.total[g])
        events = take_in(state.pointer[g], mass, seen, example.weight, total, example.draws)
        for slot, blend, new_mass in events:
            state.slots.write(first + slot, example, blend, new_mass)

    def plan(self, state: MemoryState, U: Array, y: Array, weight: Array, draws: Array) -> Plan:
        assert isinstance(state, RSxState)
        group = np.zeros(len(y), np.int64) if self.joint else y.astype(np.int64)
        smallest = draws.min(axis=1)
        masses = state.slots.mass.reshape(-1, self.size).copy()
        events: list[tuple[int, int, float, float]] = []
        for g in np.unique(group):
            own = np.flatnonzero(group == g)
            seen = state.seen[g] + 1 + np.arange(len(own))
            total = np.cumsum(np.concatenate([state.total[g : g + 1], weight[own]]))[1:]
            # Once the sample is full, a row rarely finds a place in it: only the rows that do are worked through.
            busy = (seen <= self.size + 1) | (smallest[own] < weight[own] / total)
            for k in np.flatnonzero(busy):
                i = int(own[k])
                for slot, blend, mass in take_in(
                    state.pointer[g], masses[g], int(seen[k]), weight[i], total[k], draws[i]
                ):
                    masses[g, slot] = mass
                    events.append((i, int(g) * self.size + slot, blend, mass))
            state.seen[g], state.total[g] = seen[-1], total[-1]
        events.sort(key=lambda event: event[0])
        table = np.array(events, dtype=float).reshape(-1, 4).T.copy()
        start = np.searchsorted(table[0], np.arange(len(y) + 1))
        return Plan(start, table[1].astype(np.int64), table[2], table[3])


def take_in(pointer: Array, mass: Array, t: int, weight: float, total: float, draws: Array) -> list[Event]:
    """What row ``t`` of a group does to its slots, ``mass`` being theirs; changes ``pointer``."""
    size = len(pointer)
    if t <= size:
        return [(t - 1, 1.0, float(weight))]
    if t == size + 1:
        pointer[:] = repopulate(mass, weight, draws)
        new = pointer == size
    else:
        new = draws < weight / total
    count = np.bincount(pointer[~new], minlength=size)
    events = [(int(j), 0.0, float(count[j])) for j in np.flatnonzero(count != mass)]
    if new.any():
        # As many slots as draws, and a draw of the row has left its old slot: there is a free one.
        free = int(np.argmin(count))
        pointer[new] = free
        events.append((free, 1.0, float(new.sum())))
    return events


def repopulate(mass: Array, weight: float, draws: Array) -> Array:
    """Independent draws, by weight, from the kept rows and the new one, whose number is ``size``."""
    edges = np.cumsum(np.append(mass, weight))
    picked: Array = np.searchsorted(edges, draws * edges[-1], side="right")
    return np.minimum(picked, len(mass))
