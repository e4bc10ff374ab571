"""Merging boosted trees: the leaves of the same trees, then further trees on rows of all parts."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.merging import GROWN, added, check_equal, merged_generator, moved, pooled
from pairloom.base.tree import copy
from pairloom.base.typing import Array
from pairloom.models.boosting_state import BoostingState, Ring
from pairloom.models.merging import row_counts, square_shares
from pairloom.pairs import NO_QUERY

if TYPE_CHECKING:
    from pairloom.models.boosting import Boosting

STRUCTURE = ("columns", "masks", "children", "grown")


def merge_boosting(model: "Boosting", base: BoostingState, parts: list[BoostingState]) -> BoostingState:
    """Return the merged state.

    Values of leaves are averaged by their squared gradients. The newest rows of all parts, at most ``n_rows``, then
    arrive at the base in turn: trees that are growing are scored on them before they see them, as in one stream. The
    complete trees do not learn from these rows again.
    """
    rows, state = row_counts(base, parts), copy(base)
    state.fixed = None
    merge_leaves(state, base, parts)
    older, newer = zip(*(own_rows(part.ring, base.t) for part in parts), strict=True)
    part, age = pooled(rows.new, model.n_rows, np.array([len(one) for one in newer]))
    if state.ring.count == len(state.ring.y):
        from_part = np.repeat(np.arange(len(parts)), [len(slots) for slots in older])
        keep_older(model, state, take(parts, from_part, np.concatenate(older)))
    slots = np.array([newer[k][-1 - back] for k, back in zip(part.tolist(), age.tolist(), strict=True)], np.int64)
    batch, still, at = take(parts, part, slots), replace(model, eta=0.0), 0
    while at < len(batch):
        end = min(len(batch), at + still.next_row(state) - state.t)
        still.run(state, batch[at:end])
        at = end
    state.t, state.came = rows.total, added(base.came, [one.came for one in parts])
    state.rng = merged_generator(base.rng, rows)
    return state


def merge_leaves(state: BoostingState, base: BoostingState, parts: list[BoostingState]) -> None:
    """Merge the values of leaves; ValueError, naming the part, if it has other trees than the base."""
    check_equal("trees", base.bins, [part.bins for part in parts], GROWN)
    for part in parts:
        if len(part.generations) != len(base.generations):
            raise ValueError(f"a part has grown trees of its own{GROWN}")
    for i, made in enumerate(state.generations):
        trees, own = base.generations[i].trees, [part.generations[i].trees for part in parts]
        for name in STRUCTURE:
            check_equal("trees", getattr(trees, name), [getattr(one, name) for one in own], GROWN)
        shares = square_shares(trees.squares, [one.squares for one in own], np.zeros(len(own)))
        made.trees.values = moved(trees.values, [one.values for one in own], shares)
        made.trees.squares = added(trees.squares, [one.squares for one in own])


def own_rows(ring: Ring, since: int) -> tuple[Array, Array]:
    """Return the slots of rows from row ``since`` on: the older ones, of rare classes, and the newest, without gaps."""
    slots = np.flatnonzero(ring.row[: ring.count] >= since)
    slots = slots[np.argsort(ring.row[slots])]
    gaps = np.flatnonzero(np.diff(ring.row[slots]) > 1)
    first = int(gaps[-1]) + 1 if len(gaps) else 0
    return slots[:first], slots[first:]


def take(parts: list[BoostingState], part: Array, slots: Array) -> Batch:
    """Return rows in the ``slots`` of the rings of parts."""
    first, n = parts[0].ring, len(part)
    X, y, weight = np.zeros((n, first.X.shape[1]), first.X.dtype), np.zeros(n), np.zeros(n)
    for k, one in enumerate(parts):
        own = np.flatnonzero(part == k)
        X[own], y[own], weight[own] = (array[slots[own]] for array in (one.ring.X, one.ring.y, one.ring.weight))
    return Batch(X, y, weight, np.full(n, NO_QUERY))


def keep_older(model: "Boosting", state: BoostingState, batch: Batch) -> None:
    """Put rows into the ring that are kept for their rare class, and score them; they do not judge the trees."""
    if not len(batch):
        return
    curve = copy(state.growing.curve) if state.growing is not None else None
    model.put(state, batch)
    if state.growing is not None and curve is not None:
        state.growing.curve = curve
    state.t += len(batch)
