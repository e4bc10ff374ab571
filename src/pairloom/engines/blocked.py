"""The blocked engine: the iterates of ``reference`` for many models at once, at the speed of matrix products.

What a memory keeps does not depend on the models, so the slots' fate in a block of rows is known before a model moves.
Rows Z, the slots' points B at the start of the block and the weights W at its start meet in a few products,

    Z Z',   Z B',   Z W',   B W'

and all that learning does inside the block happens to coefficients (``blocked_runs``): every new w is a combination of
the old w, the rows and the points, and every score a combination of inner products. At the end of the block the
coefficients are multiplied out.

One model is for the ``fused`` engine: the products cost it more than its sweeps over the slots. From two models on,
side by side in a ``Grid``, blocks are faster.

Numbers. Steps on coefficients round otherwise than steps on vectors, by a few units in the last place. Scores of the
slots are taken anew from W at the start of every block, so that nothing drifts. A shrinking factor that becomes small
is multiplied into the coefficients. Which stratum a row joins is for the memory's plan to say, as in every engine.

Cost per example, with b rows in a block, S slots of which s are partners, G models, runs of r rows with the same
partners: D (b + 2 S + 4 G (1 + S / b)) flops in products, twice the last term if models are averaged, and about
2 (s^2 + (S - s) s / r + b / 2 + S + s) flops for each model. The Gram matrix has (S + 2 b)^2 numbers at most.
"""

from dataclasses import field

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.csr import is_sparse
from pairloom.base.tree import DERIVED, OPTIONAL, Rounded, node
from pairloom.base.typing import Array
from pairloom.engines.atoms import Atoms, Partners, make_block, partner_tables, unblend, write_slots
from pairloom.engines.base import plan_batch
from pairloom.engines.blocked_runs import OTHER, learn_models
from pairloom.engines.blocked_steps import Models
from pairloom.engines.lanes import SideBySide, Tile
from pairloom.engines.state import State
from pairloom.losses import with_loss

double, any_part = False, False

LARGEST = 1e15
"""Weights and scores beyond this are on their way out of the range of float32."""


@node
class GridState(State):
    """The state of many models after whole blocks of rows, and the rows of the open block.

    ``w`` and ``w_bar`` have one row per weight vector, in the order of ``Lanes``; ``w_bar`` only for averaged ones.
    ``tally`` has a column for each vector. ``gram``: inner products of the slots' points. ``frozen``: the first row of
    the block in which a vector left the range of numbers; 0 if none. ``open``: the rows
    of the open block. ``ahead``: the state after these too, with their scores, once it was asked for. ``faded`` (n, 2):
    what is to be forgotten on the way through the open block: after how many of its rows, and what counts then.
    """

    gram: Rounded = field(default_factory=lambda: np.zeros((0, 0)))
    frozen: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    open: Batch | None = None
    ahead: "tuple[GridState, Array] | None" = field(default=None, repr=False, metadata=DERIVED)
    faded: Array | None = field(default=None, metadata=OPTIONAL)


def takes(grid: SideBySide, state: GridState, batch: Batch) -> bool:
    """All rows."""
    return True


def run(grid: SideBySide, state: GridState, batch: Batch) -> Array:
    """Learn the rows of a block; return each row's scores by the models before they learned the row."""
    slots = state.memory.slots
    Z, U = map_rows(grid, state, batch)
    plan = plan_batch(grid.memory, state, batch, U)
    block = make_block(slots, state.gram, Z, batch, plan)
    partners = partner_tables(grid, slots, block)
    scores = np.empty((len(batch), len(grid.lanes)))
    # What overflows is found by ``in_range``: its model is frozen and reported.
    with np.errstate(over="ignore", invalid="ignore"):
        for tile in grid.lanes.tiles:
            scores[:, tile.start : tile.stop] = learn_tile(state, tile, block, partners[tile.target])
    write_slots(
        Z, batch.y, batch.query, plan.start, plan.slot, plan.blend, plan.mass,
        slots.points, slots.labels, slots.queries, slots.mass,
    )  # fmt: skip
    state.t += len(batch)
    return scores[:, grid.lanes.order]


def map_rows(grid: SideBySide, state: GridState, batch: Batch) -> tuple[Array, Array]:
    """phi(x) and the points by which rows are clustered, both dense."""
    X, Z = batch.X, grid.features.dense(state.phi, batch.X)
    if grid.memory.space == "features":
        return Z, Z
    return Z, grid.features.inputs(state.phi, X.toarray() if is_sparse(X) else X)


def learn_tile(state: GridState, tile: Tile, block: Atoms, partners: Partners) -> Array:
    """Learn a block of rows with the models of a tile; each row's scores before it was learned."""
    where = slice(tile.start, tile.stop)
    w, w_bar, frozen = state.w[where], state.w_bar[where], state.frozen[where]
    models = start_models(state, tile, block)
    with_loss(learn_models, tile.loss)(
        block.gram, block.first_row, block.batch.weight, tuple(block.events), tuple(partners), tuple(models)
    )
    new = multiply_out(block, models.coef, models.sigma, [(models.head * models.sigma, w)])
    good = (frozen == 0) & in_range(new) & in_range(models.scores.T)
    if tile.averaging:
        heads = zip(models.head_bar, (w, w_bar), strict=True)
        new_bar = multiply_out(block, models.coef_bar, np.ones(len(w)), list(heads))
        good &= in_range(new_bar)
        put(w_bar, new_bar, good)
    put(w, new, good)
    put(state.tally[:, where].T, models.tally.T, good)
    lost = ~good & (frozen == 0)
    frozen[lost] = state.t + 1
    models.scores[:, lost] = (models.scores_0_bar if tile.averaging else models.scores_0)[:, lost]
    return models.scores


def start_models(state: GridState, tile: Tile, block: Atoms) -> Models:
    """The models of a tile before the first row of a block; frozen ones have steps of length 0."""
    where, n, S = slice(tile.start, tile.stop), len(block.batch), len(block.live)
    w, w_bar = state.w[where], state.w_bar[where]
    t = state.ages(n)
    steps, rho = tile.step_table(t, block.batch.weight), tile.rate_table(t)
    frozen = state.frozen[where] > 0
    if frozen.any():
        steps = steps.copy()
        steps[0::2, :, frozen], steps[1::2, :, frozen], rho[:, frozen] = 1.0, 0.0, 0.0
    by_w = block.vectors @ w.T
    width, atoms, kind = len(w), len(block.gram), w.dtype
    head_bar = np.zeros((2, width))
    head_bar[OTHER] = 1.0
    return Models(
        tile.loss.code, bool(np.isfinite(tile.loss.smoothness)), tile.averaging, steps, rho,
        by_w[S:], block.rows @ w_bar.T, by_w[:S], np.ones(width), np.ones(width), head_bar,
        np.zeros((atoms, width), kind), np.zeros((atoms, len(w_bar)), kind),
        np.empty((n, width)), np.ascontiguousarray(state.tally[:, where]),
    )  # fmt: skip


def multiply_out(block: Atoms, coef: Array, factor: Array, heads: list[tuple[Array, Array]]) -> Array:
    """factor sum_a coef_a atom_a + sum_h head_h w_h for each model."""
    S, kind = len(block.live), coef.dtype
    if len(block.parts):
        unblend(coef, block.parts, block.shares, S)
        coef = np.concatenate([coef[:S], coef[block.first_row :]])
    total: Array = (coef * factor.astype(kind)).T @ block.vectors
    for head, w in heads:
        total += head[:, None].astype(kind) * w
    return total


def in_range(rows: Array) -> Array:
    """Which rows are finite and not about to overflow."""
    return np.asarray((rows.max(axis=1) <= LARGEST) & (rows.min(axis=1) >= -LARGEST))


def put(old: Array, new: Array, which: Array) -> None:
    """Overwrite some rows."""
    if which.all():
        old[:] = new
    else:
        old[which] = new[which]
