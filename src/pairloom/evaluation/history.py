"""Sums over the pairs of a row with all rows before it: exact, by the rows themselves or by their moments.

For row i and weights w, over its partners j < i, with margins m_j = a_j <w, z_i - z_j> + b_j:

    loss      sum_j l(m_j)
    gradient  sum_j a_j l'(m_j) (z_i - z_j)

Many rows are summed up together, each at weights of its own, so that the work is products of matrices.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from pairloom.base.typing import Array
from pairloom.losses import Square
from pairloom.models.learner import Learner

MAX_ROWS = 5000
"""Rows kept, where sums need them all, unless told otherwise."""

MAX_BYTES = 1 << 31
"""Room for what is kept of the past."""


class PairSums(NamedTuple):
    """Of each of n rows: ``counts`` (n,) of partners, and sums over them, ``losses`` (n,), ``gradients`` (n, D)."""

    counts: Array
    losses: Array
    gradients: Array


class History(ABC):
    """All rows so far of a learner's stream, or as much of them as its sums over pairs need."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner

    @abstractmethod
    def extend(self, Z: Array, y: Array, at: Array, W: Array) -> list[PairSums]:
        """Take in rows Z (b, D) with codes y, and sum up the pairs of rows ``at`` of them with all rows before each.

        W (n, vectors, D): the weights at which this is done for each. One ``PairSums`` for each vector.
        """


class KeptRows(History):
    """Any loss and any pairs: all rows are kept. 4 t D flops for row t."""

    def __init__(self, learner: Learner, n_rows: int, dim: int) -> None:
        super().__init__(learner)
        self.Z, self.y, self.n = np.empty((n_rows, dim)), np.empty(n_rows), 0

    def extend(self, Z: Array, y: Array, at: Array, W: Array) -> list[PairSums]:
        end = self.n + len(y)
        self.Z[self.n : end], self.y[self.n : end] = Z, y
        rows, self.n = self.n + at, end
        return [self._sums(k, rows, W[:, k]) for k in range(W.shape[1])]

    def _sums(self, k: int, rows: Array, W: Array) -> PairSums:
        pairs, loss = self.learner.pairs, self.learner.pair_loss
        Z, labels, target = self.Z[: self.n], self.y[: self.n], pairs.targets[k]
        a, b = np.zeros((len(rows), self.n)), np.zeros((len(rows), self.n))
        for i, row in enumerate(rows.tolist()):
            a[i, :row] = pairs.sign(labels[row], labels[:row], target)
            b[i, :row] = pairs.offset(labels[row], labels[:row], target)
        own = np.einsum("ij,ij->i", W, Z[rows])
        margins = a * (own[:, None] - W @ Z.T) + b
        counted = a != 0
        q = a * loss.derivative(margins)
        gradients = q.sum(axis=1)[:, None] * Z[rows] - q @ Z
        return PairSums(counted.sum(axis=1), np.where(counted, loss.value(margins), 0.0).sum(axis=1), gradients)


class ClassSums(History):
    """The square loss of pairs of different classes: from the first two moments of each class.

    With s = <w, z_i>, and n, sigma = sum z_j and M = sum z_j z_j' of a class of partners, r_j = 1 - a (s - <w, z_j>):

        sum r_j = n (1 - a s) + a <w, sigma>,  sum r_j z_j = (1 - a s) sigma + a M w
        loss      (1 - a s) sum r_j + a <w, sum r_j z_j>
        gradient  -2 a ((sum r_j) z_i - sum r_j z_j)

    4 D^2 flops for each row and D^2 numbers for each class, however long the stream.
    """

    def __init__(self, learner: Learner, dim: int) -> None:
        super().__init__(learner)
        n = learner.pairs.n_groups
        self.n, self.sigma, self.M = np.zeros(n), np.zeros((n, dim)), np.zeros((n, dim, dim))
        self.origin: Array | None = None

    def extend(self, Z: Array, y: Array, at: Array, W: Array) -> list[PairSums]:
        # Only differences of rows matter: near their mean, sums of squares lose no digits.
        self.origin = Z.mean(axis=0) if self.origin is None else self.origin
        Z = Z - self.origin
        sums = [self._sums(k, Z, y, at, W[:, k]) for k in range(W.shape[1])]
        for c in range(len(self.n)):
            own = Z[y == c]
            self.n[c] += len(own)
            self.sigma[c] += own.sum(axis=0)
            self.M[c] += own.T @ own
        return sums

    def _sums(self, k: int, Z: Array, y: Array, at: Array, W: Array) -> PairSums:
        pairs, found = self.learner.pairs, PairSums(np.zeros(len(at)), np.zeros(len(at)), np.zeros(W.shape))
        scores, own = W @ Z.T, Z[at]
        s = scores[np.arange(len(at)), at]
        before = np.arange(len(y)) < at[:, None]
        classes = np.arange(len(self.n), dtype=float)
        table = np.array([pairs.sign(label, classes, pairs.targets[k]) for label in classes])
        signs = table[y[at].astype(int)]
        for c, (n, sigma, M) in enumerate(zip(self.n, self.sigma, self.M, strict=True)):
            a, new = signs[:, c], before & (y == c)
            count = n + new.sum(axis=1)
            total = sigma + new @ Z
            r = count * (1.0 - a * s) + a * np.einsum("ij,ij->i", W, total)
            rz = (1.0 - a * s)[:, None] * total + a[:, None] * (W @ M + (new * scores) @ Z)
            paired = a != 0
            found.counts[:] += np.where(paired, count, 0.0)
            found.losses[:] += np.where(paired, (1.0 - a * s) * r + a * np.einsum("ij,ij->i", W, rz), 0.0)
            found.gradients[:] -= (2.0 * a)[:, None] * (r[:, None] * own - rz)
        return found


def history_of(learner: Learner, n_rows: int, dim: int, max_rows: int) -> History:
    """The history with which the sums of a learner's pairs cost least; ValueError where there is no room for it."""
    by_moments = type(learner.loss) is Square and learner.pairs.opposite
    if n_rows > max_rows and not by_moments:
        raise ValueError(
            f"sums over all pairs of the {type(learner.loss).__name__} loss need every row, and there are {n_rows:,}: "
            f"give at most {max_rows:,} rows, raise max_rows (each row t costs 4 t D flops), or use the square loss on "
            "classes, of which moments are enough"
        )
    if n_rows <= max_rows and not (by_moments and dim < n_rows):
        _check_room(8 * n_rows * dim, f"{n_rows:,} rows of {dim:,} features")
        return KeptRows(learner, n_rows, dim)
    n_classes = learner.pairs.n_groups
    _check_room(8 * n_classes * dim * dim, f"{n_classes} matrices of {dim:,} x {dim:,} moments")
    return ClassSums(learner, dim)


def _check_room(need: int, what: str) -> None:
    if need > MAX_BYTES:
        raise ValueError(
            f"{what} need {need / 1e9:.3g} GB, more than {MAX_BYTES / 1e9:.3g}: use fewer features or fewer rows"
        )
