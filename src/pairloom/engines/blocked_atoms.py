"""The model-independent part of a block: the events of the slots, the partners of each row, inner products.

Inside a block every point is one of its *atoms*: the slots' points at its start, its rows, or a blend of two atoms.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.engines.blocked_lanes import SideBySide
from pairloom.engines.fused_steps import find_partners, write_slot
from pairloom.memory import Plan, Slots
from pairloom.pairs import pair_offset, pair_sign


class Events(NamedTuple):
    """Changes of the slots by rows: row i has the events ``start[i]:start[i + 1]``.

    After an event, ``slot`` holds ``atom``, in which the row has the share ``blend``; 0 leaves the slot unchanged.
    """

    start: Array
    slot: Array
    atom: Array
    blend: Array


class Partners(NamedTuple):
    """The partners of each row: their number (-1: no step), slots, atoms, weights, signs and offsets.

    ``stop[i]``: the first row after i whose partners are not the same slots holding the same atoms.
    """

    number: Array
    slot: Array
    atom: Array
    p: Array
    sign: Array
    offset: Array
    stop: Array


@dataclass
class Atoms:
    """The atoms of a block: points of the ``live`` slots (in use before or after the block), then blends, then rows.

    ``vectors``: points and rows. ``gram``: inner products of all atoms. ``sources``: the two atoms of each blend; the
    second is a row and has the weight ``shares``.
    """

    batch: Batch
    plan: Plan
    live: Array
    vectors: Array
    events: Events
    gram: Array
    sources: Array
    shares: Array

    @property
    def rows(self) -> Array:
        """phi(x)."""
        return self.vectors[len(self.live) :]

    @property
    def first_row(self) -> int:
        """Index of the first row among the atoms."""
        return len(self.live) + len(self.sources)


def make_block(slots: Slots, slot_gram: Array, Z: Array, batch: Batch, plan: Plan) -> Atoms:
    """Return the atoms of a block with their inner products; update ``slot_gram`` to the end of the block."""
    used = slots.mass > 0
    used[plan.slot] = True
    live = np.flatnonzero(used)
    S, n = len(live), len(batch)
    blended = (plan.blend > 0) & (plan.blend < 1)
    shares = plan.blend[blended]
    first = S + len(shares)
    row = first + np.repeat(np.arange(n), np.diff(plan.start))
    atom = np.where(blended, S - 1 + np.cumsum(blended), row)
    events = Events(plan.start, np.searchsorted(live, plan.slot), atom, plan.blend)
    points = slots.points if len(used) == S else slots.points[live]
    vectors = np.concatenate([points, Z])
    gram = np.empty((first + n, first + n), Z.dtype)
    np.matmul(vectors[S:], vectors[:S].T, out=gram[first:, :S])
    np.matmul(vectors[S:], vectors[S:].T, out=gram[first:, first:])
    sources = np.empty((len(shares), 2), np.int64)
    complete_gram(gram, slot_gram, live, events, sources)
    return Atoms(batch, plan, live, vectors, events, gram, sources, shares)


def partner_tables(grid: SideBySide, slots: Slots, block: Atoms) -> list[Partners]:
    """Return the partners of each row, for each target of the pairs."""
    n, S, live = len(block.batch), len(block.live), block.live
    tables = []
    for target in grid.pairs.targets:
        number, stop = np.empty((2, n), np.int64)
        slot, atom = np.empty((2, n, S), np.int64)
        p, sign, offset = np.empty((3, n, S))
        table = Partners(number, slot, atom, p, sign, offset, stop)
        tabulate(
            grid.pairs.code, target, grid.memory.weighting == "class", grid.memory.joint,
            block.batch.y, block.batch.query, block.events, block.plan.mass,
            slots.labels[live], slots.queries[live], slots.mass[live], table,
        )  # fmt: skip
        tables.append(table)
    return tables


@compiled
def complete_gram(gram: Array, slot_gram: Array, live: Array, events: Events, sources: Array) -> None:
    """Fill ``sources`` and the products of points and blends; update ``slot_gram`` to the end of the block."""
    S = live.shape[0]
    first, made = S + sources.shape[0], 0
    now = np.arange(S)
    for j in range(S):
        for c in range(S):
            gram[j, c] = slot_gram[live[j], live[c]]
        for i in range(first, gram.shape[0]):
            gram[j, i] = gram[i, j]
    for i in range(gram.shape[0] - first):
        for e in range(events.start[i], events.start[i + 1]):
            if 0 < events.blend[e] < 1:
                sources[made, 0], sources[made, 1] = now[events.slot[e]], first + i
                blend_atoms(gram, sources[made, 0], first + i, S + made, first, events.blend[e])
                made += 1
            if events.blend[e] > 0:
                now[events.slot[e]] = events.atom[e]
    for j in range(S):
        for c in range(S):
            slot_gram[live[j], live[c]] = gram[now[j], now[c]]


@compiled
def blend_atoms(gram: Array, old: int, row: int, new: int, first: int, share: float) -> None:
    """Fill the inner products of atom ``new`` = old + share (row - old) with earlier atoms, itself, and all rows."""
    x = gram.dtype.type(share)
    for a in range(new):
        gram[new, a] = gram[a, new] = gram[old, a] + x * (gram[row, a] - gram[old, a])
    for a in range(first, gram.shape[0]):
        gram[new, a] = gram[a, new] = gram[old, a] + x * (gram[row, a] - gram[old, a])
    gram[new, new] = gram[old, new] + x * (gram[row, new] - gram[old, new])


@compiled
def tabulate(
    pairs: int, model: float, by_class: bool, joint: bool, y: Array, query: Array, events: Events, new_mass: Array,
    labels: Array, queries: Array, mass: Array, table: Partners,
) -> None:  # fmt: skip
    """Fill ``table``; update the labels, queries and mass of the slots."""
    n = y.shape[0]
    ref = np.arange(mass.shape[0])
    for i in range(n):
        number = find_partners(
            pairs, model, by_class, joint, 1.0, y[i], query[i], labels, queries, mass, table.slot[i], table.p[i]
        )  # fmt: skip
        table.number[i] = number
        for k in range(number):
            j = table.slot[i, k]
            table.atom[i, k] = ref[j]
            table.sign[i, k] = pair_sign(pairs, y[i], labels[j], model)
            table.offset[i, k] = pair_offset(pairs, y[i], labels[j], model)
        for e in range(events.start[i], events.start[i + 1]):
            j = events.slot[e]
            if events.blend[e] > 0:
                ref[j] = events.atom[e]
                labels[j] = y[i]
                queries[j] = query[i]
            mass[j] = new_mass[e]
    stop = n
    for i in range(n - 1, -1, -1):
        table.stop[i] = stop
        if i > 0 and not same_partners(table, i - 1, i):
            stop = i


@compiled
def same_partners(table: Partners, i: int, j: int) -> bool:
    """Return whether two rows have the same partners, with the same points."""
    if table.number[i] != table.number[j]:
        return False
    for k in range(table.number[i]):
        if table.slot[i, k] != table.slot[j, k] or table.atom[i, k] != table.atom[j, k]:
            return False
    return True


@compiled
def unblend(coef: Array, sources: Array, shares: Array, n_slots: int) -> None:
    """Distribute the coefficients of blends over points and rows."""
    for b in range(sources.shape[0] - 1, -1, -1):
        x = coef.dtype.type(shares[b])
        for g in range(coef.shape[1]):
            part = x * coef[n_slots + b, g]
            coef[sources[b, 0], g] += coef[n_slots + b, g] - part
            coef[sources[b, 1], g] += part


@compiled
def write_slots(
    Z: Array, y: Array, query: Array, start: Array, slot: Array, blend: Array, new_mass: Array,
    points: Array, labels: Array, queries: Array, mass: Array,
) -> None:  # fmt: skip
    """Apply the events of all rows to the slots."""
    for i in range(y.shape[0]):
        for e in range(start[i], start[i + 1]):
            write_slot(slot[e], Z[i], y[i], query[i], blend[e], new_mass[e], points, labels, queries, mass)
