"""Changes of a forest during the stream: new trees, deeper trees, and the weights of their leaves."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.features.capabilities import Change
from pairloom.features.forest_state import Sample
from pairloom.features.tree_growth import grow_on
from pairloom.features.trees import Nodes, Tree, single, walk_one

LEARNING_RATE = 0.1
"""Learning rate of a boosted forest."""

NEWTON_STEPS, MIN_STEP = 20, 1e-10
"""Maximum number of steps to the offset of residuals, and the step at which it is reached; usually a few suffice."""


@dataclass(frozen=True)
class Replanted(Change):
    """A new tree that replaces another. ``cells``: its coordinates; ``starts`` (targets, leaves): initial weights.

    Coordinates without a leaf become 0.

    ``before``, ``after``: the old and the new leaf of each row of the sample. If given, the initial weights are
    scaled so that the scores of the new tree fit those of the old one, and the new leaves inherit the sums of squared
    gradients of the old leaves, averaged over rows.
    """

    cells: slice
    starts: Array
    before: Array | None = None
    after: Array | None = None

    def weights(self, w: Array) -> Array:
        own, starts, n = w[:, self.cells], self.starts[:, :, None], self.starts.shape[1]
        if self.before is not None and self.after is not None:
            starts = fitted_scale(own, self.starts, self.before, self.after)[:, None] * starts
        own[:, :n], own[:, n:] = starts, 0.0
        return w

    def squares(self, squares: Array) -> Array:
        own, n = squares[:, self.cells], self.starts.shape[1]
        if self.before is not None and self.after is not None:
            own[:, :n] = mean_by_leaf(own, self.before, self.after, n)
        else:
            own[:, :n] = 0.0
        own[:, n:] = 0.0
        return squares


@dataclass(frozen=True)
class Deepened(Change):
    """A tree whose leaves were split. ``cells``: its coordinates; ``of``: the old leaf that contains each new leaf;
    ``share``: the new leaf's share of the rows of the old one.

    Scores do not change. The sum of squared gradients is split by the same shares, as if the new leaves had existed
    from the start: smaller leaves take longer steps.
    """

    cells: slice
    of: Array
    share: Array

    def weights(self, w: Array) -> Array:
        own = w[:, self.cells]
        own[:, : len(self.of)] = own[:, self.of]
        return w

    def squares(self, squares: Array) -> Array:
        own = squares[:, self.cells]
        own[:, : len(self.of)] = own[:, self.of] * self.share[:, None]
        return squares


def deepen(
    nodes: Nodes, k: int, sample: Sample, targets: Array, least: int, rng: np.random.Generator, most: int
) -> tuple[Tree, Array, Array]:
    """Split the leaves of tree k as ``grow_tree`` would, by the rows of the sample, up to ``most`` nodes.

    Returns the tree, and ``of`` and ``share`` of its leaves as in :class:`Deepened`. One row is added to each leaf, so
    that no share is 0.
    """
    tree, old = unfolded(nodes.columns[k], nodes.values[k], nodes.yes[k], nodes.missing_yes[k], nodes.cells[k, -1])
    count = len(tree.yes)
    leaf = walk_one(sample.X, *tree, np.arange(count, dtype=np.int32))
    weights = (sample.weight / sample.weight.mean()).astype(np.float32)
    made, parent, leaf = grow_on(single(sample.X), targets.astype(np.float32), weights, least, 0, rng, tree, leaf, most)
    deeper = Tree(*made)
    ends = np.flatnonzero(deeper.yes == np.arange(len(deeper.yes)))
    before = parent[ends]
    rows = np.bincount(leaf, minlength=len(deeper.yes))[ends] + 1.0
    pieces = np.bincount(before, minlength=count)
    share = rows / np.bincount(before, rows, minlength=count)[before]
    return deeper, old[before], np.where(pieces[before] > 1, share, 1.0)


def unfolded(columns: Array, values: Array, yes: Array, missing_yes: Array, cells: Array) -> tuple[Tree, Array]:
    """Return a tree without the nodes that no row reaches, and the cell of each node."""
    old, first = np.zeros(len(yes), np.int32), np.arange(len(yes), dtype=np.int32)
    count = unfold(yes, old, first)
    kept, first = old[:count], first[:count]
    leaf = first == np.arange(count)  # where the tree is cut as well
    value = np.where(leaf, values.dtype.type(np.inf), values[kept])
    return Tree(columns[kept], value, first, leaf | missing_yes[kept]), cells[kept]


@compiled
def unfold(yes: Array, old: Array, first: Array) -> int:
    """Number nodes from the root and return their count. The tree is cut at the maximum number of nodes."""
    count, at = 1, 0
    while at < count:
        here = old[at]
        if yes[here] != here and count + 2 <= yes.shape[0]:
            first[at] = count
            old[count], old[count + 1] = yes[here], yes[here] + 1
            count += 2
        at += 1
    return count


@compiled
def fitted_scale(old: Array, starts: Array, before: Array, after: Array) -> Array:
    """Return the factors (targets, models) by which the scores of a new tree best fit those of the old one."""
    products = np.zeros((old.shape[0], old.shape[2]))
    for k in range(old.shape[0]):
        size = 1e-300
        for i in range(before.shape[0]):
            new = starts[k, after[i]]
            size += new * new
            for r in range(old.shape[2]):
                products[k, r] += new * old[k, before[i], r]
        for r in range(old.shape[2]):
            products[k, r] = max(0.0, products[k, r] / size)
    return products


@compiled
def mean_by_leaf(old: Array, before: Array, after: Array, n_leaves: int) -> Array:
    """Return the mean of the old leaves' values over the rows of each new leaf; 0 in a leaf without rows."""
    made, counts = np.zeros((old.shape[0], n_leaves, old.shape[2])), np.zeros(n_leaves)
    for i in range(before.shape[0]):
        counts[after[i]] += 1.0
        for k in range(old.shape[0]):
            for r in range(old.shape[2]):
                made[k, after[i], r] += old[k, before[i], r]
    for k in range(old.shape[0]):
        for c in range(n_leaves):
            for r in range(old.shape[2]):
                made[k, c, r] /= max(1.0, counts[c])
    return made


def votes(sample: Any, leaf: Array, n_leaves: int, targets: Array, exact: bool = False) -> Array:
    """Return the initial weights of leaves from the labels of their rows: (targets, leaves).

    They are the log-odds of a target's class in the leaf minus those of all rows, smoothed by one average row; without
    ``targets``, the mean of y minus that of all rows, divided by the standard deviation of y unless ``exact``.
    """
    unit = float(sample.weight.mean())
    if not len(targets):
        total = np.bincount(leaf, sample.weight, minlength=n_leaves) + unit
        mean, spread = moments(sample)
        over = sample.weight * (sample.y - mean) / (1.0 if exact else spread)
        return np.asarray(np.bincount(leaf, over, minlength=n_leaves) / total)[None]
    made = np.zeros((len(targets), n_leaves))
    for k, target in enumerate(targets):
        sides = [sample.weight * (sample.y == target), sample.weight * (sample.y != target)]
        shares = [side.sum() / sample.weight.sum() for side in sides]
        if min(shares) > 0:
            # Sum both sides: with very heavy rows, 1 minus one share would round to 0.
            own, rest = (
                np.log(np.bincount(leaf, side, minlength=n_leaves) + unit * share) - np.log(share)
                for side, share in zip(sides, shares, strict=True)
            )
            made[k] = own - rest
    return made


def moments(sample: Any) -> tuple[float, float]:
    """Return the mean and standard deviation of real labels; a standard deviation of 0 is replaced by 1."""
    mean = float(np.average(sample.y, weights=sample.weight))
    return mean, float(np.sqrt(np.average(np.square(sample.y - mean), weights=sample.weight))) or 1.0


def residuals(sample: Sample, targets: Array, exact: bool = False) -> tuple[Array, Array]:
    """Return residuals and curvatures of the scores that rows had on arrival: (rows, targets) each.

    They are y - p and p (1 - p), where p is the logistic function of the score plus an offset such that the mean
    residual is 0: pairs do not determine the offset. Without ``targets``, they are y (divided by its standard deviation
    unless ``exact``) minus the score and the offset, and 1.
    """
    if not len(targets):
        residual = sample.y[:, None] / (1.0 if exact else moments(sample)[1]) - sample.scores
        return residual - np.average(residual, axis=0, weights=sample.weight), np.ones_like(residual)
    own = sample.y[:, None] == targets
    weight = sample.weight[:, None] / sample.weight.sum()
    offset = np.zeros(len(targets))
    for _ in range(NEWTON_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(sample.scores + offset, -30, 30)))
        slope = (weight * p * (1.0 - p)).sum(axis=0)
        step = np.clip((weight * (own - p)).sum(axis=0) / np.maximum(slope, 1e-3), -2.0, 2.0)
        if np.abs(step).max() < MIN_STEP:
            break
        offset += step
    return own - p, p * (1.0 - p)


def corrections(sample: Sample, residual: Array, curvature: Array, leaf: Array, n_leaves: int) -> Array:
    """Return the Newton step of the scores in each leaf, times ``LEARNING_RATE``: (targets, leaves)."""
    unit = float(sample.weight.mean())
    made = np.empty((residual.shape[1], n_leaves))
    for k in range(len(made)):
        top = np.bincount(leaf, sample.weight * residual[:, k], minlength=n_leaves)
        made[k] = LEARNING_RATE * top / (np.bincount(leaf, sample.weight * curvature[:, k], minlength=n_leaves) + unit)
    return made
