"""The sparse engine for CSR rows of linear models, sparse maps, and strata of CSR rows: the cost is linear in nnz.

It computes the iterates of ``reference``. Factors that a step would apply to all columns (shrinkage, averaging, updates
of centres) are stored separately and multiplied in when they become too small; the slots' points are lists of entries.
``state.lazy`` holds this lazy form. At the end of every call, the dense arrays of the state are computed from it, as
they would be after dense rows. (For a sparse map, only the weights have a dense form, not the points.) Results are
bitwise identical for any split of the rows into calls.

Cost: O((partners + strata) nnz) per example, with nnz stored entries per row and per point (a centroid has those of all
its members); per call, O(d) for each model, and for each slot and stratum that changed; 8 (strata + 2 models) d bytes
in addition to the state, and 8 models d more for steps per coordinate. Every step with an l1 penalty is O(d), unless
steps are per coordinate, and so is every update of centres with ``centroid_step=1``.
"""

from typing import Any

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.compiled import dot
from pairloom.base.csr import CSRRows, is_sparse, to_csr
from pairloom.base.typing import Array
from pairloom.engines import fused
from pairloom.engines.arguments import adaptive_steps, buffer_of, examples_of, objective_of, steps_of
from pairloom.engines.base import Parts, plan_batch
from pairloom.engines.sparse_loops import learn_rows, score_rows, write_points
from pairloom.engines.sparse_steps import MU, NU, SIGMA, SQUARE, A, B
from pairloom.engines.state import LazyModel, State
from pairloom.features import FeatureMap
from pairloom.features.scaling import as_csr, column_moments
from pairloom.losses import with_loss
from pairloom.memory import Plan

double, any_part = False, False

BLOCK_ROWS = 512
"""Number of rows whose memory events are planned at once."""


def center_of(state: State) -> Array:
    """Return m, which scaling subtracts from dense inputs but not from CSR inputs; empty if it is 0."""
    shift, scale = state.phi.scaler.shift, state.phi.scaler.scale
    return np.divide(shift, scale, dtype=float) if shift.any() else np.zeros(0)


def offset_of(features: FeatureMap, state: State) -> Array:
    """Return m, the difference between phi(x) of CSR rows and of dense rows; empty if it is 0."""
    return center_of(state) if features.sparse is None else np.zeros(0)


def scores(features: FeatureMap, state: State, rows: CSRRows, w: Array) -> Array:
    """Return <w, z - m> of CSR rows, the scores of the same dense rows."""
    center = offset_of(features, state)
    result = np.empty(len(rows))
    score_rows(rows.data, rows.indices, rows.indptr, w, result)
    return result - dot(w.astype(float), center) if center.size else result


def two_points_at_mean_distance(points: Any) -> Array:
    """Return two points on a line at the mean distance between these rows; memories need only this distance."""
    X = as_csr(points)
    n = X.shape[0]
    spread = n * np.square(column_moments(X)[1]).sum()
    return np.array([[0.0], [np.sqrt(2.0 * spread / max(1, n - 1))]])


def takes(learner: Parts, state: State, batch: Batch) -> bool:
    """Return True for sparse maps, for CSR rows that the map does not make dense, and for all later rows."""
    if learner.features.sparse is None and not (state.csr or is_sparse(batch.X)):
        return False
    return learner.features.sparse is not None or learner.features.keeps_csr or learner.memory.space == "input"


def run(learner: Parts, state: State, batch: Batch) -> Array:
    """Learn rows in order; return each row's scores before it was learned."""
    state.combination = None  # of dense points; all later rows are learned here
    result = np.empty((len(batch), len(state.w)))
    for start in range(0, len(batch), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        run_block(learner, state, batch[rows], result[rows])
    settle(learner, state)
    return result


def run_block(learner: Parts, state: State, batch: Batch, scores: Array) -> None:
    """Learn rows whose memory events are planned together; fill ``scores``."""
    features, sparse = learner.features, learner.features.sparse
    Z = inputs_of(learner, state, batch) if sparse is None else sparse.rows(state.phi, batch.X)
    plan = plan_rows(learner, state, batch, Z)
    if features.keeps_csr or sparse is not None:
        learn_block(learner, state, Z, batch, plan, scores)
    else:
        scores[:] = fused.learn_block(learner, state, features.apply(state.phi, batch.X), batch, plan)


def inputs_of(learner: Parts, state: State, batch: Batch) -> Any:
    """Return the scaled rows; as CSR if these or any earlier rows are CSR."""
    state.csr = state.csr or is_sparse(batch.X)
    scaled = learner.features.inputs(state.phi, to_csr(batch.X) if state.csr else batch.X)
    return CSRRows.of(scaled) if state.csr else scaled


def plan_rows(learner: Parts, state: State, batch: Batch, Z: Any) -> Plan:
    """Plan the memory events of rows; ``Z``: their features, for memories that use them."""
    sparse = learner.features.sparse is not None
    U = inputs_of(learner, state, batch) if learner.memory.space == "input" and sparse else Z
    return plan_batch(learner.memory, state, batch, U, np.zeros(0) if U is Z and sparse else center_of(state))


def learn_block(learner: Parts, state: State, Z: CSRRows, batch: Batch, plan: Plan, scores: Array) -> None:
    """Do the same as ``fused.learn_block`` for CSR points; the dense arrays of the state are not updated."""
    lazy = lazy_model(learner, state)
    lengthen_lists(lazy, plan, Z)
    points = lazy.columns, lazy.values, lazy.counts, lazy.stale
    with_loss(learn_rows, learner.pair_loss)(
        examples_of(learner, state, (Z.data, Z.indices, Z.indptr), batch), objective_of(learner),
        steps_of(learner, state, batch.weight), tuple(plan), buffer_of(state.memory.slots, points),
        (lazy.w_hat, lazy.u_hat, lazy.factors), offset_of(learner.features, state), state.tally, scores,
        adaptive_steps(learner, lazy.squares),
    )  # fmt: skip
    state.t += len(batch)


def lazy_model(learner: Parts, state: State) -> LazyModel:
    """Return the lazy form of the weights and the slots, created from the dense arrays at the first CSR rows."""
    if state.lazy is not None:
        return state.lazy
    averaging, slots = learner.average != "last", state.memory.slots
    center = offset_of(learner.features, state)
    full = [row + center if center.size else row for row in slots.points[slots.mass > 0]]
    entries = [np.flatnonzero(row) for row in full]
    lazy = lazy_weights(state, averaging, len(slots.mass), max([1, *map(len, entries)]))
    if center.size:
        lazy.factors[:, MU] = lazy.w_hat @ center
        lazy.factors[:, NU] = lazy.u_hat @ center if averaging else 0.0
    for j, row, columns in zip(np.flatnonzero(slots.mass > 0), full, entries, strict=True):
        lazy.counts[j] = len(columns)
        lazy.columns[j, : len(columns)], lazy.values[j, : len(columns)] = columns, row[columns]
    return lazy


def lazy_weights(state: State, averaging: bool, n_slots: int = 0, room: int = 1) -> LazyModel:
    """Return the lazy form of the weights, created from the dense arrays, with empty slots, if there is none yet."""
    if state.lazy is None:
        w = state.w.astype(float)
        factors = np.zeros((len(w), 6))
        factors[:, SIGMA] = factors[:, B] = 1.0
        factors[:, SQUARE] = np.square(w).sum(axis=1)
        state.lazy = LazyModel(
            w, (state.w_bar if averaging else state.w[:, :0]).astype(float), factors,
            np.zeros((n_slots, room), np.int32), np.zeros((n_slots, room), state.w.dtype),
            np.zeros(n_slots, np.int64), np.zeros(n_slots, bool),
            None if state.squares is None else state.squares.astype(float),
        )  # fmt: skip
    return state.lazy


def write_weights(state: State, lazy: LazyModel, averaging: bool) -> None:
    """Compute the dense weights from their lazy form."""
    f = lazy.factors
    state.w[:] = f[:, [SIGMA]] * lazy.w_hat
    if averaging:
        state.w_bar[:] = f[:, [A]] * lazy.w_hat + f[:, [B]] * lazy.u_hat


def rebuild_lazy(learner: Parts, state: State) -> None:
    """Rebuild the lazy form after the map and the dense weights have changed."""
    assert learner.features.sparse is not None
    state.lazy = None
    lazy, slots = lazy_model(learner, state), state.memory.slots
    rows = learner.features.sparse.rows(state.phi, slots.rows)
    lazy.counts[:] = np.where(slots.mass > 0, np.diff(rows.indptr), 0)
    lazy.columns = rows.indices.reshape(len(slots.mass), -1)
    lazy.values = rows.data.reshape(len(slots.mass), -1)


def lengthen_lists(lazy: LazyModel, plan: Plan, rows: CSRRows) -> None:
    """Resize the lists of the slots for the planned events."""
    if not len(plan.slot):
        return
    length = np.repeat(np.diff(rows.indptr), np.diff(plan.start))
    joins = (plan.blend > 0) & (plan.blend < 1)
    longest = max(lazy.counts.max(), length.max())
    grown = longest + np.bincount(plan.slot[joins], length[joins], minlength=1).max()
    need, have = int(min(grown, lazy.w_hat.shape[1])), lazy.columns.shape[1]
    if need > have:
        more = ((0, 0), (0, need - have))
        lazy.columns, lazy.values = np.pad(lazy.columns, more), np.pad(lazy.values, more)


def settle(learner: Parts, state: State) -> None:
    """Bring the dense arrays of the state up to date."""
    clusters = learner.memory.csr
    if clusters is not None and (learner.memory.space == "input" or learner.features.sparse is None):
        clusters.settle(state.memory, center_of(state))
    lazy = state.lazy
    if lazy is not None:
        write_weights(state, lazy, learner.average != "last")
        if state.squares is not None:
            state.squares[:] = lazy.squares
        if learner.features.sparse is None:
            write_points(
                state.memory.slots.points, center_of(state), lazy.columns, lazy.values, lazy.counts, lazy.stale
            )  # fmt: skip
