"""The square loss over all pairs from the moments of the classes, and its minimiser."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.linalg.blas import dsyrk, ssyrk

from pairloom.base.capabilities import decay_factors
from pairloom.base.compiled import compiled
from pairloom.base.tree import DERIVED, node
from pairloom.base.typing import Array
from pairloom.features.capabilities import LinearSum

BLOCK_ROWS = 256
"""Number of rows added to the moments at once, as one matrix product; until then they are kept in the open block."""


@dataclass(frozen=True)
class TwoClasses:
    """The all-pairs square loss of two classes: 1 - 2 <w, delta> + w' G w, with G = S_+ + S_- + delta delta'."""

    G: Array
    delta: Array

    def loss(self, w: Array) -> float:
        """Return the mean loss over all pairs."""
        return float(1.0 - 2.0 * (w @ self.delta) + w @ self.G @ w)

    def minimiser(self, alpha: float) -> Array:
        """Return the minimiser w of loss + (alpha / 2) ||w||^2."""
        if alpha > 0:
            try:
                heavier = self.G.copy()
                heavier.flat[:: len(heavier) + 1] += 0.5 * alpha
                factor = cho_factor(heavier.T, lower=True, overwrite_a=True, check_finite=False)  # .T: not copied
                return np.asarray(cho_solve(factor, self.delta, check_finite=False))
            except LinAlgError:  # alpha is below the rounding error of G
                pass
        return self._by_eigenvalues(alpha)

    def path(self, alphas: Array) -> Array:
        """Return the minimisers for several penalties, without coordinates that are 0 in all rows."""
        used = np.flatnonzero(np.diag(self.G) > 0)
        w = np.zeros((len(alphas), len(self.delta)))
        if len(used):
            whole = len(used) == len(self.delta)
            active = self if whole else TwoClasses(self.G[np.ix_(used, used)], self.delta[used])
            # A smaller penalty is below the rounding error of G: even if a factor exists, it is meaningless.
            least = 2.0 * len(used) * np.finfo(float).eps * np.trace(active.G)
            w[:, used] = [
                active.minimiser(float(alpha)) if alpha > least else active._by_eigenvalues(float(alpha))
                for alpha in alphas
            ]
        return w

    def _by_eigenvalues(self, alpha: float) -> Array:
        """Return the minimiser if G has no Cholesky factor, without directions that have no data."""
        values, Q = eigh(self.G)
        known = values > len(values) * np.finfo(float).eps * max(values[-1], 1e-300)
        along = np.where(known, Q.T @ self.delta, 0.0)
        return np.asarray((along / (np.where(known, values, 1.0) + 0.5 * alpha)) @ Q.T)


@node
class ClassMoments:
    """Weight ``counts`` (C,), ``means`` (C, D) and ``scatter`` (C, D, D) of each class, and the open block of rows.

    Of ``scatter``, which is symmetric, only the lower triangle is used; earlier versions wrote both to files.
    The first ``filled`` of ``rows`` (BLOCK_ROWS, D), with ``labels`` and ``weights``, are not in the moments yet.
    ``solved``: a row number and the cached minimiser after that row. ``summed``: slopes, and the cached sum of models
    for them.
    """

    counts: Annotated[Array, "f8 C 0:MASS"]
    means: Annotated[Array, "f8 C D finite"]
    scatter: Annotated[Array, "f8 C D D finite"]
    rows: Annotated[Array, "R s D finite"]
    labels: Annotated[Array, "label s"]
    weights: Annotated[Array, "f8 s 0:1e101"]
    filled: Annotated[Array, "i8 1 0:s"]
    solved: tuple[int, Array] | None = field(default=None, repr=False, metadata=DERIVED)
    summed: tuple[Array, LinearSum] | None = field(default=None, repr=False, metadata=DERIVED)

    @property
    def room(self) -> int:
        """Rows until the open block is full."""
        return len(self.labels) - int(self.filled[0])

    def fold(self) -> None:
        """Add the rows of the open block to the moments."""
        n = int(self.filled[0])
        for c in range(len(self.counts)):
            own = np.flatnonzero(self.labels[:n] == c)
            if len(own):
                Z, weight = self.rows[own].astype(float), self.weights[own]
                total = weight.sum()
                mean = weight @ Z / total
                away, both = mean - self.means[c], self.counts[c] + total
                # The scatter of the two means is one more row: a single product, since each pass over D x D is slow.
                spread = np.vstack([Z - mean, away])
                top = float(weight.max())  # float32 cannot hold the largest weights
                spread *= np.sqrt(np.append(weight, self.counts[c] * total / both) / top)[:, None]
                spread = spread.astype(self.rows.dtype)  # the precision of the rows
                # NumPy would copy one triangle to the other, which takes longer than the product.
                syrk = ssyrk if spread.dtype == np.float32 else dsyrk
                add_lower(self.scatter[c], syrk(1.0, spread.T).T, top)
                self.means[c] += (total / both) * away
                self.counts[c] = both
        self.filled[0] = 0

    def forget(self, keep: float) -> None:
        """Multiply the weight of the rows so far by ``keep``."""
        n, factors = int(self.filled[0]), decay_factors(self.counts, keep)
        self.counts *= factors
        self.scatter *= factors[:, None, None]
        self.weights[:n] *= decay_factors(self.weights[:n], keep)

    def folded(self) -> "ClassMoments":
        """Return the moments with the open block added: these, or a copy if there are rows in it."""
        if not self.filled[0]:
            return self
        copy = ClassMoments(
            self.counts.copy(), self.means.copy(), self.scatter.copy(),
            self.rows, self.labels, self.weights, self.filled.copy(),
        )  # fmt: skip
        copy.fold()
        return copy

    def of(self, model: int) -> TwoClasses:
        """Return the problem of one class against the rest; an empty problem if a side has no rows."""
        rest = [c for c in range(len(self.counts)) if c != model and self.counts[c] > 0]
        if not rest or self.counts[model] == 0:
            return TwoClasses(np.zeros_like(self.scatter[0]), np.zeros_like(self.means[0]))
        count, mean, scatter = self.counts[rest[0]], self.means[rest[0]], self.scatter[rest[0]]
        for c in rest[1:]:
            away, both = self.means[c] - mean, count + self.counts[c]
            scatter = scatter + (self.scatter[c] + (count * self.counts[c] / both) * np.outer(away, away))
            mean = mean + (self.counts[c] / both) * away
            count = both
        delta = self.means[model] - mean
        G = np.empty_like(scatter)
        add_scatters(delta, self.scatter[model], float(self.counts[model]), scatter, float(count), G)
        return TwoClasses(G, delta)


@compiled
def add_lower(total: Array, product: Array, factor: float) -> None:
    """Add a multiple of a matrix to ``total``, in the lower triangle."""
    for i in range(total.shape[0]):
        for j in range(i + 1):
            total[i, j] += factor * product[i, j]


@compiled
def add_scatters(delta: Array, first: Array, n_first: float, second: Array, n_second: float, G: Array) -> None:
    """Fill G with delta delta' + first / n_first + second / n_second, given the lower triangles of both."""
    D, size = len(delta), 32
    for top in range(0, D, size):
        for left in range(0, top + 1, size):  # in small blocks: columns of a large matrix are far apart
            for i in range(top, min(D, top + size)):
                for j in range(left, min(i + 1, left + size)):
                    G[i, j] = delta[i] * delta[j] + first[i, j] / n_first + second[i, j] / n_second
            for j in range(left, min(D, left + size)):
                for i in range(max(j, top), min(D, top + size)):
                    G[j, i] = G[i, j]
