"""The exact minimiser of the square loss over all pairs, from the moments of the classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from pairloom.base.aging import aged
from pairloom.base.batch import Batch, Scored
from pairloom.base.checks import check_count, check_number
from pairloom.base.clock import next_calibration
from pairloom.base.compiled import row_dots
from pairloom.base.threads import on_one_thread
from pairloom.base.tree import DERIVED, Rounded, node
from pairloom.base.typing import Array
from pairloom.engines.base import Engine, candidates
from pairloom.engines.state import State
from pairloom.features.growing import refuse_growing
from pairloom.features.linear_sum import LinearSum
from pairloom.models.base import Mapped, Trouble, linear_scores
from pairloom.pairs import OppositeClass

ROWS = 256
"""Rows that enter the moments together, as one matrix product; the rows of the open block are kept."""

APART = 64
"""Rows between two solutions, at least, in a stream that has changed."""


@dataclass(frozen=True)
class TwoClasses:
    """The all-pairs square loss of two classes: 1 - 2 <w, delta> + w' G w, with G = S_+ + S_- + delta delta'."""

    G: Array
    delta: Array

    def loss(self, w: Array) -> float:
        """Mean over all pairs."""
        return float(1.0 - 2.0 * (w @ self.delta) + w @ self.G @ w)

    def minimiser(self, alpha: float) -> Array:
        """w with the least loss + (alpha / 2) ||w||^2."""
        if alpha > 0:
            try:
                heavier = self.G.copy()
                heavier.flat[:: len(heavier) + 1] += 0.5 * alpha
                factor = cho_factor(heavier, overwrite_a=True, check_finite=False)
                return np.asarray(cho_solve(factor, self.delta, check_finite=False))
            except LinAlgError:  # alpha is lost in the rounding of G
                pass
        return self._by_eigenvalues(alpha)

    def path(self, alphas: Array) -> Array:
        """``minimiser`` for many penalties; coordinates that are 0 in all rows are left out."""
        used = np.flatnonzero(np.diag(self.G) > 0)
        w = np.zeros((len(alphas), len(self.delta)))
        if len(used):
            whole = len(used) == len(self.delta)
            active = self if whole else TwoClasses(self.G[np.ix_(used, used)], self.delta[used])
            # Below this a penalty is lost in the rounding of G, and a factor that is found all the same says nothing.
            least = 2.0 * len(used) * np.finfo(float).eps * np.trace(active.G)
            w[:, used] = [
                active.minimiser(float(alpha)) if alpha > least else active._by_eigenvalues(float(alpha))
                for alpha in alphas
            ]
        return w

    def _by_eigenvalues(self, alpha: float) -> Array:
        """``minimiser`` where G has no factor: directions without data are left out."""
        values, Q = eigh(self.G)
        known = values > len(values) * np.finfo(float).eps * max(values[-1], 1e-300)
        along = np.where(known, Q.T @ self.delta, 0.0)
        return np.asarray((along / (np.where(known, values, 1.0) + 0.5 * alpha)) @ Q.T)


@node
class ClassMoments:
    """Of each class: weight ``counts`` (C,), ``means`` (C, D), ``scatter`` (C, D, D) around them; and the open block.

    The first ``filled`` of ``rows`` (ROWS, D), with ``labels`` and ``weights``, are not in the moments yet.
    ``solved``: a row number and the minimiser after it, once it was asked for. ``summed``: slopes, and the sum of
    models that was last made with them.
    """

    counts: Array
    means: Array
    scatter: Array
    rows: Rounded
    labels: Array
    weights: Array
    filled: Array
    solved: tuple[int, Array] | None = field(default=None, repr=False, metadata=DERIVED)
    summed: tuple[Array, LinearSum] | None = field(default=None, repr=False, metadata=DERIVED)

    @property
    def room(self) -> int:
        """Rows until the open block is full."""
        return len(self.labels) - int(self.filled[0])

    def fold(self) -> None:
        """Take the open rows into the moments."""
        n = int(self.filled[0])
        for c in range(len(self.counts)):
            own = np.flatnonzero(self.labels[:n] == c)
            if len(own):
                Z, weight = self.rows[own].astype(float), self.weights[own]
                total = weight.sum()
                mean = weight @ Z / total
                away, both = mean - self.means[c], self.counts[c] + total
                # The means' own scatter is one more row: a single product, since D x D numbers are slow to pass over.
                spread = np.vstack([Z - mean, away])
                top = float(weight.max())  # float32 has no room for the heaviest weights
                spread *= np.sqrt(np.append(weight, self.counts[c] * total / both) / top)[:, None]
                spread = spread.astype(self.rows.dtype)  # which the rows have been rounded to
                product = spread.T @ spread
                self.scatter[c] += product if top == 1.0 else top * product.astype(float)
                self.means[c] += (total / both) * away
                self.counts[c] = both
        self.filled[0] = 0

    def _merge(self, c: int, total: float, mean: Array, scatter: Array) -> None:
        away, both = mean - self.means[c], self.counts[c] + total
        self.scatter[c] += scatter + (self.counts[c] * total / both) * np.outer(away, away)
        self.means[c] += (total / both) * away
        self.counts[c] = both

    def forget(self, keep: float) -> None:
        """Let the rows so far count ``keep`` times as much."""
        n, factors = int(self.filled[0]), aged(self.counts, keep)
        self.counts *= factors
        self.scatter *= factors[:, None, None]
        self.weights[:n] *= aged(self.weights[:n], keep)

    def folded(self) -> "ClassMoments":
        """A copy with no open rows."""
        copy = ClassMoments(
            self.counts.copy(), self.means.copy(), self.scatter.copy(),
            self.rows, self.labels, self.weights, self.filled.copy(),
        )  # fmt: skip
        copy.fold()
        return copy

    def of(self, model: int) -> TwoClasses:
        """The class of a model against the rest; a class without rows leaves nothing to tell apart."""
        rest = [c for c in range(len(self.counts)) if c != model and self.counts[c] > 0]
        if not rest or self.counts[model] == 0:
            return TwoClasses(np.zeros_like(self.scatter[0]), np.zeros_like(self.means[0]))
        other = ClassMoments(
            self.counts[rest[:1]],
            self.means[rest[:1]],
            self.scatter[rest[:1]],
            np.empty(0),
            np.empty(0),
            np.empty(0),
            np.empty(0),
        )
        for c in rest[1:]:
            other._merge(0, self.counts[c], self.means[c], self.scatter[c])
        delta = self.means[model] - other.means[0]
        G = np.outer(delta, delta)
        for moments, k in ((self, model), (other, 0)):
            G += moments.scatter[k] / moments.counts[k]
        return TwoClasses(G, delta)


@dataclass(frozen=True)
class Folding:
    """Score rows with the last solution, then keep them; ``rows`` of them enter the moments together."""

    rows: int
    double: bool
    any_part: bool

    def takes(self, model: "ExactLearner", state: State, batch: Batch) -> bool:
        return True

    def run(self, model: "ExactLearner", state: State, batch: Batch) -> Array:
        Z = model.features.dense(state.phi, batch.X)
        scores = np.column_stack([row_dots(Z, w) for w in state.w]).astype(float)
        kept, n = state.memory, len(batch)
        new = slice(int(kept.filled[0]), int(kept.filled[0]) + n)
        kept.rows[new], kept.labels[new], kept.weights[new] = Z, batch.y, batch.weight
        kept.filled[0] += n
        state.t += n
        if kept.filled[0] == self.rows:
            kept.fold()
        return scores


@dataclass(frozen=True, kw_only=True)
class ExactLearner(Mapped):
    """Moments in, minimiser out; for the test-then-train scores it is solved for at some rows only."""

    engines: ClassVar[Mapping[str, Sequence[Engine]]] = {
        "reference": (Folding(1, double=True, any_part=True),),
        "fused": (Folding(ROWS, double=False, any_part=False),),
    }
    large_products: ClassVar[bool] = True

    pairs: OppositeClass = field(default_factory=OppositeClass)
    alpha: float = 1e-4
    max_bytes: int = 2**30

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_growing(self.features, type(self).__name__)
        check_number("alpha", self.alpha, 0)
        check_count("max_bytes", self.max_bytes)

    @property
    def n_vectors(self) -> int:
        return len(self.pairs.targets)

    @property
    def needs_data(self) -> bool:
        return self.features.needs_data

    def init(self, n_features: int, first: Batch | None) -> State:
        return self.begin(n_features, first, lambda phi, rows: start_moments(self, n_features, self.max_bytes))

    def run(self, state: State, batch: Batch) -> Scored:
        due = next_calibration(*clock(state)) == state.t + len(batch)
        scored = self.learn(state, batch)
        if due:
            state.w[:] = self.solve(state)
        return scored

    def solve(self, state: State) -> Array:
        """The minimiser for all rows so far, one row per target."""
        moments = state.memory.folded()
        made = [moments.of(int(k)).minimiser(self.alpha) for k in self.pairs.targets]
        return np.array(made).astype(state.w.dtype)

    def coef(self, state: State) -> Array:
        """``solve``, once for the same rows."""
        return solved(self, state)

    def score(self, state: State, X: Any) -> Array:
        """<w, phi(x)> of each row, with the minimiser for all rows so far."""
        return linear_scores(self.features, state, self.coef(state), X)

    def next_row(self, state: State) -> int:
        return min(next_calibration(*clock(state)), state.t + int(state.memory.room))

    def check_room(self, state: State | None, n: int) -> None:
        """There is room for every row."""

    def trouble(self, state: State, told: float) -> Trouble | None:
        """None: there are no steps."""
        return None

    @property
    def forgets(self) -> bool:
        return True

    def forget(self, state: State, keep: float) -> None:
        """The moments weigh less; the minimiser is the same until new rows come."""
        state.forget(keep)
        state.memory.forget(keep)


def clock(state: State) -> tuple[int, int, int]:
    """Rows so far, those that no longer count, and the least rows between two solutions, if any do not."""
    return (state.t, 0, 1) if state.since is None else (state.t, int(state.since), APART)


def start_moments(model: Mapped, n_features: int, max_bytes: int) -> ClassMoments:
    """The moments of no rows; ValueError if they would be too large."""
    D, C = model.features.n_outputs(n_features), model.pairs.n_groups
    need = 8 * C * D * D
    if need > max_bytes:
        raise ValueError(
            f"ExactAUC keeps {C} matrices of {D:,} x {D:,} numbers, {need / 1e9:.3g} GB; max_bytes="
            f"{max_bytes} allows {int((max_bytes / (8 * C)) ** 0.5):,} columns. Raise max_bytes, map the "
            "rows to fewer features, such as features=RandomFourier(1024), or use SPAM(), which keeps a few vectors"
        )
    rows: int = candidates(model)[0].rows  # type: ignore[attr-defined]
    return ClassMoments(
        np.zeros(C), np.zeros((C, D)), np.zeros((C, D, D)), np.zeros((rows, D), model.dtype),
        np.zeros(rows), np.zeros(rows), np.zeros(1, np.int64),
    )  # fmt: skip


@on_one_thread
def solved(model: Any, state: State) -> Array:
    """The weights for all rows so far: solved for once, and not part of the state."""
    known: tuple[int, Array] | None = state.memory.solved
    if known is None or known[0] != state.t:
        state.memory.solved = known = (state.t, model.solve(state))
    return known[1]
