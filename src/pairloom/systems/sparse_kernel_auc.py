"""SparseKernelAUC: a kernel machine for all pairs, on a greedily chosen basis."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from pairloom.base.batch import Batch
from pairloom.base.checks import check_count, check_number
from pairloom.base.csr import is_sparse
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.engines.sparse import center_of
from pairloom.engines.state import LOSS, PAIRS, STEPS, State
from pairloom.estimators.card import Card, model_kind
from pairloom.estimators.parameters import estimator
from pairloom.features.base import dense_features
from pairloom.models.expansion import Expansion, ExpansionState, KernelBlock, KernelRow, evaluate
from pairloom.systems.base import KernelClassifier
from pairloom.systems.pair_sums import EveryPair, PairSums

Columns = Callable[[Array], Array]
"""A function of m row numbers that returns the kernels (m, n) between these rows and all rows."""

JITTER = 1e-10
"""First value added to the diagonal of a singular matrix, relative to its mean."""

NEWTON_TOL = 1e-10
"""Newton's method stops when a step would gain less than this share of E."""

TIE_TOL = 1e-12
"""Candidates whose gains differ by less than this share of E are tied; the first one is chosen."""

ARMIJO = 1e-4
"""Minimum share of the linear gain that a shortened step must achieve."""

MAX_NEWTON_STEPS = 50
STEP_LENGTHS = [0.5**k for k in range(20)]


@estimator
class SparseKernelAUC(KernelClassifier):
    r"""Rank one class above the other by the squared hinge loss over all pairs, with kernels at a few chosen rows.

    .. math::

        f(x) = \sum_{j \in J} \beta_j k(x, x_j), \qquad \min_{J, \beta}\; \tfrac{\alpha}{2} \beta^\top K_{JJ} \beta
            + \tfrac{1}{2 n_+ n_-} \sum_{i \in +} \sum_{j \in -} \max(0,\, 1 - (f(x_i) - f(x_j)))^2

    J grows by one row at a time: among a few random candidates, the row for which a Newton step of its coefficient
    decreases the objective most. At every power of two, and at the end, Newton's method optimises all coefficients.
    Pairs are never enumerated: sums over all pairs are computed from the rows sorted by score. It needs all rows at
    once: there is only ``fit``, and log-odds are fitted to the scores of the training rows. The weight of a pair is the
    product of the weights of its rows.
    More than two classes: one model per class against the rest, each with its own basis.

    This is a reconstruction: the number of candidates, the optimisation schedule and the stopping rule are those of the
    reduced-basis SVM of Keerthi et al. (2006), on which the method is based; those of the paper are not confirmed.

    Parameters
    ----------
    alpha : weight of the norm, above 0.
    max_support : largest number of rows in J.
    n_candidates : number of random candidates; the best of 59 is among the best 5 % of all rows with probability 95 %.
    tol : stop when a new row decreases the objective by less than this share.
    dtype : "float32" or "float64": type of the kept rows and of the scores; the fit uses float64.

    Attributes
    ----------
    loss_ : mean squared hinge loss over all pairs.

    Notes
    -----
    Cost: for each of the s rows in J, kernels of ``n_candidates`` rows with all n rows, and as many sorts of n numbers;
    O(n s^2) for a Newton step. About 2 n (s + ``n_candidates``) numbers during the fit, s d afterwards.

    References
    ----------
    Kakkar, Shevade, Sundararajan and Garg, A Sparse Nonlinear Classifier Design Using AUC Optimization, SDM 2017.
    Keerthi, Chapelle and DeCoste, Building Support Vector Machines with Reduced Classifier Complexity, JMLR 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseKernelAUC(max_support=20, scale="standard", random_state=0).fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    >>> model.support_.shape
    (20, 30)
    """

    alpha: float = 1e-4
    max_support: int = 200
    n_candidates: int = 59
    tol: float = 1e-4

    @property
    def card(self) -> Card:
        model = model_kind(self.kernel)
        return Card("Kakkar et al. 2017", "s d + s^2 + s log n", "n s", "AUC", model, "exact", "offline")

    @property
    def needs_all_rows(self) -> bool:
        return True

    def _make_model(self, n_classes: int, seed: int | None) -> "GreedyBasis":
        return GreedyBasis(
            alpha=self.alpha,
            max_support=self.max_support,
            n_candidates=self.n_candidates,
            tol=self.tol,
            **self._common_parts(n_classes, seed),
        )


@node
class BasisState(ExpansionState):
    """Scaled ``supports`` and their ``coef``; those of model k are ``starts[k] : starts[k + 1]``."""

    supports: Annotated[Array, "R _n d"]
    coef: Annotated[Array, "f8 _n"]
    starts: Annotated[Array, "i8 v+1 0:_n+1"]


@dataclass(frozen=True, kw_only=True)
class GreedyBasis(Expansion):
    """The model of :class:`SparseKernelAUC`; ``init`` learns all rows, which are only scored afterwards."""

    alpha: float = 1e-4
    max_support: int = 200
    n_candidates: int = 59
    tol: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("alpha", self.alpha, 0, open_low=True)
        check_count("max_support", self.max_support)
        check_count("n_candidates", self.n_candidates)
        check_number("tol", self.tol, 0)

    @property
    def draws(self) -> int:
        return 0

    def init(self, n_features: int, first: Batch | None) -> State:
        """Choose the basis of each target and optimise its coefficients on all rows."""
        state = self.begin_empty(n_features, self.warm(first))
        if first is not None:
            self._choose(state, first)
        return state

    def _choose(self, state: State, batch: Batch) -> None:
        rows, coef = [], []
        for positive in self.pairs.signs(batch.y).T > 0:
            chosen, beta = self._fit(state, batch, positive)
            rows.append(chosen)
            coef.append(beta)
        supports = dense_features(self.features, state.phi, batch.X[np.concatenate(rows)])
        starts = np.cumsum([0, *map(len, rows)])
        state.memory = BasisState(state.memory.gamma, supports, np.concatenate(coef), starts)

    def terms(self, kept: BasisState) -> list[tuple[Array, Array]]:
        cuts = zip(kept.starts[:-1], kept.starts[1:], strict=True)
        return [(kept.supports[start:end], kept.coef[None, start:end]) for start, end in cuts]

    def _fit(self, state: State, batch: Batch, positive: Array) -> tuple[Array, Array]:
        """Return the chosen rows and their coefficients; empty if all rows are on one side."""
        if positive.all() or not positive.any():
            return np.empty(0, np.int64), np.empty(0)
        sums = (EveryPair if self.by_specification else PairSums)(positive, batch.weight)
        basis = grow(
            lambda rows: self._columns(state, batch.X, rows),
            sums, self.alpha, self.max_support, self.n_candidates, self.tol, state.rng,
        )  # fmt: skip
        state.tally[[STEPS, PAIRS, LOSS]] += [1.0, positive.sum() * (~positive).sum(), 2.0 * sums.value(basis.o)]
        return basis.rows, basis.beta

    def _columns(self, state: State, X: Any, rows: Array) -> Array:
        """Return the kernels between some rows and all rows, in float64; CSR rows stay CSR if possible."""
        gamma = state.memory.gamma
        seen_centred = self.kernel.gamma is None and center_of(state).size
        if is_sparse(X) and not seen_centred:
            return self.kernel(gamma, self.features.inputs(state.phi, X[rows]), self.features.inputs(state.phi, X))
        some = dense_features(self.features, state.phi, X[rows])
        blocks = [
            self.kernel(gamma, some, dense_features(self.features, state.phi, X[part]))
            for part in self.blocks(state, X)
        ]
        return np.concatenate(blocks, axis=1)

    def start(self, gamma: Array, dim: int) -> BasisState:
        return BasisState(
            gamma, np.empty((0, dim), self.dtype), np.empty(0), np.zeros(len(self.pairs.targets) + 1, np.int64)
        )

    def step_row(self, state: State, row: KernelRow) -> None:
        """Do nothing: all rows have been learned."""

    def run_block(self, state: State, block: KernelBlock) -> None:
        for k, (supports, coef) in enumerate(self.terms(state.memory)):
            block.scores[:, [k]] = evaluate(self.kernel.code, float(state.memory.gamma), block.X, supports, coef)


@dataclass(frozen=True)
class Basis:
    """Rows J (m,), their coefficients beta (m,), and the scores o = beta K_J (n,) of all rows.

    The functions below minimise E = (alpha / 2) beta' K_JJ beta + L(o), with L from :class:`PairSums`. Kernel matrices
    K_J are (m, n), with one row per basis function.
    """

    rows: Array
    beta: Array
    o: Array

    @property
    def squared_norm(self) -> float:
        """beta' K_JJ beta."""
        return float(self.beta @ self.o[self.rows])


def objective(sums: PairSums, alpha: float, basis: Basis) -> float:
    """Return E."""
    return 0.5 * alpha * basis.squared_norm + sums.value(basis.o)


def grow(
    columns: Columns, sums: PairSums, alpha: float, max_support: int, n_candidates: int, tol: float,
    rng: np.random.Generator,
) -> Basis:  # fmt: skip
    """Choose up to ``max_support`` rows, each the best of ``n_candidates`` random ones.

    All coefficients are optimised at every power of two and at the end. If a new row gains less than ``tol`` E, they
    are optimised immediately; if the next row also gains less, the basis is final.
    """
    n = len(sums.weight)
    most = min(max_support, n)
    K, basis, settled = np.empty((most, n)), Basis(np.empty(0, np.int64), np.empty(0), np.zeros(n)), True
    while (m := len(basis.rows)) < most:
        free = np.setdiff1d(np.arange(n), basis.rows)
        pool = rng.choice(free, min(n_candidates, len(free)), replace=False)
        values = columns(pool)
        steps, gains = candidate_gains(sums, alpha, basis, pool, values)
        value = objective(sums, alpha, basis)
        best = int(np.argmax(gains >= gains.max() - TIE_TOL * value))
        if not gains[best] > tol * value:
            if settled:
                break
            basis, settled = optimise(sums, alpha, basis, K[:m]), True
            continue
        K[m] = values[best]
        basis = Basis(
            np.append(basis.rows, pool[best]), np.append(basis.beta, steps[best]), basis.o + steps[best] * K[m]
        )
        settled = (m + 1) & m == 0
        if settled:
            basis = optimise(sums, alpha, basis, K[: m + 1])
    return basis if settled else optimise(sums, alpha, basis, K[: len(basis.rows)])


def candidate_gains(sums: PairSums, alpha: float, basis: Basis, pool: Array, values: Array) -> tuple[Array, Array]:
    """Return, for each candidate, a Newton step b of its coefficient from 0, the others fixed, and the decrease of E.

    The penalty grows by alpha (b f(x_c) + b^2 k(x_c, x_c) / 2).
    """
    at, own = basis.o[pool], values[np.arange(len(pool)), pool]
    slope = values @ sums.gradient(basis.o) + alpha * at
    curvature = np.einsum("mn,mn->m", values, sums.hessian_product(basis.o, values)) + alpha * own
    steps = np.divide(-slope, curvature, out=np.zeros(len(pool)), where=curvature > 0)
    losses = np.array([sums.value(basis.o + b * u) for b, u in zip(steps, values, strict=True)])
    return steps, sums.value(basis.o) - losses - alpha * steps * (at + 0.5 * steps * own)


def optimise(sums: PairSums, alpha: float, basis: Basis, K: Array) -> Basis:
    """Return the optimal coefficients of these rows, by Newton's method with step halving."""
    rows = basis.rows
    value = objective(sums, alpha, basis)
    for _ in range(MAX_NEWTON_STEPS):
        gradient = K @ sums.gradient(basis.o) + alpha * basis.o[rows]
        hessian = K @ sums.hessian_product(basis.o, K).T + alpha * K[:, rows]
        direction = -solve(hessian, gradient)
        gain = -float(gradient @ direction)
        if not gain > NEWTON_TOL * value:
            break
        for length in STEP_LENGTHS:
            beta = basis.beta + length * direction
            trial = Basis(rows, beta, beta @ K)
            found = objective(sums, alpha, trial)
            if found < value - ARMIJO * length * gain:
                break
        else:
            break
        basis, value = trial, found
    return basis


def solve(A: Array, b: Array) -> Array:
    """Return A^-1 b for a positive semidefinite A, with the smallest diagonal jitter that succeeds."""
    jitter = 0.0
    scale = float(np.trace(A)) / len(A)
    while True:
        try:
            return np.asarray(cho_solve(cho_factor(A + jitter * scale * np.eye(len(A))), b))
        except LinAlgError:
            jitter = max(JITTER, 10.0 * jitter)
