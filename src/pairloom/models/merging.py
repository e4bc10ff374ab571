"""Merging learners: weights, tallies, moments, and the slots of memories."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pairloom.base.merging import (
    RowCounts,
    added,
    cannot_merge,
    check_equal,
    joined_moments,
    merged_generator,
    moved,
)
from pairloom.base.tree import copy
from pairloom.base.typing import Array
from pairloom.engines import sparse
from pairloom.engines.state import WORST, LazyModel, State
from pairloom.memory.merging import Places
from pairloom.models.class_moments import ClassMoments

if TYPE_CHECKING:
    from pairloom.models.grid import Grid
    from pairloom.models.learner import Learner
    from pairloom.models.mapped import Mapped
    from pairloom.models.rule import RuleLearner

S = TypeVar("S", bound=State)
M = TypeVar("M", "Learner", "RuleLearner")


def row_counts(base: Any, parts: Sequence[Any]) -> RowCounts:
    """Return the numbers of rows that states have learned; ValueError if a part has learned less than the base."""
    for k, part in enumerate(parts):
        if part.t < base.t:
            raise ValueError(f"part {k} has learned {part.t:,} rows, fewer than the base: {base.t:,}")
    return RowCounts(base.t, tuple(part.t for part in parts))


def merge_states(model: "Mapped | Grid", base: S, parts: Sequence[S]) -> S:
    """Return a state with merged weights and tallies; its map and memory are those of the base, to be merged next.

    w = w_B + sum over parts k of omega_k (w_k - w_B). With steps per coordinate, omega_k is the share of part k in the
    squared gradients added to each coordinate: parts that rarely saw a feature hardly move its weight. Otherwise it is
    the share in the rows.
    """
    rows = row_counts(base, parts)
    if any(state.since is not None for state in (base, *parts)):
        raise cannot_merge(type(model).__name__, "parts forgot rows at rows of their own: use half_life=None")
    if model.features.growing is None:
        check_equal("features", base.phi, [part.phi for part in parts])
    by_rows = rows.shares
    tally = added(base.tally, [part.tally for part in parts])
    tally[WORST] = np.max([state.tally[WORST] for state in (base, *parts)], axis=0)
    if any(part.pace is not None for part in parts):  # longer steps than those of the user say nothing about them
        tally[WORST:] = base.tally[WORST:]
    squares, shares = base.squares, by_rows
    if base.squares is not None:
        own = [part.squares for part in parts if part.squares is not None]
        squares, shares = added(base.squares, own), square_shares(base.squares, own, by_rows)
    return replace(
        base,
        rng=merged_generator(base.rng, rows),
        w=moved(base.w, [part.w for part in parts], shares),
        w_bar=moved(base.w_bar, [part.w_bar for part in parts], by_rows),
        t=rows.total, tally=tally, squares=squares, totals=added(base.totals, [part.totals for part in parts]),
        csr=any(state.csr for state in (base, *parts)), lazy=None, combination=None,
    )  # fmt: skip


def at_pace(model: M, pace: float | None) -> M:
    """Return the model with which a part learns: with longer steps, half as long until they suit the penalty.

    Steps per coordinate become short by themselves, and passive-aggressive steps have a length of their own.
    """
    if pace is None or model.step.per_coordinate or model.step.sequential:
        return model
    while pace > 1:
        try:
            return replace(model, step=replace(model.step, eta=pace * model.step.eta))
        except ValueError:
            pace /= 2
    return model


def square_shares(base: Array, parts: list[Array], otherwise: Array) -> Array:
    """Return the share of each part in the squared gradients added to each weight: (parts, ...)."""
    new = np.array([part.astype(float) - base for part in parts]).reshape(len(parts), *base.shape)
    total = new.sum(axis=0)
    shares = np.divide(new, total, out=np.zeros_like(new), where=total > 0)
    return np.where(total > 0, shares, otherwise.reshape(-1, *[1] * base.ndim))


def merge_moments(base: ClassMoments, parts: Sequence[ClassMoments]) -> ClassMoments:
    """Return the moments of all rows, with an empty open block."""
    whole, folded = copy(base.folded()), [part.folded() for part in parts]
    for c in range(len(whole.counts)):
        before = whole.counts[c], whole.means[c].copy(), whole.scatter[c].copy()
        own = [(part.counts[c], part.means[c], part.scatter[c]) for part in folded]
        whole.counts[c], whole.means[c], scatter = joined_moments(before, own)
        whole.scatter[c] = np.tril(scatter)  # the rest is never read
    rows = np.zeros_like(base.rows), np.zeros_like(base.labels), np.zeros_like(base.weights), np.zeros(1, np.int64)
    return ClassMoments(whole.counts, whole.means, whole.scatter, *rows)


def merge_memories(learner: "Learner | Grid", state: State, base: State, parts: Sequence[State]) -> None:
    """Set the memory of a merged state, and the points of its slots in the form in which its engine keeps them."""
    memory, states = learner.memory, [base, *parts]
    dense = base.memory.slots.points.shape[1] > 0 or base.cells is not None
    if memory.merging is None or (memory.blends and not dense):
        who = f"{type(learner).__name__} with {memory!r}"
        raise cannot_merge(who, "use another memory, such as Strata() or Latest()")
    if base.cells is not None:
        contents = [one.cells for one in states if one.cells is not None]
    elif dense:
        contents = [one.memory.slots.points for one in states]
    else:
        contents = [np.hstack(_lists(one, states)) for one in states]
    state.memory, places = memory.merging.merge(base.memory, [part.memory for part in parts], contents, state.rng)
    if base.cells is not None:
        state.cells = places.take(contents)
    elif not dense:
        state.lazy = _merged_lists(state, states, places)


def _lists(one: State, states: Sequence[State]) -> tuple[Array, Array, Array]:
    """Return columns, values and counts of the entries of each slot, in arrays as wide as those of all states."""
    width = max(1 if other.lazy is None else other.lazy.columns.shape[1] for other in states)
    n, lazy = len(one.memory.slots.mass), one.lazy
    columns, values, counts = np.zeros((n, width), np.int32), np.zeros((n, width), one.w.dtype), np.zeros((n, 1), int)
    if lazy is not None:
        columns[:, : lazy.columns.shape[1]], values[:, : lazy.values.shape[1]] = lazy.columns, lazy.values
        counts[:, 0] = lazy.counts
        beyond = np.arange(width) >= counts
        columns[beyond], values[beyond] = 0, 0.0
    return columns, values, counts


def _merged_lists(state: State, states: Sequence[State], places: Places) -> LazyModel | None:
    """Return the lazy form of merged weights, with the entries of the slots."""
    known = next((one.lazy for one in states if one.lazy is not None), None)
    if known is None:
        return None
    lists = [_lists(one, states) for one in states]
    columns, values, counts = (places.take(list(own)) for own in zip(*lists, strict=True))
    lazy = sparse.lazy_weights(state, known.u_hat.shape[1] > 0, len(columns), columns.shape[1])
    lazy.columns, lazy.values, lazy.counts = columns, values, counts[:, 0]
    return lazy
