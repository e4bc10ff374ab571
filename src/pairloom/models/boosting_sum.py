"""Scores of boosted trees: for a model that learns, in a race, and for prediction only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from pairloom.base.graph import Value
from pairloom.base.spec import WrongState
from pairloom.base.tree import copy, node
from pairloom.base.typing import Array
from pairloom.engines import boosting
from pairloom.features.capabilities import FrozenShare, FrozenSum
from pairloom.features.contributions import Contrast
from pairloom.models.boosting_contributions import contribute_boosted
from pairloom.models.boosting_graph import boosted_onnx
from pairloom.models.boosting_state import Bins, Generation


def binned(bins: Bins, X: Array, loops: Any = boosting) -> Array:
    """Return the bins of rows."""
    out = np.empty(X.shape, np.uint8)
    loops.bin_rows(X, bins.category, bins.cuts, out)
    return out


@dataclass(frozen=True)
class BoostedSum:
    """The mean score of generations, times ``slopes`` (1, classes)."""

    bins: Sequence[Bins]
    generations: Sequence[Generation]
    slopes: Array

    def add(self, X: Array, out: Array) -> None:
        total, rows = np.zeros_like(out), {one.bins: binned(self.bins[one.bins], X) for one in self.generations}
        for one in self.generations:
            total += one.base
            boosting.walk(rows[one.bins], one.trees.arrays, one.trees.grown, total)
        out += self.slopes[0] * (total / max(1, len(self.generations)))

    @property
    def explainable(self) -> "BoostedSum":
        return self

    def contribute(self, contrast: Contrast, out: Array) -> None:
        weights = contrast.weights * (self.slopes[0] / max(1, len(self.generations)))
        for one in self.generations:
            bins = self.bins[one.bins]
            rows, background = (binned(bins, X) for X in (contrast.rows, contrast.background))
            contribute_boosted(rows, background, contrast.players, weights, one.trees.arrays, one.trees.grown, out)

    def frozen(self, share: FrozenShare) -> "FrozenBoosting":
        bins, generations = copy(list(self.bins)), copy(list(self.generations))
        return FrozenBoosting(*share, bins, generations, self.slopes.copy())


@node
class FrozenBoosting(FrozenSum):
    """The fields of :class:`BoostedSum`."""

    bins: list[Bins]
    generations: list[Generation]
    slopes: Annotated[Array, "f8 1 v"]

    def check(self) -> None:
        check_bins(self.generations, self.bins)

    def add(self, X: Array, out: Array) -> None:
        BoostedSum(self.bins, self.generations, self.slopes).add(X, out)

    @property
    def explainable(self) -> "FrozenBoosting":
        return self

    def contribute(self, contrast: Contrast, out: Array) -> None:
        BoostedSum(self.bins, self.generations, self.slopes).contribute(contrast, out)

    def to_onnx(self, x: Value) -> Value:
        return boosted_onnx(self.bins, self.generations, self.slopes[0], x)


def check_bins(generations: Sequence[Generation], bins: Sequence[Bins]) -> None:
    """Raise ValueError unless each generation has bins."""
    for i, one in enumerate(generations):
        if one.bins >= len(bins):
            raise WrongState(f"must be one of {len(bins)} bins", f"generations.{i}.bins")
