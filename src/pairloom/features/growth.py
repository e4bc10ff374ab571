"""Trees that are grown while the stream runs: what is kept for them, and how the leaves of a new tree start."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.compiled import compiled
from pairloom.base.csr import is_sparse
from pairloom.base.tree import Rounded, node
from pairloom.base.typing import Array
from pairloom.features.base import Change

RATE = 0.1
"""How much of what is still wrong a new tree of a boosted forest takes on."""


@node
class Sample:
    """The newest rows, in a ring: their ``columns`` (d, size), labels, weights, and the scores that they came with."""

    columns: Rounded
    y: Array
    weight: Array
    scores: Array
    count: int = 0

    @classmethod
    def empty(cls, size: int, n_features: int) -> "Sample":
        """Room for ``size`` rows; for scores, once it is known how many a row has."""
        return cls(np.zeros((n_features, size)), np.zeros(size), np.zeros(size), np.zeros((size, 0)))

    def add(self, batch: Batch, scores: Array) -> None:
        """Take rows in."""
        size = len(self.y)
        if not self.scores.shape[1]:
            self.scores = np.zeros((size, scores.shape[1]))
        newest = slice(max(0, len(batch) - size), None)
        to = (self.count + np.arange(len(batch))[newest]) % size
        X = batch.X[newest]
        self.columns[:, to] = (X.toarray() if is_sparse(X) else X).T
        self.y[to], self.weight[to], self.scores[to] = batch.y[newest], batch.weight[newest], scores[newest]
        self.count += len(batch)

    def rows(self, most: int | None = None) -> "Sample":
        """Those that are there, or the newest of them, ``count`` in all, in the first columns; in no order."""
        size = len(self.y)
        n = min(self.count, size if most is None else most)
        if n == min(self.count, size):
            return Sample(self.columns, self.y[:n], self.weight[:n], self.scores[:n], n)
        newest = np.arange(self.count - n, self.count) % size
        columns = np.take(self.columns, newest, axis=1)
        return Sample(columns, self.y[newest], self.weight[newest], self.scores[newest], n)


@dataclass(frozen=True)
class Replanted(Change):
    """One tree has become another. ``cells``: its coordinates; ``starts`` (targets, leaves): weights to begin with.

    ``before``, ``after``: the old and the new leaf of each row of the sample. If they are there, the starts are
    multiplied so that the new tree's scores fit the old tree's, and what the old leaves knew of the size of gradients
    is handed on, row by row.
    """

    cells: slice
    starts: Array
    before: Array | None = None
    after: Array | None = None

    def weights(self, w: Array) -> Array:
        starts = self.starts[:, :, None]
        if self.before is not None and self.after is not None:
            starts = fitting(w[:, self.cells], self.starts, self.before, self.after)[:, None] * starts
        w[:, self.cells] = starts
        return w

    def squares(self, squares: Array) -> Array:
        own = squares[:, self.cells]
        known = self.before is not None and self.after is not None
        squares[:, self.cells] = handed_on(own, self.before, self.after) if known else 0.0  # type: ignore[arg-type]
        return squares


@compiled
def fitting(old: Array, starts: Array, before: Array, after: Array) -> Array:
    """What a new tree's scores are to be multiplied by so that they fit the old tree's: (targets, models)."""
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
def handed_on(old: Array, before: Array, after: Array) -> Array:
    """The mean over the rows of each new leaf of what their old leaves had; 0 in a leaf without rows."""
    made, counts = np.zeros(old.shape), np.zeros(old.shape[1])
    for i in range(before.shape[0]):
        counts[after[i]] += 1.0
        for k in range(old.shape[0]):
            for r in range(old.shape[2]):
                made[k, after[i], r] += old[k, before[i], r]
    for k in range(old.shape[0]):
        for c in range(old.shape[1]):
            for r in range(old.shape[2]):
                made[k, c, r] /= max(1.0, counts[c])
    return made


def votes(sample: Any, leaf: Array, n_leaves: int, targets: Array, exact: bool = False) -> Array:
    """What the labels of rows say in each leaf: (targets, leaves).

    The log-odds of a target's class, less those in all rows, with one row of these added; without ``targets``, the mean
    of y, less that of all rows, over their deviation unless scores are to differ as labels do (``exact``).
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
            # Not from one side: beside very heavy rows its share is 1 to the last digit.
            own, rest = (
                np.log(np.bincount(leaf, side, minlength=n_leaves) + unit * share) - np.log(share)
                for side, share in zip(sides, shares, strict=True)
            )
            made[k] = own - rest
    return made


def moments(sample: Any) -> tuple[float, float]:
    """Mean and deviation of labels that are numbers; 1 if they do not deviate."""
    mean = float(np.average(sample.y, weights=sample.weight))
    return mean, float(np.sqrt(np.average(np.square(sample.y - mean), weights=sample.weight))) or 1.0


def residuals(sample: Sample, targets: Array, exact: bool = False) -> tuple[Array, Array]:
    """What is still wrong with the scores that rows came with, and how fast it would change: (rows, targets) each.

    y - p and p (1 - p), with p the logistic function of the score and of an offset that makes them right on average:
    pairs leave it open. Without ``targets``, y (over its deviation unless ``exact``) less the score and the offset,
    and 1.
    """
    if not len(targets):
        wrong = sample.y[:, None] / (1.0 if exact else moments(sample)[1]) - sample.scores
        return wrong - np.average(wrong, axis=0, weights=sample.weight), np.ones_like(wrong)
    own = sample.y[:, None] == targets
    weight = sample.weight[:, None] / sample.weight.sum()
    offset = np.zeros(len(targets))
    for _ in range(20):
        p = 1.0 / (1.0 + np.exp(-np.clip(sample.scores + offset, -30, 30)))
        slope = (weight * p * (1.0 - p)).sum(axis=0)
        offset += np.clip((weight * (own - p)).sum(axis=0) / np.maximum(slope, 1e-3), -2.0, 2.0)
    return own - p, p * (1.0 - p)


def corrections(sample: Sample, wrong: Array, speed: Array, leaf: Array, n_leaves: int) -> Array:
    """By how much each leaf should change the scores of its rows, times ``RATE``: (targets, leaves)."""
    unit = float(sample.weight.mean())
    made = np.empty((wrong.shape[1], n_leaves))
    for k in range(len(made)):
        top = np.bincount(leaf, sample.weight * wrong[:, k], minlength=n_leaves)
        made[k] = RATE * top / (np.bincount(leaf, sample.weight * speed[:, k], minlength=n_leaves) + unit)
    return made
