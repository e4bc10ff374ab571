"""A sample of the past with replacement, whose members are independent."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from pairloom.base.capabilities import decay_factors
from pairloom.base.checks import check_count
from pairloom.base.spec import StateSpec
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.memory.base import By, Grouped, grouped_spec, groups_of
from pairloom.memory.merging import Places, merge_draws
from pairloom.memory.slots import Example, MemoryState, Plan, Slots

Event = tuple[int, float, float]
"""(slot, blend, mass), for ``Slots.write``."""


@node
class RSxState(MemoryState):
    """For each group: rows so far, their total weight, and the slot of each draw of the sample (G, size).

    Draws that took the same example share a slot; its mass is their number.
    """

    seen: Annotated[Array, "i8 g 0:t+1"]
    total: Annotated[Array, "f8 g 0:MASS"]
    pointer: Annotated[Array, "i8 g s 0:s"]


@dataclass(frozen=True)
class RSx(Grouped):
    """Keep ``size`` independent draws from the past, each uniform on all examples so far (RS-x).

    Rows are appended until the sample is full. At t = size + 1 the sample is redrawn: ``size`` independent draws from
    the size + 1 rows, with replacement (otherwise the draws would stay dependent). Then each draw is replaced by row t
    with probability 1 / t, independently of the others. The gradient at a fixed w is unbiased, with variance
    sigma^2 / size, where sigma^2 is the variance of the pair gradient over all rows so far.

    Parameters
    ----------
    size : the number of draws, in total or per class; in theory, about sqrt(T).
    by : one sample for all rows ("joint", as published: nothing is learned from pairs of equal labels, but they count
        in the divisor), or one per "class".
    normalization : "sum" for sums over the history instead of means; by default given by ``by``.

    With weights, and W their total so far, a draw takes the row with probability w / W. Until the sample is full,
    masses are weights. So a row of weight k is equivalent to k equal rows.

    With more than two classes and one sample per class, the full samples of two classes have the same weight,
    regardless of the sizes of the classes. Use ``by="joint"`` for shares of the history.

    Avoid this memory in a kernel space: the model overfits the examples that stay for a long time and learns nothing
    elsewhere. Prefer ``Strata`` with "fifo" or "centroid" representatives, or ``Latest``.

    Cost: ``size`` slots, in total or per class, and ``size`` random numbers per example.

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

    def forget(self, state: RSxState, keep: float) -> None:
        """Draw new rows with a higher probability; until the sample is full, masses are weights, and are reduced."""
        factors = decay_factors(state.total, keep)
        state.total *= factors
        state.slots.mass *= np.repeat(np.where(state.seen > self.size, 1.0, factors), self.size)

    def state_spec(self, n_classes: int) -> StateSpec:
        return grouped_spec(self, n_classes, self.size)

    @property
    def merging(self) -> "RSx":
        return self

    def merge(
        self, base: RSxState, parts: list[RSxState], contents: list[Array], rng: np.random.Generator
    ) -> tuple[RSxState, Places]:
        """Return the merged memory, and where its slots come from."""
        return merge_draws(self, base, parts, contents, rng)

    def observe(self, state: RSxState, example: Example) -> None:
        g = 0 if self.joint else int(example.y)
        first = g * self.size
        state.seen[g] += 1
        state.total[g] += example.weight
        mass = state.slots.mass[first : first + self.size]
        seen, total = int(state.seen[g]), float(state.total[g])
        events = events_of(state.pointer[g], mass, seen, example.weight, total, example.draws)
        for slot, blend, new_mass in events:
            state.slots.write(first + slot, example, blend, new_mass)

    def plan(self, state: RSxState, U: Array, y: Array, weight: Array, draws: Array) -> Plan:
        group = groups_of(self, y)
        smallest = draws.min(axis=1)
        masses = state.slots.mass.reshape(-1, self.size).copy()
        events: list[tuple[int, int, float, float]] = []
        for g in np.unique(group):
            own = np.flatnonzero(group == g)
            seen = state.seen[g] + 1 + np.arange(len(own))
            total = np.cumsum(np.concatenate([state.total[g : g + 1], weight[own]]))[1:]
            # Once the sample is full, few rows change it: only these are visited.
            busy = (seen <= self.size + 1) | (smallest[own] < weight[own] / total)
            for k in np.flatnonzero(busy):
                i = int(own[k])
                for slot, blend, mass in events_of(
                    state.pointer[g], masses[g], int(seen[k]), weight[i], total[k], draws[i]
                ):
                    masses[g, slot] = mass
                    events.append((i, int(g) * self.size + slot, blend, mass))
            state.seen[g], state.total[g] = seen[-1], total[-1]
        events.sort(key=lambda event: event[0])
        table = np.array(events, dtype=float).reshape(-1, 4).T.copy()
        start = np.searchsorted(table[0], np.arange(len(y) + 1))
        return Plan(start, table[1].astype(np.int64), table[2], table[3])


def events_of(pointer: Array, mass: Array, t: int, weight: float, total: float, draws: Array) -> list[Event]:
    """Return the events of row ``t`` of a group, whose slots have ``mass``; update ``pointer``."""
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
        # There are as many slots as draws, and a draw has just left its slot, so one slot is free.
        free = int(np.argmin(count))
        pointer[new] = free
        events.append((free, 1.0, float(new.sum())))
    return events


def repopulate(mass: Array, weight: float, draws: Array) -> Array:
    """Draw independently, by weight, from the kept rows and the new one, whose number is ``size``."""
    edges = np.cumsum(np.append(mass, weight))
    picked: Array = np.searchsorted(edges, draws * edges[-1], side="right")
    return np.minimum(picked, len(mass))
