"""Projectron++: a kernel perceptron with margin that adds a support only if the projection is inaccurate."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.checks import check_count, check_number
from pairloom.base.compiled import compiled, copy_to, dot
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.engines import reference
from pairloom.engines.fused_steps import SKIP, guard
from pairloom.engines.state import LOSS, STEPS, State
from pairloom.estimators.card import Card, model_kind
from pairloom.estimators.parameters import estimator
from pairloom.features.compiled_kernels import kernel_row, kernel_with_itself
from pairloom.models.expansion import Expansion, ExpansionState, KernelBlock, KernelRow
from pairloom.systems.base import KernelClassifier


@estimator
class ProjectronPP(KernelClassifier):
    r"""Classify by a sum of kernels, one row at a time: a pointwise baseline for the pairwise systems.

    .. math::

        f \leftarrow f + \tau\, y_t\, P k(x_t, \cdot), \qquad \delta^2 = \|k(x_t, \cdot) - P k(x_t, \cdot)\|^2

    P projects onto the span of the supports. After a mistake (y f <= 0), tau = 1, and if delta^2 > theta, x_t becomes a
    support instead of being projected. After a margin error (0 < y f < 1) of loss l = 1 - y f > delta^2 / theta,
    tau = min(1, l / ||P k||^2, 2 (l - delta^2 / theta) / ||P k||^2). The first row is always a mistake.
    More than two classes: one model per class against the rest, each with its own supports.

    Parameters
    ----------
    theta : squared distance to the span up to which a row is projected (the paper's eta; some texts compare the
        distance itself). 0 projects only rounding errors and makes no margin updates: the kernel perceptron.
    max_supports : largest number of supports, after which every mistake is projected. This limit is not in the paper,
        whose set of supports is finite for theta > 0, but without an explicit bound.

    Attributes
    ----------
    loss_ : mean hinge loss.
    n_pairs_ : 0.

    Notes
    -----
    Cost: s d flops and s kernel values per row for s supports, and s^2 flops if the margin is below 1. Each model has
    m d + m^2 numbers for m = ``max_supports``. A sample weight replaces the 1 in tau. There is no half-life: the model
    keeps no statistics of past rows.

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

    theta: float = 0.1
    max_supports: int = 500

    @property
    def card(self) -> Card:
        return Card("Orabona et al. 2009", "s d + s^2", "s d + s^2", "pointwise", model_kind(self.kernel))

    def _make_model(self, n_classes: int, seed: int | None) -> "Projecting":
        return Projecting(
            theta=self.theta,
            max_supports=self.max_supports,
            **self._common_parts(n_classes, seed),
        )


@node
class Span(ExpansionState):
    """``supports`` (models, m, d), ``coef`` (models, m), and ``used`` (models,) of them.

    ``factor`` (models, m, m): Cholesky factor of the kernels between the supports; only the compiled loop updates it.
    Their inverse would lose its accuracy, because supports may be close to the span of the others.
    """

    supports: Annotated[Array, "R v m d"]
    coef: Annotated[Array, "f8 v m"]
    used: Annotated[Array, "i8 v 0:m+1"]
    factor: Annotated[Array, "f8 v m m"]


@dataclass(frozen=True, kw_only=True)
class Projecting(Expansion):
    """The model of :class:`ProjectronPP`."""

    theta: float = 0.1
    max_supports: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("theta", self.theta, 0)
        check_count("max_supports", self.max_supports)

    @property
    def rounding(self) -> float:
        """Bound on rounding errors of scores, and of squared distances relative to k(x, x)."""
        return float(np.sqrt(np.finfo(self.dtype).eps))

    def start(self, gamma: Array, dim: int) -> Span:
        n, m = len(self.pairs.targets), self.max_supports
        return Span(
            gamma, np.zeros((n, m, dim), self.dtype), np.zeros((n, m)), np.zeros(n, np.int64), np.zeros((n, m, m))
        )

    @property
    def draws(self) -> int:
        return 0

    @property
    def state_symbols(self) -> dict[str, int]:
        return {"m": self.max_supports}

    def init(self, n_features: int, first: Batch | None) -> State:
        return self.begin_empty(n_features, first)

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
        """Return tau of a margin error; 0 if the loss is too small for an update."""
        if not loss * self.theta > distance:
            return 0.0
        return min(weight, loss / projected, 2.0 * (loss - distance / self.theta) / projected)

    def run_block(self, state: State, block: KernelBlock) -> None:
        kept: Span = state.memory
        learn(
            tuple(block), self.kernel.code, float(kept.gamma), float(self.theta), self.rounding,
            kept.supports, kept.coef, kept.used, kept.factor, state.tally,
        )  # fmt: skip


@compiled
def learn(
    block_: Any, kernel: int, gamma: float, theta: float, rounding: float,
    supports: Array, coef: Array, used: Array, factor: Array, tally: Array,
) -> None:  # fmt: skip
    """Run ``Projecting.step_row`` over a block of rows and fill their scores."""
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
            distance = project(square, near[:n], factor[k], e)
            far = distance > max(theta if n else 0.0, rounding * square)
            if margin <= rounding and far and n < coef.shape[1]:
                copy_to(supports[k, n], x)
                copy_to(factor[k, n], e[:n])
                coef[k, n], factor[k, n, n] = rate * y[i, k], np.sqrt(distance)
                used[k] += 1
                continue
            solve_transposed(factor[k], e[:n])
            if margin > rounding:
                rate = margin_step(1.0 - margin, distance, square - distance, rate, theta)
            for j in range(n):
                coef[k, j] += rate * y[i, k] * e[j]


@compiled
def project(square: float, near: Array, factor: Array, z: Array) -> float:
    """Return the squared distance of x to the span, and fill z, the solution of L z = near for the factor L."""
    distance = square
    for j in range(near.shape[0]):
        z[j] = (near[j] - dot(factor[j, :j], z[:j])) / factor[j, j]
        distance -= z[j] * z[j]
    return max(0.0, distance)


@compiled
def solve_transposed(factor: Array, z: Array) -> None:
    """Replace z by the solution e of L^T e = z: the coefficients of the projection."""
    for j in range(z.shape[0] - 1, -1, -1):
        z[j] /= factor[j, j]
        for i in range(j):
            z[i] -= z[j] * factor[j, i]


@compiled
def margin_step(loss: float, distance: float, projected: float, weight: float, theta: float) -> float:
    """Compute ``Projecting._margin_step``."""
    if not loss * theta > distance:
        return 0.0
    return min(weight, loss / projected, 2.0 * (loss - distance / theta) / projected)
