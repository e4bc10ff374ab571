"""Merging memories: which slot of which part, with which mass, is in each slot of the merged memory."""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from pairloom.base.merging import added
from pairloom.base.typing import Array
from pairloom.memory.slots import MemoryState, Slots

if TYPE_CHECKING:
    from pairloom.memory.history import HistoryState, WholeHistory
    from pairloom.memory.latest import LatestState, Newest
    from pairloom.memory.reservoir import Reservoir, ReservoirState
    from pairloom.memory.rsx import RSx, RSxState


class Places(NamedTuple):
    """Where each slot of a merged memory comes from: ``source`` (S,), 0 the base, k the k-th part; and its ``slot``."""

    source: Array
    slot: Array

    @classmethod
    def of(cls, n_slots: int) -> "Places":
        """Return the slots of the base."""
        return cls(np.zeros(n_slots, np.int64), np.arange(n_slots))

    def set(self, to: int, source: int, slot: int) -> None:
        """Take a slot from another state."""
        self.source[to], self.slot[to] = source, slot

    def take(self, arrays: list[Array]) -> Array:
        """Return the entries of the slots in arrays (S, ...), that of the base first."""
        out = arrays[0].copy()
        for k, array in enumerate(arrays):
            own = np.flatnonzero(self.source == k)
            out[own] = array[self.slot[own]]
        return out

    def slots(self, states: list[Any], mass: Array) -> Slots:
        """Return the slots of these states, that of the base first."""
        own: list[Slots] = [state.slots for state in states]
        arrays = [self.take([getattr(slots, name) for slots in own]) for name in ("points", "labels", "queries")]
        rows = None if own[0].rows is None else self.take([slots.rows for slots in own])  # type: ignore[misc]
        points, labels, queries = arrays
        return Slots(points, labels, queries, mass, rows)


class MergesSlots(Protocol):
    """A memory that can be merged (``merging``)."""

    def merge(
        self, base: Any, parts: list[Any], contents: list[Array], rng: np.random.Generator
    ) -> tuple[MemoryState, Places]:
        """Return the merged memory; ``contents`` (S, any): the point of each slot, of the base and of each part."""


def changed(memory: Any, states: list[Any], contents: list[Array], k: int) -> Array:
    """Return which slots of part k hold a row that is not in the same slot of the base."""
    base, part = states[0].slots, states[k].slots
    differs = (contents[0] != contents[k]).any(axis=1) | (base.labels != part.labels) | (base.queries != part.queries)
    return np.asarray((part.mass > 0) & (differs | (base.mass == 0)))


def merge_newest(memory: "Newest", base: "LatestState", parts: "list[LatestState]") -> "tuple[LatestState, Places]":
    """Keep the newest rows: the newest of each part in turn, then the second newest, and the base's rows last."""
    states, size = [base, *parts], memory.size
    seen = added(base.seen, [part.seen for part in parts])
    places, mass = Places.of(len(base.slots.mass)), base.slots.mass.copy()
    for g in range(len(seen)):
        found = [
            (age, k, g * size + (int(state.seen[g]) - 1 - age) % size)
            for k, state in enumerate(states)
            for age in range(min(size, int(state.seen[g] - (base.seen[g] if k else 0))))
        ]
        found.sort(key=lambda one: (one[1] == 0, one[0], one[1]))
        for age, (_, k, slot) in enumerate(found[:size]):
            to = g * size + (int(seen[g]) - 1 - age) % size
            places.set(to, k, slot)
            mass[to] = states[k].slots.mass[slot]
    return type(base)(places.slots(states, mass), seen), places


def merge_history(
    memory: "WholeHistory", base: "HistoryState", parts: "list[HistoryState]"
) -> "tuple[HistoryState, Places]":
    """Append the rows of the parts, one after the other; ValueError if they do not fit."""
    states, at = [base, *parts], int(base.seen[0])
    memory.check_room(base, int(sum(part.seen[0] - base.seen[0] for part in parts)))
    places, mass = Places.of(memory.max_rows), base.slots.mass.copy()
    for k, part in enumerate(parts, start=1):
        own = np.arange(int(base.seen[0]), int(part.seen[0]))
        to = at + np.arange(len(own))
        places.source[to], places.slot[to], mass[to] = k, own, part.slots.mass[own]
        at += len(own)
    return type(base)(places.slots(states, mass), np.array([at])), places


def merge_reservoirs(
    memory: "Reservoir", base: "ReservoirState", parts: "list[ReservoirState]", contents: list[Array],
    rng: np.random.Generator,
) -> "tuple[ReservoirState, Places]":  # fmt: skip
    """Draw from the sample of the base and the new rows in those of the parts, in proportion to what they stand for.

    Each row of a sample stands for its weight divided by the probability that it was kept. So all sums over the past
    are estimated without bias, as before the merge. A new row that equals the one it replaced is not recognised.
    """
    states, size = [base, *parts], memory.size
    seen, total = (added(getattr(base, name), [getattr(one, name) for one in parts]) for name in ("seen", "total"))
    unit = np.where(seen > 0, total / np.maximum(1, np.minimum(seen, size)), 0.0)
    places, mass = Places.of(len(base.slots.mass)), np.zeros(len(base.slots.mass))
    for g in range(len(seen)):
        own = slice(g * size, (g + 1) * size)
        pool, worth = [], []
        for k, state in enumerate(states):
            there = changed(memory, states, contents, k)[own] if k else state.slots.mass[own] > 0
            scale = state.total[g] / max(1, min(int(state.seen[g]), size)) / max(float(state.unit[g]), 1e-300)
            for slot in np.flatnonzero(there) + own.start:
                pool.append((k, int(slot)))
                worth.append(scale * state.slots.mass[slot])
        kept, masses = systematic(np.array(worth), size, rng)
        for to, (i, value) in enumerate(zip(kept.tolist(), masses.tolist(), strict=True), start=own.start):
            places.set(to, *pool[i])
            mass[to] = value
    return type(base)(places.slots(states, mass), seen, total, unit), places


def systematic(worth: Array, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return at most ``size`` items, each with a probability proportional to its worth, and what each stands for.

    >>> kept, masses = systematic(np.ones(10), 5, np.random.default_rng(0))
    >>> len(kept), masses.tolist()
    (5, [2.0, 2.0, 2.0, 2.0, 2.0])
    """
    if len(worth) <= size:
        return np.arange(len(worth)), worth
    order = rng.permutation(len(worth))
    descending = np.sort(worth)[::-1]
    rest = np.append(np.cumsum(descending[::-1])[::-1], 0.0)
    always = next(i for i in range(size) if descending[i] * (size - i) <= rest[i] or i == size - 1)
    least = float(rest[always] / (size - always))
    chance = np.minimum(1.0, worth[order] / least)
    marks = np.floor(np.cumsum(chance) - rng.random() + 1e-9)
    kept = order[np.diff(marks, prepend=-1.0) > 0][:size]
    return kept, np.maximum(worth[kept], least)


def merge_draws(
    memory: "RSx", base: "RSxState", parts: "list[RSxState]", contents: list[Array], rng: np.random.Generator
) -> "tuple[RSxState, Places]":
    """Take each draw from the base or from the new rows of a part, by their weights."""
    states, size = [base, *parts], memory.size
    seen, total = (added(getattr(base, name), [getattr(one, name) for one in parts]) for name in ("seen", "total"))
    places, mass = Places.of(len(base.slots.mass)), np.zeros(len(base.slots.mass))
    pointer = base.pointer.copy()
    for g in range(len(seen)):
        first = g * size
        items = [np.flatnonzero(base.slots.mass[first : first + size] > 0)]
        items += [
            np.flatnonzero(changed(memory, states, contents, k)[first : first + size]) for k in range(1, len(states))
        ]
        if seen[g] <= size:
            taken = [(k, int(slot)) for k, own in enumerate(items) for slot in own]
            for to, (k, slot) in enumerate(taken, start=first):
                places.set(to, k, first + slot)
                mass[to] = states[k].slots.mass[first + slot]
            continue
        weight = [float(state.total[g] - (base.total[g] if k else 0.0)) for k, state in enumerate(states)]
        chance = np.array([w if len(own) else 0.0 for w, own in zip(weight, items, strict=True)])
        drawn: dict[tuple[int, int], int] = {}
        for j, k in enumerate(rng.choice(len(states), size, p=chance / chance.sum())):
            own, state = items[k], states[k]
            slot = int(state.pointer[g, j])
            if state.seen[g] <= size or slot not in own:  # this draw is of an older row
                shares = state.slots.mass[first + own]
                slot = int(rng.choice(own, p=shares / shares.sum()))
            place = drawn.setdefault((int(k), slot), len(drawn))
            places.set(first + place, int(k), first + slot)
            pointer[g, j] = place
        mass[first : first + size] = np.bincount(pointer[g], minlength=size)
    return type(base)(places.slots(states, mass), seen, total, pointer), places
