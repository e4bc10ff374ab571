"""Leaves that are split further while the stream runs: a tree gets finer, and nothing that it has learned is lost."""

from dataclasses import dataclass

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.features.base import Change
from pairloom.features.grower import grow_on, n_tries
from pairloom.features.growth import Sample
from pairloom.features.trees import Nodes, Tree, single, walk_one


@dataclass(frozen=True)
class Deepened(Change):
    """The leaves of one tree were split. ``cells``: its coordinates; ``of``: the old leaf of which each new one is a
    part; ``share``: of the rows of that.

    Every score stays as it was. Of the sum of squared gradients a part has its share, as if it had been there from the
    start: the smaller it is, the longer its steps.
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
    nodes: Nodes, k: int, sample: Sample, targets: Array, least: int, rng: np.random.Generator
) -> tuple[Tree, Array, Array]:
    """Tree k with leaves split as ``grow_tree`` would, by the rows of the sample, as far as there is room.

    Returns the tree, and ``of`` and ``share`` of its leaves as in :class:`Deepened`; a leaf without rows has a share as
    if there were one in its old leaf.
    """
    tree, old = unfolded(nodes.columns[k], nodes.values[k], nodes.yes[k], nodes.missing_yes[k], nodes.cells[k, -1])
    count = len(tree.yes)
    leaf = np.empty(sample.count, np.int32)
    walk_one(sample.columns, *tree, np.arange(count, dtype=np.int32), leaf)
    tries = n_tries(sample.columns, sample.count)
    weights = (sample.weight / sample.weight.mean()).astype(np.float32)
    parts, parent = grow_on(
        single(sample.columns), targets.astype(np.float32), weights, least, tries, rng, tree, leaf, nodes.yes.shape[1]
    )  # fmt: skip
    made = Tree(*parts)
    ends = np.flatnonzero(made.yes == np.arange(len(made.yes)))
    before = parent[ends]
    walk_one(sample.columns, *made, np.arange(len(made.yes), dtype=np.int32), leaf)
    rows = np.bincount(leaf, minlength=len(made.yes))[ends] + 1.0
    pieces = np.bincount(before, minlength=count)
    share = rows / np.bincount(before, rows, minlength=count)[before]
    return made, old[before], np.where(pieces[before] > 1, share, 1.0)


def unfolded(columns: Array, values: Array, yes: Array, missing_yes: Array, cells: Array) -> tuple[Tree, Array]:
    """A tree without the nodes that no row comes to, and the cell of each node."""
    old, first = np.zeros(len(yes), np.int32), np.arange(len(yes), dtype=np.int32)
    count = unfold(yes, old, first)
    kept = old[:count]
    return Tree(columns[kept], values[kept], first[:count], missing_yes[kept]), cells[kept]


@compiled
def unfold(yes: Array, old: Array, first: Array) -> int:
    """Number nodes from the root on; their number. A tree whose nodes are not its own is cut where there is no room."""
    count, at = 1, 0
    while at < count:
        here = old[at]
        if yes[here] != here and count + 2 <= yes.shape[0]:
            first[at] = count
            old[count], old[count + 1] = yes[here], yes[here] + 1
            count += 2
        at += 1
    return count
