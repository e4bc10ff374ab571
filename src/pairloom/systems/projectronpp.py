"""Projectron++: a kernel perceptron with margin whose support set grows only where it must."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.checks import check_count, check_number
from pairloom.base.compiled import compiled, dot
from pairloom.base.tree import Rounded, node
from pairloom.base.typing import Array
from pairloom.columns import ColumnsLike
from pairloom.engines import reference
from pairloom.engines.base import EngineName
from pairloom.engines.fused import SKIP, guard
from pairloom.engines.state import LOSS, STEPS, State
from pairloom.estimators.card import Card
from pairloom.estimators.class_weight import ClassWeight
from pairloom.estimators.kernel_classifier import KernelClassifier
from pairloom.features import Identity, exact_kernel
from pairloom.features.choice import KernelName
from pairloom.features.exact import kernel_row, kernel_with_itself
from pairloom.features.scaling import Scaling
from pairloom.models.base import Dtype
from pairloom.models.expansion import Expansion, ExpansionState, KernelBlock, KernelRow
from pairloom.pairs import OppositeClass
from pairloom.stream.drift import Drift
from pairloom.stream.forgetting import HalfLife


class ProjectronPP(KernelClassifier):
    r"""Classify by a sum of kernels, one example at a time; a pointwise rival, not a method for pairs.

    .. math::

        f \leftarrow f + \tau\, y_t\, P k(x_t, \cdot), \qquad \delta^2 = \|k(x_t, \cdot) - P k(x_t, \cdot)\|^2

    P projects onto the span of the supports. After a mistake (y f <= 0), tau = 1, and where delta^2 > theta x_t becomes
    a support in place of its projection. After a margin error (0 < y f < 1) of loss l = 1 - y f with l > delta^2 /
    theta, tau = min(1, l / ||P k||^2, 2 (l - delta^2 / theta) / ||P k||^2).

    Parameters
    ----------
    theta : squared distance to the span up to which an example is projected (the paper's eta; some texts compare the
        distance itself). 0: nothing but rounding errors is projected and there are no margin updates: the kernel
        perceptron.
    max_supports : largest number of supports. Once it is reached every mistake is projected. This cap is ours: for
        theta > 0 the paper's set is finite too, but with no number to plan memory by.
    kernel : "gaussian", "laplace", "cauchy", "matern32", "matern52" or "linear".
    gamma : kernel width: a number, "paper" = 1 / (2 d), or "median" = 1 / median squared distance.
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".
    dtype, pos_label, class_weight, random_state, engine, columns, half_life, drift : as in
        :class:`~pairloom.systems.FPOGD`.

    A weight takes the place of the 1 in tau. The model speaks from the first row on, of whatever class. More than two
    classes: one model for each against the rest, with supports of its own. It has nothing to forget, so no half-life.

    Attributes
    ----------
    support_, coef_, gamma_ : see :class:`~pairloom.estimators.kernel_classifier.KernelClassifier`.
    loss_ : the mean hinge loss; ``n_pairs_`` is 0.

    Notes
    -----
    Cost: s d flops and s kernel values per example for s supports, and s^2 flops where the margin is below 1. m d + m^2
    numbers for m = ``max_supports``, of each model.

    References
    ----------
    Orabona, Keshet and Caputo, Bounded Kernel-Based Online Learning, JMLR 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ProjectronPP(gamma="median", scale="standard").fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    """

    def __init__(
        self,
        *,
        theta: float = 0.1,
        max_supports: int = 500,
        kernel: KernelName = "gaussian",
        gamma: float | Literal["paper", "median"] = "paper",
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
        self.theta = theta
        self.max_supports = max_supports
        self.kernel = kernel
        self.gamma = gamma
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
        return Card("Orabona et al. 2009", "s d + s^2", "s d + s^2", problem="pointwise", model=model)

    def _make_model(self, n_classes: int, seed: int | None) -> "Projecting":
        return Projecting(
            theta=self.theta,
            max_supports=self.max_supports,
            kernel=exact_kernel(self.kernel, self.gamma),
            features=Identity(scale=self.scale),
            pairs=OppositeClass(n_classes),
            dtype=self.dtype,
            seed=seed,
            engine=self.engine,
        )


@node
class Span(ExpansionState):
    """``supports`` (models, m, d), ``coef`` (models, m), and ``used`` (models,) of them.

    ``inverse`` (models, m, m) is that of the kernels between the supports, kept up by the compiled loop only.
    """

    supports: Rounded
    coef: Array
    used: Array
    inverse: Array


@dataclass(frozen=True, kw_only=True)
class Projecting(Expansion):
    """Projectron++'s step; parameters as in :class:`ProjectronPP`."""

    theta: float = 0.1
    max_supports: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("theta", self.theta, 0)
        check_count("max_supports", self.max_supports)

    @property
    def rounding(self) -> float:
        """Scores, and squared distances relative to k(x, x), that are nothing but rounding errors."""
        return float(np.sqrt(np.finfo(self.dtype).eps))

    def start(self, gamma: Array, dim: int) -> Span:
        n, m = len(self.pairs.targets), self.max_supports
        return Span(
            gamma, np.zeros((n, m, dim), self.dtype), np.zeros((n, m)), np.zeros(n, np.int64), np.zeros((n, m, m))
        )

    @property
    def draws(self) -> int:
        return 0

    def init(self, n_features: int, first: Batch | None) -> State:
        return self.begin_empty(n_features, first)

    def check_room(self, state: State | None, n: int) -> None:
        """There is room for every row."""

    @property
    def forgets(self) -> bool:
        """No: every step is as long as the first, and its supports stay."""
        return False

    def forget(self, state: State, keep: float) -> None:
        """There is nothing to do."""

    def terms(self, kept: Span) -> list[tuple[Array, Array]]:
        return [(kept.supports[k, :n], kept.coef[k : k + 1, :n]) for k, n in enumerate(kept.used)]

    def step_row(self, state: State, row: KernelRow) -> None:
        for k in range(len(row.y)):
            self._step_model(state, k, float(row.y[k]), row)

    def _step_model(self, state: State, k: int, y: float, row: KernelRow) -> None:
        kept: Span = state.memory
        supports, coef = self.terms(kept)[k]
        n, near = len(supports), self.values(state, row.x, supports)
        square = float(self.values(state, row.x, row.x[None, :])[0])
        margin = y * float(coef[0] @ near)
        weight = reference.guard(row.weight, 0.0, square, state.tally)
        if weight == 0:
            return
        state.tally[STEPS] += row.weight
        state.tally[LOSS] += row.weight * max(0.0, 1.0 - margin)
        if margin >= 1:
            return
        gram = np.array([self.values(state, point, supports) for point in supports]).reshape(n, n)
        e = np.linalg.solve(gram, near)
        distance = max(0.0, square - float(near @ e))
        if margin > self.rounding:
            kept.coef[k, :n] += self._margin_step(1.0 - margin, distance, square - distance, weight) * y * e
        elif distance > max(self.theta * (n > 0), self.rounding * square) and n < self.max_supports:
            kept.supports[k, n], kept.coef[k, n] = row.x, weight * y
            kept.used[k] += 1
        else:
            kept.coef[k, :n] += weight * y * e

    def _margin_step(self, loss: float, distance: float, projected: float, weight: float) -> float:
        """tau of a margin error; 0 if it would not pay."""
        if not loss * self.theta > distance:
            return 0.0
        return min(weight, loss / projected, 2.0 * (loss - distance / self.theta) / projected)

    def run_block(self, state: State, block: KernelBlock) -> None:
        kept: Span = state.memory
        learn(
            tuple(block), self.kernel.code, float(kept.gamma), float(self.theta), self.rounding,
            kept.supports, kept.coef, kept.used, kept.inverse, state.tally,
        )  # fmt: skip


@compiled
def learn(
    block_: Any, kernel: int, gamma: float, theta: float, rounding: float,
    supports: Array, coef: Array, used: Array, inverse: Array, tally: Array,
) -> None:  # fmt: skip
    """``Projecting.step_row`` and scores over the rows of a block."""
    block = KernelBlock(*block_)
    X, y, weight, scores = block.X, block.y, block.weight, block.scores
    near, e = np.empty(coef.shape[1], X.dtype), np.empty(coef.shape[1])
    for i in range(X.shape[0]):
        x, square = X[i], kernel_with_itself(kernel, X[i])
        for k in range(coef.shape[0]):
            n = used[k]
            kernel_row(kernel, gamma, x, supports[k, :n], near[:n])
            f = dot(coef[k, :n], near[:n]) if n else 0.0
            scores[i, k] = f
            margin = y[i, k] * f
            rate = guard(weight[i], 0.0, square, tally)
            if rate == SKIP:
                continue
            tally[STEPS] += weight[i]
            tally[LOSS] += weight[i] * max(0.0, 1.0 - margin)
            if margin >= 1:
                continue
            distance = project(square, near[:n], inverse[k], e)
            far = distance > max(theta if n else 0.0, rounding * square)
            if margin <= rounding and far and n < coef.shape[1]:
                supports[k, n], coef[k, n] = x, rate * y[i, k]
                used[k] += 1
                grow(inverse[k], e, n, distance)
                continue
            if margin > rounding:
                rate = margin_step(1.0 - margin, distance, square - distance, rate, theta)
            for j in range(n):
                coef[k, j] += rate * y[i, k] * e[j]


@compiled
def project(square: float, near: Array, inverse: Array, e: Array) -> float:
    """The squared distance of x from the span; fills e, the coefficients of its projection."""
    n, distance = near.shape[0], square
    for j in range(n):
        e[j] = dot(inverse[j, :n], near)
        distance -= near[j] * e[j]
    return max(0.0, distance)


@compiled
def margin_step(loss: float, distance: float, projected: float, weight: float, theta: float) -> float:
    """``Projecting._margin_step``."""
    if not loss * theta > distance:
        return 0.0
    return min(weight, loss / projected, 2.0 * (loss - distance / theta) / projected)


@compiled
def grow(inverse: Array, e: Array, n: int, distance: float) -> None:
    """The inverse with one more support, whose projection has coefficients e: + u u^T / delta^2, u = (e, -1)."""
    e[n] = -1.0
    for a in range(n + 1):
        for b in range(n + 1):
            inverse[a, b] += e[a] * e[b] / distance
