"""Scores of boosted trees: for a model that learns, in a race, and for prediction only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from pairloom.base.spec import WrongState
from pairloom.base.tree import copy, node
from pairloom.base.typing import Array
from pairloom.engines import boosting
from pairloom.features.capabilities import FrozenShare, FrozenSum
from pairloom.models.boosting_state import Bins, Generation


def add_scores(
    bins: Sequence[Bins], generations: Sequence[Generation], category: Array, X: Array, out: Array, loops: Any = boosting
) -> None:
    """Add the score of each generation to ``out`` (rows, targets)."""
    binned: dict[int, Array] = {}
    for one in generations:
        if one.bins not in binned:
            rows = binned[one.bins] = np.empty(X.shape, np.uint8)
            loops.bin_rows(X, category, bins[one.bins].cuts, X.shape[1], rows)
        out += one.base
        loops.walk(binned[one.bins], one.trees.arrays, one.trees.grown, out)


@dataclass(frozen=True)
class BoostedSum:
    """The mean score of generations, times ``slopes`` (1, classes)."""

    bins: Sequence[Bins]
    generations: Sequence[Generation]
    category: Array
    slopes: Array

    def add(self, X: Array, out: Array) -> None:
        total = np.zeros_like(out)
        add_scores(self.bins, self.generations, self.category, X, total)
        out += self.slopes[0] * (total / max(1, len(self.generations)))

    def frozen(self, share: FrozenShare) -> "FrozenBoosting":
        bins, generations = copy(list(self.bins)), copy(list(self.generations))
        return FrozenBoosting(*share, bins, generations, self.category.copy(), self.slopes.copy())


@node
class FrozenBoosting(FrozenSum):
    """The fields of :class:`BoostedSum`."""

    bins: list[Bins]
    generations: list[Generation]
    category: Annotated[Array, "b1 d"]
    slopes: Annotated[Array, "f8 1 v"]

    def check(self) -> None:
        check_bins(self.generations, self.bins)

    def add(self, X: Array, out: Array) -> None:
        BoostedSum(self.bins, self.generations, self.category, self.slopes).add(X, out)


def check_bins(generations: Sequence[Generation], bins: Sequence[Bins]) -> None:
    """Raise ValueError unless each generation has bins."""
    for i, one in enumerate(generations):
        if one.bins >= len(bins):
            raise WrongState(f"must be one of {len(bins)} bins", f"generations.{i}.bins")
