"""ExactAUC: the minimiser of the square loss over all pairs, from the moments of the classes."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from pairloom.calibration import next_calibration_row
from pairloom.card import Card
from pairloom.checks import check_count, check_number
from pairloom.classifier import PairwiseClassifier
from pairloom.compiled import row_dots
from pairloom.features import FeatureMap, Identity, linear_map
from pairloom.features.scaling import Scaling
from pairloom.features.sparse import is_sparse
from pairloom.onepass import Dtype, Engine, OnePass
from pairloom.pairs import OppositeClass
from pairloom.state import Batch, State
from pairloom.threads import on_one_thread
from pairloom.typing import Array

ROWS = 256
"""Rows that enter the moments together, as one matrix product; the rows of the open block are kept."""


class ExactAUC(PairwiseClassifier):
    r"""The exact minimiser of the square loss over all pairs of the two classes, in any feature space.

    .. math::

        \min_w\; \tfrac{1}{n_+ n_-} \sum_{i \in +} \sum_{j \in -} (1 - \langle w, z_i - z_j \rangle)^2
            + \tfrac{\alpha}{2} \|w\|^2
        \quad\Leftrightarrow\quad (S_+ + S_- + \delta\delta^\top + \tfrac{\alpha}{2} I)\, w = \delta

    S are the covariances of the classes and delta the difference of their means: one pass keeps these, and w is solved
    for when it is asked for. The yardstick for the regret of every learner with the square loss, and where D^2 numbers
    fit a strong one itself. The scores behind the calibration come from solutions an eighth of the stream apart.

    Parameters
    ----------
    alpha : L2 penalty; 0 takes the solution of least norm.
    features : any feature map, such as ``RandomFourier(512)``, in place of the columns themselves.
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".
    max_bytes : refuse feature spaces whose moments need more.
    dtype, pos_label, random_state, engine : as in :class:`~pairloom.systems.FPOGD`; moments are float64 always, and the
        "reference" engine takes rows in one by one.

    Cost
    ----
    O(D^2) time per example, as matrix products, and D^2 numbers for each class; O(D^3) for a solution, kept until the
    next row comes.

    References
    ----------
    Gao, Jin, Zhu and Zhou, One-Pass AUC Optimization, ICML 2013, for the moments.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ExactAUC(alpha=0.01, scale="standard").fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    >>> model.coef_path([0.001, 0.01, 0.1]).shape
    (3, 30)
    """

    learner_: "ExactLearner"

    def __init__(
        self,
        *,
        alpha: float = 1e-4,
        features: FeatureMap | None = None,
        scale: Scaling = None,
        max_bytes: int = 2**30,
        dtype: Dtype = "float32",
        pos_label: Any = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        engine: Engine = "auto",
    ) -> None:
        self.alpha = alpha
        self.features = features
        self.scale = scale
        self.max_bytes = max_bytes
        self.dtype = dtype
        self.pos_label = pos_label
        self.random_state = random_state
        self.engine = engine

    @property
    def card(self) -> Card:
        return Card("Gao et al. 2013, in closed form", "D^2", "D^2", variance_reduction="exact")

    @property
    def n_pairs_(self) -> int:
        """Pairs of different classes among the rows so far, by weight."""
        counts = self.learner_.moments().counts
        return int((counts.sum() ** 2 - counts @ counts) / 2)

    @property
    def loss_(self) -> float:
        """Mean square loss of the model over all pairs so far (mean over the models of more than two classes)."""
        moments = self.learner_.moments()
        pairs = zip(self.learner_.pairs.models, self.learner_.coef.astype(float), strict=True)
        return float(np.mean([moments.of(int(k)).loss(w) for k, w in pairs]))

    def coef_path(self, alphas: Any) -> Array:
        """w for each of many penalties, (penalties, D), at the cost of one eigendecomposition. Two classes only."""
        alphas = np.asarray(alphas, dtype=float)
        if len(self.coef_.shape) > 1:
            raise ValueError("coef_path is for two classes")
        return np.asarray(self._labels.sign * self.learner_.moments().of(1).path(alphas))

    def pair_loss(self, coef: Any) -> float:
        """Mean square loss of any w, (D,) like ``coef_``, over all pairs learned so far. Two classes only."""
        return self.learner_.moments().of(1).loss(self._labels.sign * np.asarray(coef, dtype=float))

    def _make_learner(self, n_classes: int, seed: int | None) -> "ExactLearner":
        return ExactLearner(
            features=linear_map(self.features, self.scale),
            pairs=OppositeClass(n_classes),
            alpha=self.alpha,
            max_bytes=self.max_bytes,
            dtype=self.dtype,
            seed=seed,
            engine=self.engine,
        )


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
                return np.asarray(cho_solve(cho_factor(self.G + 0.5 * alpha * np.eye(len(self.G))), self.delta))
            except LinAlgError:  # alpha is lost in the rounding of G
                pass
        return np.asarray(self.path(np.array([alpha]))[0])

    def path(self, alphas: Array) -> Array:
        """``minimiser`` for many penalties; directions without data are left out."""
        values, Q = eigh(self.G)
        known = values > len(values) * np.finfo(float).eps * max(values[-1], 1e-300)
        along = np.where(known, Q.T @ self.delta, 0.0)
        return np.asarray((along / (np.where(known, values, 1.0) + 0.5 * alphas[:, None])) @ Q.T)


@dataclass
class ClassMoments:
    """Of each class: weight ``counts`` (C,), ``means`` (C, D), ``scatter`` (C, D, D) around them; and the open block.

    The first ``filled`` of ``rows`` (ROWS, D), with ``labels`` and ``weights``, are not in the moments yet.
    """

    counts: Array
    means: Array
    scatter: Array
    rows: Array
    labels: Array
    weights: Array
    filled: Array

    def fold(self) -> None:
        """Take the open rows into the moments."""
        n = int(self.filled[0])
        for c in range(len(self.counts)):
            own = np.flatnonzero(self.labels[:n] == c)
            if len(own):
                Z, weight = self.rows[own].astype(float), self.weights[own]
                total = weight.sum()
                mean = weight @ Z / total
                spread = np.sqrt(weight)[:, None] * (Z - mean)
                self._merge(c, total, mean, spread.T @ spread)
        self.filled[0] = 0

    def _merge(self, c: int, total: float, mean: Array, scatter: Array) -> None:
        away, both = mean - self.means[c], self.counts[c] + total
        self.scatter[c] += scatter + (self.counts[c] * total / both) * np.outer(away, away)
        self.means[c] += (total / both) * away
        self.counts[c] = both

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
            self.counts[rest[:1]], self.means[rest[:1]], self.scatter[rest[:1]], *(np.empty(0) for _ in range(4))
        )
        for c in rest[1:]:
            other._merge(0, self.counts[c], self.means[c], self.scatter[c])
        delta = self.means[model] - other.means[0]
        S = self.scatter[model] / self.counts[model] + other.scatter[0] / other.counts[0]
        return TwoClasses(S + np.outer(delta, delta), delta)


@dataclass(eq=False, kw_only=True)
class ExactLearner(OnePass):
    """Moments in, minimiser out."""

    large_products: ClassVar[bool] = True

    pairs: OppositeClass = field(default_factory=OppositeClass)
    alpha: float = 1e-4
    max_bytes: int = 2**30
    solved: tuple[int, Array] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("alpha", self.alpha, 0)
        check_count("max_bytes", self.max_bytes)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "solved": None}

    @property
    def held(self) -> list[Any]:
        return [*super().held, None if self.solved is None else self.solved[1]]

    @property
    @on_one_thread
    def coef(self) -> Array:
        """The minimiser for all rows so far: solved for once, and not part of the state."""
        assert self.state is not None, "no rows seen yet"
        solved = self.solved
        if solved is None or solved[0] != self.state.t:
            self.solved = solved = (self.state.t, self._solve(self.state))
        return solved[1]

    def moments(self) -> ClassMoments:
        """The moments of all rows so far."""
        assert self.state is not None, "no rows seen yet"
        folded: ClassMoments = self.state.memory.folded()
        return folded

    def next_solution(self, t: int) -> int:
        """The first row after row t at which the weights for test-then-train scores are solved for anew."""
        return next_calibration_row(t)

    def _solve(self, state: State) -> Array:
        moments = state.memory.folded()
        return np.array([moments.of(int(k)).minimiser(self.alpha) for k in self.pairs.models]).astype(state.w.dtype)

    def _start_memory(self, n_features: int, phi: Any, rows: Any) -> ClassMoments:
        D, C = self.features.n_outputs(n_features), self.pairs.n_classes
        need = 8 * C * D * D
        if need > self.max_bytes:
            raise ValueError(
                f"ExactAUC keeps {C} matrices of {D:,} x {D:,} numbers, {need / 1e9:.3g} GB; max_bytes="
                f"{self.max_bytes} allows {int((self.max_bytes / (8 * C)) ** 0.5):,} columns. Raise max_bytes, map the "
                "rows to fewer features, such as features=RandomFourier(1024), or use SPAM(), which keeps a few vectors"
            )
        rows_kept = 1 if self.engine == "reference" else ROWS
        return ClassMoments(
            np.zeros(C), np.zeros((C, D)), np.zeros((C, D, D)), np.zeros((rows_kept, D), self.dtype),
            np.zeros(rows_kept), np.zeros(rows_kept), np.zeros(1, np.int64),
        )  # fmt: skip

    def _run(self, batch: Batch) -> Array:
        state = self.state
        assert state is not None
        scores, at = [], 0
        while at < len(batch):
            room = len(state.memory.labels) - int(state.memory.filled[0])
            end = min(len(batch), at + room, at + self.next_solution(state.t) - state.t)
            scores.append(self._take_in(state, batch[at:end]))
            at = end
        return np.concatenate(scores)

    def _take_in(self, state: State, batch: Batch) -> Array:
        """Score rows with the last solution, then keep them; at their end a block or a solution may be due."""
        dense = isinstance(self.features, Identity) and is_sparse(batch.X)
        Z = self.features.apply(state.phi, batch.X.toarray() if dense else batch.X)
        scores = np.column_stack([row_dots(Z, w) for w in state.w]).astype(float)
        kept, n = state.memory, len(batch)
        new = slice(int(kept.filled[0]), int(kept.filled[0]) + n)
        kept.rows[new], kept.labels[new], kept.weights[new] = Z, batch.y, batch.weight
        kept.filled[0] += n
        due = self.next_solution(state.t) == state.t + n
        state.t += n
        if kept.filled[0] == len(kept.labels):
            kept.fold()
        if due:
            state.w[:] = self._solve(state)
        return scores
