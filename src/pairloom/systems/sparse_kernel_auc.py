"""SparseKernelAUC: a kernel machine for all pairs, on a basis that is chosen greedily."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.checks import check_count, check_number
from pairloom.base.csr import is_sparse
from pairloom.base.tree import Rounded, node
from pairloom.base.typing import Array
from pairloom.columns import ColumnsLike
from pairloom.engines.base import EngineName
from pairloom.engines.sparse import center_of
from pairloom.engines.state import LOSS, PAIRS, STEPS, State
from pairloom.estimators.card import Card
from pairloom.estimators.class_weight import ClassWeight
from pairloom.estimators.kernel_classifier import KernelClassifier
from pairloom.features import Identity, exact_kernel
from pairloom.features.choice import KernelName
from pairloom.features.scaling import Scaling
from pairloom.metrics.pair_sums import EveryPair, PairSums
from pairloom.models.base import Dtype
from pairloom.models.expansion import Expansion, ExpansionState, KernelBlock, KernelRow, evaluate
from pairloom.pairs import OppositeClass
from pairloom.stream.drift import Drift
from pairloom.stream.forgetting import HalfLife
from pairloom.systems.greedy_basis import grow


class SparseKernelAUC(KernelClassifier):
    r"""Rank one class above the other by the squared hinge loss over all pairs, with kernels at few chosen rows.

    .. math::

        f(x) = \sum_{j \in J} \beta_j k(x, x_j), \qquad \min_{J, \beta}\; \tfrac{\alpha}{2} \beta^\top K_{JJ} \beta
            + \tfrac{1}{2 n_+ n_-} \sum_{i \in +} \sum_{j \in -} \max(0,\, 1 - (f(x_i) - f(x_j)))^2

    J grows by the best of a few random rows at a time, by how much one Newton step of its coefficient lowers the
    objective; at every power of two, and at the end, all coefficients are optimised by Newton's method. No list of
    pairs is ever made: sums over all pairs are taken in the order of the scores.

    This is a reconstruction: the number of candidates, the times at which coefficients are optimised and the rule for
    stopping are those of the method's model, the reduced-basis SVM of Keerthi et al. (2006); the paper's own are not
    confirmed.

    Parameters
    ----------
    kernel : "gaussian", "laplace", "cauchy", "matern32", "matern52" or "linear".
    gamma : kernel width: a number, "paper" = 1 / (2 d), or "median" = 1 / median squared distance.
    alpha : weight of the norm, above 0.
    max_support : most rows in J.
    n_candidates : random rows of which one is chosen; one of 59 is among the best 5% in 95% of all draws.
    tol : stop when a choice lowers the objective by less than this part of it.
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".
    dtype : of the kept rows and of the scores; the fit is in float64.
    pos_label, class_weight, random_state, columns, half_life, drift : as in :class:`~pairloom.systems.FPOGD`.
    engine : "auto", "fused" or "reference" (every pair written out).

    It needs all rows at once: there is ``fit`` alone, and no half-life. A pair counts as the product of the weights of
    its rows. Log-odds are fitted to scores of the rows that were learned. More than two classes: one model for each
    against the rest, with a basis of its own.

    Attributes
    ----------
    support_, coef_, gamma_ : see :class:`~pairloom.estimators.kernel_classifier.KernelClassifier`.
    loss_ : mean squared hinge loss over all pairs.

    Notes
    -----
    Cost: For each of s rows in J, kernels of ``n_candidates`` rows with all n and as many sorts of n numbers; O(n s^2)
    for a Newton step. About 2 n (s + ``n_candidates``) numbers while fitting, s d afterwards.

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

    def __init__(
        self,
        *,
        kernel: KernelName = "gaussian",
        gamma: float | Literal["paper", "median"] = "paper",
        alpha: float = 1e-4,
        max_support: int = 200,
        n_candidates: int = 59,
        tol: float = 1e-4,
        scale: Scaling = None,
        dtype: Dtype = "float32",
        pos_label: Any = None,
        class_weight: ClassWeight = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        engine: EngineName = "auto",
        columns: ColumnsLike = None,
        half_life: HalfLife = None,
        drift: Drift = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.alpha = alpha
        self.max_support = max_support
        self.n_candidates = n_candidates
        self.tol = tol
        self.scale = scale
        self.dtype = dtype
        self.pos_label = pos_label
        self.class_weight = class_weight
        self.random_state = random_state
        self.engine = engine
        self.columns = columns
        self.half_life = half_life
        self.drift = drift

    @property
    def card(self) -> Card:
        model: Literal["linear", "kernel"] = "linear" if self.kernel == "linear" else "kernel"
        return Card("Kakkar et al. 2017", "s d + s^2 + s log n", "n s", "AUC", model, "exact", "offline")

    @property
    def needs_all_rows(self) -> bool:
        return True

    def _make_model(self, n_classes: int, seed: int | None) -> "GreedyBasis":
        return GreedyBasis(
            kernel=exact_kernel(self.kernel, self.gamma),
            features=Identity(scale=self.scale),
            pairs=OppositeClass(n_classes),
            alpha=self.alpha,
            max_support=self.max_support,
            n_candidates=self.n_candidates,
            tol=self.tol,
            dtype=self.dtype,
            seed=seed,
            engine=self.engine,
        )


@node
class BasisState(ExpansionState):
    """Scaled rows ``supports`` and their ``coef``, those of model k being ``starts[k] : starts[k + 1]``."""

    supports: Rounded
    coef: Array
    starts: Array


@dataclass(frozen=True, kw_only=True)
class GreedyBasis(Expansion):
    """The learner of :class:`SparseKernelAUC`: all is learned by ``init``, and rows are only scored after it."""

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
        """Choose the basis for each target and optimise its coefficients, from all rows."""
        state = self.begin_empty(n_features, self.warm(first))
        if first is not None:
            self._choose(state, first)
        return state

    def check_room(self, state: State | None, n: int) -> None:
        """There is room for every row."""

    def _choose(self, state: State, batch: Batch) -> None:
        rows, coef = [], []
        for positive in self.pairs.signs(batch.y).T > 0:
            chosen, beta = self._fit(state, batch, positive)
            rows.append(chosen)
            coef.append(beta)
        supports = self.features.dense(state.phi, batch.X[np.concatenate(rows)])
        starts = np.cumsum([0, *map(len, rows)])
        state.memory = BasisState(state.memory.gamma, supports, np.concatenate(coef), starts)

    @property
    def forgets(self) -> bool:
        """No: it has all rows before it at once."""
        return False

    def forget(self, state: State, keep: float) -> None:
        """There is nothing to do."""

    def terms(self, kept: BasisState) -> list[tuple[Array, Array]]:
        cuts = zip(kept.starts[:-1], kept.starts[1:], strict=True)
        return [(kept.supports[start:end], kept.coef[None, start:end]) for start, end in cuts]

    def _fit(self, state: State, batch: Batch, positive: Array) -> tuple[Array, Array]:
        """The chosen rows and their coefficients; none if all rows are of one side."""
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
        """Kernel values between some of the rows and all of them, in float64; CSR rows stay CSR where they can."""
        gamma = state.memory.gamma
        seen_centred = self.kernel.gamma is None and center_of(state).size
        if is_sparse(X) and not seen_centred:
            return self.kernel(gamma, self.features.inputs(state.phi, X[rows]), self.features.inputs(state.phi, X))
        some = self.features.dense(state.phi, X[rows])
        blocks = [self.kernel(gamma, some, self.features.dense(state.phi, X[part])) for part in self.blocks(*X.shape)]
        return np.concatenate(blocks, axis=1)

    def start(self, gamma: Array, dim: int) -> BasisState:
        return BasisState(
            gamma, np.empty((0, dim), self.dtype), np.empty(0), np.zeros(len(self.pairs.targets) + 1, np.int64)
        )

    def step_row(self, state: State, row: KernelRow) -> None:
        """Nothing is left to learn."""

    def run_block(self, state: State, block: KernelBlock) -> None:
        for k, (supports, coef) in enumerate(self.terms(state.memory)):
            block.scores[:, [k]] = evaluate(self.kernel.code, float(state.memory.gamma), block.X, supports, coef)
