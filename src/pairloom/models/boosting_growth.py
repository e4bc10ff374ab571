"""How a generation of boosted trees grows while rows arrive: bins first, then tree by tree, until it takes over."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pairloom.base.clock import NEVER, generation_end, row_between
from pairloom.base.typing import Array
from pairloom.engines.bins import N_BINS, N_CUTS
from pairloom.engines.boosting import BLOCK_TREES
from pairloom.models.boosting_state import Bins, BoostingState, Curve, Generation, Growing, Trees

if TYPE_CHECKING:
    from pairloom.models.boosting import Boosting

Action = Callable[["Boosting", BoostingState, Any], None]
"""What is due: a function of model, state and the loops of an engine."""

FIRST_LEAVES, MIN_LEAVES, MIN_GOAL = 7, 4, 40
"""Leaves of the first trees, the fewest, and the fewest trees that a generation aims at."""

ROWS_PER_LEAF, DEEPEN_AT, LEVEL_OFF_AT = 128, 0.85, 0.4
"""Trees become larger if the best sum has at least 85 % of the trees aimed at, and the ring 128 rows for each leaf, and
smaller if it has less than 40 % of the maximum."""

CURVE_MEMORY = 0.5
"""Weight of the curve of the generation before."""

SERVED_SHARE = 0.45
"""The mean of two generations predicts once both were grown on at least this share of a full ring."""

ADDITIONS_PER_ROW, MIN_COLUMNS = 20_000, 16
"""Additions in histograms that an arriving row may cost; fewer columns are tried for each tree if it would cost more,
but at least 16."""

SAMPLE_ROWS, MANY_ROWS, FEW_COLUMNS = 4096, 4000, 24
"""Rows of the ring from which bins are fitted; numbers get 63 bins with at least 4,000 rows or at most 24 columns, and
31 otherwise."""

BIN_STEPS = 8
"""Minimum number of steps in which columns get new bins; with many columns, 8 of them in a step."""

ROWS_APART = 16
"""Minimum number of rows between two steps of a growing generation."""

KEEP_BINS = 4
"""Bins are fitted again when the number of rows has doubled, later after four times the rows of the ring."""


def begin(model: "Boosting", state: BoostingState) -> None:
    """Begin the next period: make room for its rows, and start a generation if there are two rows of two classes."""
    start, state.end = state.age, generation_end(state.age, model.n_rows)
    size = min(model.n_rows, state.end)
    if size > len(state.ring.y):
        state.make_room(size)
    n = state.ring.count
    if start == 0 or np.sum(state.ring.class_sizes >= 2) < 2:
        return
    if state.fitted == 0 or (start >= 2 * state.fitted and start <= model.n_rows) or (
        start >= state.fitted + KEEP_BINS * model.n_rows
    ):  # fmt: skip
        state.fitted = start
        d = state.ring.X.shape[1]
        state.bins.append(Bins(np.full((d, N_CUTS), np.inf, state.ring.X.dtype), model.category(d)))
        binned = 0
    else:
        binned = state.ring.X.shape[1]
    state.growing = started(model, state, n, binned)


def started(model: "Boosting", state: BoostingState, n: int, binned: int) -> Growing:
    """Return a generation without trees."""
    targets, span = model.pairs.targets, state.end - state.age
    goal = min(model.n_trees, state.goal, span)
    ring = state.ring.class_weights
    unit = float(ring.sum() / n)
    inside, came = (of_targets(weights, model) for weights in (ring, state.came))
    outside, other = ring.sum() - inside, state.came.sum() - came
    # Rare classes stay in the ring for longer: arriving rows are weighted as if classes were as frequent as there.
    factors = (inside / np.maximum(outside, unit)) / ((came + unit) / (other + unit))
    generation = Generation(
        Trees.empty(len(targets), goal, state.max_leaves),
        np.log((inside + 0.5 * unit) / (outside + 0.5 * unit)), len(state.bins) - 1, n, unit,
    )  # fmt: skip
    additions = 2.5 * n + 6.0 * N_BINS * state.max_leaves
    tried = int(ADDITIONS_PER_ROW * span / (goal * len(targets) * additions))
    scores = np.tile(generation.base, (len(state.ring.y), 1))
    curve = empty_curve(model, state.max_leaves)
    return Growing(generation, curve, state.age, goal, 0, binned, max(MIN_COLUMNS, tried), scores, factors)


def of_targets(weights: Array, model: "Boosting") -> Array:
    """Return the weights of the classes of the targets."""
    return np.asarray(weights[model.pairs.targets.astype(np.int64)])


def empty_curve(model: "Boosting", max_leaves: int) -> Curve:
    """Return a curve without rows."""
    shape = (model.n_vectors, -(-model.n_trees // BLOCK_TREES))
    return Curve(max_leaves, np.zeros(shape), np.zeros(shape))


def next_step(state: BoostingState) -> tuple[int, Action]:
    """Return the age at which the growing generation gets bins or a tree, or the period ends, and the function for it.

    Steps are at least 16 rows apart; trees due within these are grown together.
    """
    growing, end = state.growing, state.end
    if state.fixed:
        return NEVER, next_period
    if growing is None:
        return end, next_period
    d, total = state.ring.X.shape[1], growing.goal * growing.scores.shape[1]
    if growing.binned < d:
        steps = bin_steps(end - growing.start, d)
        row, action = row_between(growing.start, end, growing.binned * steps // d + 1, 10 * steps), bin_more
    elif growing.done < total:  # the first tree after a tenth of the rows, the last before nine tenths
        row, action = row_between(growing.start, end, total + 8 * growing.done, 10 * total), grow_tree
    else:
        return end, next_period
    return min(end, row + -row % ROWS_APART), action


def bin_steps(span: int, d: int) -> int:
    """Return the number of steps in which d columns get new bins."""
    return max(1, min(span // 10, d, max(BIN_STEPS, d // 8)))


def work(model: "Boosting", state: BoostingState, loops: Any) -> None:
    """Do what is due at this age."""
    row, action = next_step(state)
    while state.age >= row:
        action(model, state, loops)
        row, action = next_step(state)


def next_period(model: "Boosting", state: BoostingState, loops: Any) -> None:
    """Let the growing generation take over, and begin the next period."""
    if state.growing is not None:
        take_over(model, state, state.growing)
    begin(model, state)


def bin_more(model: "Boosting", state: BoostingState, loops: Any) -> None:
    """Fit the bins of some more columns, and bin the rows of the ring."""
    ring, bins, growing = state.ring, state.bins[-1], state.growing
    assert growing is not None
    n, d = ring.count, ring.X.shape[1]
    steps = bin_steps(state.end - growing.start, d)
    step = growing.binned * steps // d + 1
    start, end = growing.binned, -(-d * step // steps)
    for c in range(start, end):
        values = ring.X[: n : max(1, n // SAMPLE_ROWS), c]
        values = np.sort(values[~np.isnan(values)])
        n_bins = N_BINS - 1 if n >= MANY_ROWS or d <= FEW_COLUMNS else N_BINS // 2 - 1
        loops.fit_cuts(values, bins.category[c], max(2, len(values) // 2000), n_bins, bins.cuts[c])
    loops.bin_columns(ring.X, n, start, end, bins.category, bins.cuts, state.ring_bins)
    growing.binned = end


def grow_tree(model: "Boosting", state: BoostingState, loops: Any) -> None:
    """Grow the next tree; the targets take turns."""
    ring, growing, n, d = state.ring, state.growing, state.ring.count, state.ring.X.shape[1]
    assert growing is not None
    made, bins = growing.generation, state.bins[-1]
    t, k = divmod(growing.done, growing.scores.shape[1])
    growing.done += 1
    target = float(model.pairs.targets[k])
    positive = ring.class_sizes[int(target)]
    if min(positive, n - positive) < 2:
        return
    columns = np.arange(d)
    if growing.n_columns < d:
        columns = np.sort(state.rng.choice(d, growing.n_columns, replace=False))
    growth = (
        growing.curve.max_leaves, min(model.min_rows, max(2, n // 20)), model.alpha, model.learning_rate,
        int(state.rng.integers(2**31)), target, made.unit,
    )  # fmt: skip
    loops.grow(
        state.ring_bins, columns, bins.category, ring.y[:n], ring.weight[:n], growing.scores[:n, k], growth,
        tuple(array[k, t] for array in made.trees.arrays),
    )  # fmt: skip
    made.trees.grown[k] = t + 1


def take_over(model: "Boosting", state: BoostingState, growing: Growing) -> None:
    """Cut the generation where the loss of unseen rows was smallest, and let it predict."""
    generation, curve = growing.generation, growing.curve
    trees = generation.trees
    if state.curve is not None and state.curve.max_leaves == curve.max_leaves:
        curve.drops += CURVE_MEMORY * state.curve.drops
        curve.mass += CURVE_MEMORY * state.curve.mass
    state.curve = curve
    reduced = np.cumsum(curve.drops / np.maximum(curve.mass, 1e-300), axis=1)
    kept = np.zeros(len(trees.grown), np.int64)
    for k, grown in enumerate(trees.grown.tolist()):
        own = reduced[k, : grown // BLOCK_TREES]
        blocks = int(np.argmax(own)) + 1 if len(own) and own.max() > 0 else 1
        kept[k] = min(grown, BLOCK_TREES * blocks)
    generation.trees = trees.cut(kept)
    best = float(kept.mean())
    size = state.max_leaves
    if best >= DEEPEN_AT * growing.goal and growing.goal >= LEVEL_OFF_AT * model.n_trees and (
        generation.rows >= ROWS_PER_LEAF * size
    ):  # fmt: skip
        state.max_leaves = max(size, min(model.max_leaves, 2 * size + 1))
    elif growing.goal >= MIN_GOAL and best < LEVEL_OFF_AT * model.n_trees:
        state.max_leaves = min(size, max(MIN_LEAVES, (size - 1) // 2))
    if growing.goal >= MIN_GOAL:
        state.goal = max(MIN_GOAL, int(2 * best))
    serve(model, state, generation)
    state.growing = None


def serve(model: "Boosting", state: BoostingState, generation: Generation) -> None:
    """Predict with a generation, and with the one before it if both were grown on many rows."""
    full = [one for one in (*state.generations, generation) if one.rows >= SERVED_SHARE * model.n_rows]
    state.generations = full[-2:] if full else [generation]
    used = sorted({one.bins for one in state.generations} | {len(state.bins) - 1})
    state.bins = [state.bins[i] for i in used]
    for one in state.generations:
        one.bins = used.index(one.bins)
