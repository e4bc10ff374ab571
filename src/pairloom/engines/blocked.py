"""The blocked engine: the iterates of ``reference`` for many models at once, at the speed of matrix products.

The content of a memory does not depend on the models, so all changes of the slots in a block are known before any
model is updated. A few matrix products combine the rows Z with the slots' points B and the weights W at the start of
the block,

    Z Z',   Z B',   Z W',   B W'

and learning inside the block only updates coefficients (``blocked_runs``): every new w is a linear combination of the
old w, the rows and the points, and every score is a combination of inner products. At the end of the block, the weights
are computed from the coefficients.

For a single model the ``fused`` engine is faster, because the products cost more than its loops over the slots. For two
or more models, side by side in a ``Grid``, this engine is faster.

Rounding: steps on coefficients differ from steps on vectors by a few units in the last place. Scores of the slots are
computed from W at the start of every block, so that errors do not accumulate. A shrinkage factor that becomes small is
multiplied into the coefficients. As in every engine, the memory's plan determines which stratum a row joins.

Cost per example, with b rows in a block, S slots of which s are partners, G models, runs of r rows with the same
partners: D (b + 2 S + 4 G (1 + S / b)) flops in products, twice the last term if models are averaged, and about
2 (s^2 + (S - s) s / r + b / 2 + S + s) flops for each model. The Gram matrix has (S + 2 b)^2 numbers at most.
"""

from dataclasses import field
from typing import Annotated

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.csr import is_sparse
from pairloom.base.tree import DERIVED, OPTIONAL, node
from pairloom.base.typing import Array
from pairloom.engines.base import plan_batch
from pairloom.engines.blocked_atoms import Atoms, Partners, make_block, partner_tables, unblend, write_slots
from pairloom.engines.blocked_lanes import SideBySide, Tile
from pairloom.engines.blocked_runs import OTHER, learn_models
from pairloom.engines.blocked_steps import Models
from pairloom.engines.state import State
from pairloom.features.base import dense_features
from pairloom.losses import with_loss

double, any_part = False, False

MAX_ABS_VALUE = 1e15
"""Models with larger weights or scores stop learning, before float32 overflows."""


@node
class GridState(State):
    """The state of many models after whole blocks of rows, and the rows of the open block.

    ``w`` and ``w_bar`` have one row per weight vector, in the order of ``Lanes``; ``w_bar`` only for averaged ones.
    ``tally`` has a column for each vector. ``gram``: inner products of the slots' points. ``frozen``: the first row of
    the block in which a vector diverged and stopped learning; 0 if it did not. ``open``: the rows of the open block.
    ``ahead``: the cached state after the rows of the open block, with their scores. ``faded`` (n, 2): pending
    forgetting within the open block, as (number of its rows before it, share that still counts).
    """

    gram: Annotated[Array, "R S S"] = field(default_factory=lambda: np.zeros((0, 0)))
    frozen: Annotated[Array, "i8 v 0:BIG"] = field(default_factory=lambda: np.zeros(0, np.int64))
    open: Batch | None = None
    ahead: "tuple[GridState, Array] | None" = field(default=None, repr=False, metadata=DERIVED)
    faded: Annotated[Array, "f8 _f 2 0:BIG"] | None = field(default=None, metadata=OPTIONAL)


def takes(grid: SideBySide, state: GridState, batch: Batch) -> bool:
    """Return True: this engine supports all rows."""
    return True


def run(grid: SideBySide, state: GridState, batch: Batch) -> Array:
    """Learn the rows of a block; return each row's scores before it was learned."""
    slots = state.memory.slots
    Z, U = map_rows(grid, state, batch)
    plan = plan_batch(grid.memory, state, batch, U)
    block = make_block(slots, state.gram, Z, batch, plan)
    partners = partner_tables(grid, slots, block)
    scores = np.empty((len(batch), len(grid.lanes)))
    # ``in_range`` detects overflow: that model stops learning, and is reported.
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
    """Return phi(x) and the points that the memory clusters, both dense."""
    X, Z = batch.X, dense_features(grid.features, state.phi, batch.X)
    if grid.memory.space == "features":
        return Z, Z
    return Z, grid.features.inputs(state.phi, X.toarray() if is_sparse(X) else X)


def learn_tile(state: GridState, tile: Tile, block: Atoms, partners: Partners) -> Array:
    """Learn a block of rows with the models of a tile; return each row's scores before it was learned."""
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
        overwrite(w_bar, new_bar, good)
    overwrite(w, new, good)
    overwrite(state.tally[:, where].T, models.tally.T, good)
    diverged = ~good & (frozen == 0)
    frozen[diverged] = state.t + 1
    models.scores[:, diverged] = (models.scores_0_bar if tile.averaging else models.scores_0)[:, diverged]
    return models.scores


def start_models(state: GridState, tile: Tile, block: Atoms) -> Models:
    """Return the models of a tile before the first row of a block; those that diverged have steps of length 0."""
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
    """Return factor sum_a coef_a atom_a + sum_h head_h w_h for each model."""
    S, kind = len(block.live), coef.dtype
    if len(block.sources):
        unblend(coef, block.sources, block.shares, S)
        coef = np.concatenate([coef[:S], coef[block.first_row :]])
    total: Array = (coef * factor.astype(kind)).T @ block.vectors
    for head, w in heads:
        total += head[:, None].astype(kind) * w
    return total


def in_range(rows: Array) -> Array:
    """Return which rows are finite and at most ``MAX_ABS_VALUE`` in size."""
    return np.asarray((rows.max(axis=1) <= MAX_ABS_VALUE) & (rows.min(axis=1) >= -MAX_ABS_VALUE))


def overwrite(old: Array, new: Array, which: Array) -> None:
    """Overwrite the chosen rows."""
    if which.all():
        old[:] = new
    else:
        old[which] = new[which]
