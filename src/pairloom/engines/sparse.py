"""CSR rows in linear mode, sparse maps, and strata of CSR rows: an example costs its stored entries, not all columns.

The same iterates as ``reference``. Factors that a step would apply to all columns (shrinkage, averaging, moving
centres) are kept apart and multiplied in when they become too small; the slots' points are lists of entries. These
forms live in ``state.lazy``, and the dense arrays of the state are written from them at the end of every call: they are
what they would be after dense rows. (The points of a sparse map have no dense form; only its weights have.) Nothing
depends, to the bit, on how rows are cut into calls.

Cost: O((partners + strata) nnz) per example, with nnz stored entries per row and per point (a centroid has those of all
its members); O(d) for each model, and for each slot and stratum that changed, per call; 8 (strata + 2 models) d bytes
besides the state's own, and 8 models d more for steps per coordinate. O(d) for every step of a penalty with l1, unless
steps are per coordinate, and of centres with ``centroid_step=1``.
"""

from typing import Any

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.compiled import dot
from pairloom.base.csr import Rows, csr, is_sparse
from pairloom.base.typing import Array
from pairloom.engines import fused
from pairloom.engines.arguments import buffer_of, examples_of, objective_of, steps_of
from pairloom.engines.base import Parts, plan_batch
from pairloom.engines.coordinates import adaptive_steps
from pairloom.engines.sparse_kernels import MU, NU, SIGMA, SQUARE, A, B
from pairloom.engines.sparse_loops import learn_rows
from pairloom.engines.sparse_points import score_rows, write_points
from pairloom.engines.state import LazyModel, State
from pairloom.features import FeatureMap
from pairloom.features.sparse import as_csr, column_moments
from pairloom.losses import with_loss
from pairloom.memory import Plan

double, any_part = False, False

ROWS = 512
"""Rows whose memory events are planned at once."""


def center_of(state: State) -> Array:
    """m, that scaling takes from dense inputs but leaves in CSR inputs; empty if it is 0."""
    shift, scale = state.phi.scaler.shift, state.phi.scaler.scale
    return np.divide(shift, scale, dtype=float) if shift.any() else np.zeros(0)


def offset_of(features: FeatureMap, state: State) -> Array:
    """m, that is missing from phi(x) of CSR rows; empty if nothing is."""
    return np.zeros(0) if features.sparse else center_of(state)


def scores(features: FeatureMap, state: State, rows: Rows, w: Array) -> Array:
    """<w, z - m> of CSR rows: what dense rows score."""
    center = offset_of(features, state)
    result = np.empty(len(rows))
    score_rows(rows.data, rows.indices, rows.indptr, w, result)
    return result - dot(w.astype(float), center) if center.size else result


def stand_ins(points: Any) -> Array:
    """Two points on a line, as far from each other as two of these rows are on average: all that a memory asks for."""
    X = as_csr(points)
    n = X.shape[0]
    spread = n * np.square(column_moments(X)[1]).sum()
    return np.array([[0.0], [np.sqrt(2.0 * spread / max(1, n - 1))]])


def takes(learner: Parts, state: State, batch: Batch) -> bool:
    """Whether rows are for this engine: sparse maps; CSR rows that no map makes dense, and all rows after these."""
    stay_sparse = learner.features.keeps_csr or learner.memory.space == "input"
    return learner.features.sparse or (stay_sparse and (is_sparse(batch.X) or state.csr))


def run(learner: Parts, state: State, batch: Batch) -> Array:
    """``fused.run`` for sparse maps, for CSR rows in linear mode, and for CSR rows with strata in the input space."""
    result = np.empty((len(batch), len(state.w)))
    for start in range(0, len(batch), ROWS):
        part = slice(start, start + ROWS)
        run_block(learner, state, batch[part], result[part])
    settle(learner, state)
    return result


def run_block(learner: Parts, state: State, batch: Batch, scores: Array) -> None:
    """``run`` for rows that are planned together."""
    features = learner.features
    Z = features.rows(state.phi, batch.X) if features.sparse else inputs_of(learner, state, batch)
    plan = planned(learner, state, batch, Z)
    if features.keeps_csr or features.sparse:
        learn_block(learner, state, Z, batch, plan, scores)
    else:
        scores[:] = fused.learn_block(learner, state, features.apply(state.phi, batch.X), batch, plan)


def inputs_of(learner: Parts, state: State, batch: Batch) -> Any:
    """The scaled rows, CSR if these or any before them were."""
    state.csr = state.csr or is_sparse(batch.X)
    scaled = learner.features.inputs(state.phi, csr(batch.X) if state.csr else batch.X)
    return Rows.of(scaled) if state.csr else scaled


def planned(learner: Parts, state: State, batch: Batch, Z: Any) -> Plan:
    """What rows do to the memory; ``Z``: their features, if it asks for them."""
    features = learner.features
    U = inputs_of(learner, state, batch) if learner.memory.space == "input" and features.sparse else Z
    return plan_batch(learner.memory, state, batch, U, np.zeros(0) if U is Z and features.sparse else center_of(state))


def learn_block(learner: Parts, state: State, Z: Rows, batch: Batch, plan: Plan, scores: Array) -> None:
    """``fused.learn_block`` for CSR points; the state's dense arrays fall behind."""
    lazy = lazy_model(learner, state)
    t = state.ages(len(batch))
    make_room(lazy, plan, Z)
    points = lazy.columns, lazy.values, lazy.counts, lazy.stale
    with_loss(learn_rows, learner.pair_loss)(
        examples_of(learner, state, (Z.data, Z.indices, Z.indptr), batch), objective_of(learner),
        steps_of(learner, t, batch.weight), tuple(plan), buffer_of(state.memory.slots, points),
        (lazy.w_hat, lazy.u_hat, lazy.factors), offset_of(learner.features, state), state.tally, scores,
        adaptive_steps(learner, lazy.squares),
    )  # fmt: skip
    state.t += len(batch)


def lazy_model(learner: Parts, state: State) -> LazyModel:
    """The forms of the model and the slots, made from the dense arrays on the first CSR rows."""
    if state.lazy is None:
        averaging, slots = learner.average != "last", state.memory.slots
        center = offset_of(learner.features, state)
        w = state.w.astype(float)
        u = (state.w_bar if averaging else state.w[:, :0]).astype(float)
        factors = np.zeros((len(w), 6))
        factors[:, SIGMA] = factors[:, B] = 1.0
        factors[:, SQUARE] = np.square(w).sum(axis=1)
        if center.size:
            factors[:, MU] = w @ center
            factors[:, NU] = u @ center if averaging else 0.0
        full = [row + center if center.size else row for row in slots.points[slots.mass > 0]]
        entries = [np.flatnonzero(row) for row in full]
        shape = (len(slots.mass), max([1, *map(len, entries)]))
        model = LazyModel(
            w, u, factors, np.zeros(shape, np.int32), np.zeros(shape, slots.points.dtype),
            np.zeros(shape[0], np.int64), np.zeros(shape[0], bool),
            None if state.squares is None else state.squares.astype(float),
        )  # fmt: skip
        for j, row, columns in zip(np.flatnonzero(slots.mass > 0), full, entries, strict=True):
            model.counts[j] = len(columns)
            model.columns[j, : len(columns)], model.values[j, : len(columns)] = columns, row[columns]
        state.lazy = model
    return state.lazy


def relist(learner: Parts, state: State) -> None:
    """Make the forms of the model and the slots anew: the map has changed, and with it the state's dense weights."""
    state.lazy = None
    lazy, slots = lazy_model(learner, state), state.memory.slots
    rows = learner.features.rows(state.phi, slots.rows)
    lazy.counts[:] = np.where(slots.mass > 0, np.diff(rows.indptr), 0)
    lazy.columns = rows.indices.reshape(len(slots.mass), -1)
    lazy.values = rows.data.reshape(len(slots.mass), -1)


def make_room(lazy: LazyModel, plan: Plan, rows: Rows) -> None:
    """Let the lists of the slots be long enough for the planned events."""
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
    if learner.memory.space == "input" or not learner.features.sparse:
        learner.memory.settle(state.memory, center_of(state))
    lazy = state.lazy
    if lazy is not None:
        f = lazy.factors
        state.w[:] = f[:, [SIGMA]] * lazy.w_hat
        if learner.average != "last":
            state.w_bar[:] = f[:, [A]] * lazy.w_hat + f[:, [B]] * lazy.u_hat
        if state.squares is not None:
            state.squares[:] = lazy.squares
        if not learner.features.sparse:
            write_points(
                state.memory.slots.points, center_of(state), lazy.columns, lazy.values, lazy.counts, lazy.stale
            )  # fmt: skip
