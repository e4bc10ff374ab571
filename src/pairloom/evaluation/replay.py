"""Replay of a learner on a stream, row by row, and exact sums over the pairs of each row with all earlier rows.

For row i and weights w, over its partners j < i, with margins m_j = a_j <w, z_i - z_j> + b_j:

    loss      sum_j l(m_j)
    gradient  sum_j a_j l'(m_j) (z_i - z_j)

Sums are computed for blocks of rows, each row at its own weights, so that most of the work is in matrix products.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.clock import last_replay
from pairloom.base.typing import Array
from pairloom.engines.state import State
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.features.base import dense_features
from pairloom.features.capabilities import check_not_growing, rows_used_to_grow
from pairloom.losses import Square
from pairloom.models.learner import Learner
from pairloom.stream import Stream

BLOCK_ROWS = 256
"""Rows mapped and summed together."""

MAX_ROWS = 5000
"""Default maximum number of rows if sums need all of them."""

MAX_BYTES = 1 << 31
"""Maximum memory for past rows or moments."""


class Pass:
    """One pass of a learner, in float64, with the final data-dependent settings.

    A stream keeps its first rows, and learns them again whenever data-dependent settings are fixed. This is the last
    such pass, with the final rules: it ends with ``Stream(learner).partial_fit(X, y).coef``, up to rounding.

    Parameters
    ----------
    learner : a learner with any engine; the reference engine is used, with the same results up to rounding.
    batch : all rows.

    Attributes
    ----------
    learner, batch : with arrays of float64.
    state : the state so far: ``state.w`` (vectors, D), ``state.memory``, ``state.phi``.
    """

    def __init__(self, learner: Learner, batch: Batch) -> None:
        check_not_growing(learner.features, "a replay")
        self.learner = replace(learner, engine="reference")
        self.batch = Batch(batch.X.astype(float), batch.y, batch.weight, batch.query)
        d = batch.X.shape[1]
        settled = last_replay(len(batch), learner.warm_rows)
        self.state: State = self.learner.init(d, self.batch[:settled] if learner.needs_data else None)
        self.first = min(len(batch), rows_used_to_grow(learner.features, self.state.phi))

    @property
    def dim(self) -> int:
        """D."""
        return int(self.state.w.shape[1])

    def blocks(self) -> Iterator[tuple[range, Array]]:
        """Yield the numbers of the rows to learn, in blocks, and phi of them, without those used to grow the map."""
        for start in range(self.first, len(self.batch), BLOCK_ROWS):
            rows = range(start, min(start + BLOCK_ROWS, len(self.batch)))
            X = self.batch.X[rows.start : rows.stop]
            yield rows, dense_features(self.learner.features, self.state.phi, X).astype(float)

    # OpenBLAS may set this flag spuriously: see Stream.learn.
    @np.errstate(invalid="ignore")
    def learn(self, row: int) -> None:
        """Learn one row; rows must come in order. Call it with BLAS limited to one thread."""
        self.state.t = max(self.state.t, self.first)
        self.learner.run(self.state, self.batch[row : row + 1])


def learner_and_rows(model: Any, X: Any, y: Any) -> tuple[Learner, Batch]:
    """Return the unfitted learner of a model, and validated rows; raise ValueError for other models."""
    if isinstance(model, Stream):
        model = model.model
    if isinstance(model, PairwiseClassifier):
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"there are no pairs: all rows have the label {classes.tolist()[0]!r}")
        model, y = model.to_model(len(classes)), codes
    if not isinstance(model, Learner):
        raise ValueError(
            "this needs a learner that pairs each row with a memory: a Learner, or a system that is one, such as "
            f"FPOGD, OGD, OLP or OAM; got {model!r}"
        )
    return model, Stream(model).check(X, y)


class PairSums(NamedTuple):
    """For n rows: ``counts`` (n,) of partners, and sums over partners, ``losses`` (n,) and ``gradients`` (n, D)."""

    counts: Array
    losses: Array
    gradients: Array


class KeptRows:
    """Sums for any loss and any pairs: all rows are kept. 4 t D flops for row t."""

    def __init__(self, learner: Learner, n_rows: int, dim: int) -> None:
        self.learner = learner
        self.Z, self.y, self.n = np.empty((n_rows, dim)), np.empty(n_rows), 0

    def extend(self, Z: Array, y: Array, at: Array, W: Array) -> list[PairSums]:
        """Add rows Z (b, D) with codes y, and sum over the pairs of rows ``at`` of Z with all earlier rows.

        W (n, vectors, D): the weights for each. Return one ``PairSums`` per vector.
        """
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


class ClassSums:
    """Sums for the square loss on pairs of different classes, from the first two moments of each class.

    With s = <w, z_i>, and n, sigma = sum z_j and M = sum z_j z_j' of a class of partners, r_j = 1 - a (s - <w, z_j>):

        sum r_j = n (1 - a s) + a <w, sigma>,  sum r_j z_j = (1 - a s) sigma + a M w
        loss      (1 - a s) sum r_j + a <w, sum r_j z_j>
        gradient  -2 a ((sum r_j) z_i - sum r_j z_j)

    4 D^2 flops per row and D^2 numbers per class, regardless of the length of the stream.
    """

    def __init__(self, learner: Learner, dim: int) -> None:
        self.learner = learner
        n = learner.pairs.n_groups
        self.n, self.sigma, self.M = np.zeros(n), np.zeros((n, dim)), np.zeros((n, dim, dim))
        self.origin: Array | None = None

    def extend(self, Z: Array, y: Array, at: Array, W: Array) -> list[PairSums]:
        """Add rows and sum over pairs, as ``KeptRows`` does."""
        # Only differences of rows matter: centring avoids cancellation in sums of squares.
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


def history_of(learner: Learner, n_rows: int, dim: int, max_rows: int) -> KeptRows | ClassSums:
    """Return the cheapest history for the sums of a learner; raise ValueError if it exceeds a limit."""
    by_moments = type(learner.loss) is Square and learner.pairs.opposite
    if n_rows > max_rows and not by_moments:
        raise ValueError(
            f"sums over all pairs of the {type(learner.loss).__name__} loss need every row, and there are {n_rows:,}: "
            f"give at most {max_rows:,} rows, raise max_rows (each row t costs 4 t D flops), or use the square loss on "
            "classes, which needs only moments"
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
