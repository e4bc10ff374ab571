"""FourierSGD: random Fourier features and plain stochastic gradient descent, a baseline for comparisons."""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from pairloom.base.checks import check_choice, check_count
from pairloom.base.compiled import compiled, dot, move
from pairloom.base.merging import RowCounts, moved
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.engines import reference
from pairloom.engines.fused_steps import SKIP, apply_step, safe_length
from pairloom.engines.sparse_steps import SIGMA, A, B, average_rows, gather, square_of, step_rows
from pairloom.engines.state import LOSS, STEPS, LazyModel, State
from pairloom.estimators.card import Card, model_kind
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.estimators.parameters import estimator
from pairloom.features import FeatureMap
from pairloom.features.fourier import feature_map
from pairloom.features.kernels import Gamma, KernelName
from pairloom.features.scaling import Scaling
from pairloom.losses import LOSSES, Logistic, Loss, LossName, loss_slope, loss_value, with_loss
from pairloom.memory import Latest, Memory, Reservoir
from pairloom.models.base import Model
from pairloom.models.learner import Learner
from pairloom.models.rule import Block, CSRRule, Row, RuleLearner, descend
from pairloom.steps import L2, Average, Penalty
from pairloom.steps.schedules import SimpleSchedule, simple_schedule

PairsOf = Literal["none", "previous", "reservoir"]


@estimator
class FourierSGD(PairwiseClassifier):
    r"""Classify or rank by random Fourier features and stochastic gradient descent: FPOGD without strata.

    .. math::

        w \leftarrow (1 - \eta\alpha) w - \eta\, y\, \ell'(y (\langle w, z \rangle + b))\, z

    The formula is that of ``pairs="none"``, a pointwise learner; the intercept b does not affect the ranking. With
    pairs, z is the difference of two rows and b = 0. In a kernel space a reservoir performs badly: see
    :class:`~pairloom.memory.Reservoir`.

    Parameters
    ----------
    pairs : "none" (each row alone), "previous" (the previous row, if it is of the other class) or "reservoir" (a
        uniform sample of the other class with equal weights).
    size : rows in the reservoir of each class.
    loss : "logistic", "square", "hinge" or "squared_hinge", of the margin of a row or of a pair.
    kernel : "gaussian", "laplace", "cauchy", "matern32", "matern52", or "linear" (phi(x) = x).
    gamma : kernel width: a number, one number per column, "paper" = 1 / (2 d), or "median" = 1 / median squared
        distance.
    n_components : number D of features, rounded up to an even number.
    eta : step size.
    schedule : "constant", "sqrt" (eta / sqrt(t)) or "poly" (eta t^-0.75).
    alpha : L2 penalty.
    average : the iterate that predicts: "mean", "poly" or "last".
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".
    features : any feature map, instead of the one that kernel, gamma, n_components and scale describe.

    Notes
    -----
    Cost: O(d D) time per row, mostly for the features, and d D / 2 + 2 D numbers; s D more of both with a reservoir.

    References
    ----------
    Rahimi and Recht, Random Features for Large-Scale Kernel Machines, NIPS 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = FourierSGD(gamma="median", scale="standard", random_state=0).fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {
        "": {}, ", previous": {"pairs": "previous"}, ", reservoir": {"pairs": "reservoir"},
    }  # fmt: skip

    pairs: PairsOf = "none"
    size: int = 16
    loss: LossName = "logistic"
    kernel: KernelName = "gaussian"
    gamma: Gamma = "paper"
    n_components: int = 512
    eta: float = 0.5
    schedule: SimpleSchedule = "constant"
    alpha: float = 1e-6
    average: Average = "mean"
    scale: Scaling = None
    features: FeatureMap | None = None

    @property
    def card(self) -> Card:
        cost = "d D + s D" if self.pairs == "reservoir" else "d D"
        problem: Literal["general", "pointwise"] = "pointwise" if self.pairs == "none" else "general"
        return Card("Rahimi and Recht 2007", cost, cost, problem, model_kind(self.kernel))

    def _make_model(self, n_classes: int, seed: int | None) -> Model:
        check_choice("pairs", self.pairs, PairsOf)
        check_count("size", self.size)
        check_choice("loss", self.loss, LOSSES)
        parts = self._common_parts(n_classes, seed) | {
            "features": feature_map(self.features, self.kernel, self.gamma, self.n_components, self.scale),
            "step": simple_schedule(self.schedule, self.eta),
            "penalty": L2(self.alpha),
            "average": self.average,
        }
        if self.pairs == "none":
            return RuleLearner(rule=Pointwise(LOSSES[self.loss]), **parts)
        memory: Memory = Latest("previous") if self.pairs == "previous" else Reservoir(self.size)
        return Learner(loss=LOSSES[self.loss], memory=memory, **parts)


@node
class Intercept:
    """Intercept b of each model."""

    b: Annotated[Array, "f8 v"]


@dataclass(frozen=True)
class Pointwise(CSRRule):
    """A gradient step on the loss of the margin y (<w, z> + b) of a row."""

    loss: Loss = field(default_factory=Logistic)

    def start(self, dim: int, n_models: int) -> Intercept:
        return Intercept(np.zeros(n_models))

    @property
    def merging(self) -> "Pointwise":
        return self

    def merge(self, base: Intercept, parts: list[Intercept], rows: RowCounts) -> Intercept:
        """Average the intercept by rows."""
        return Intercept(moved(base.b, [part.b for part in parts], rows.shares))

    def step(self, state: State, k: int, row: Row, penalty: Penalty) -> None:
        margin = np.asarray(row.y * (state.w[k] @ row.z + state.memory.b[k]))
        g, slope = float(self.loss.value(margin)), row.y * float(self.loss.derivative(margin))
        squared_norm = slope**2 * float(row.z @ row.z + 1.0)
        smooth = g > 0 and np.isfinite(self.loss.smoothness)
        rate = reference.guard(row.rate, squared_norm / (2.0 * g) if smooth else 0.0, g + squared_norm, state.tally)
        if rate:
            state.w[k] = descend(state.w[k], slope * row.z, row, rate, penalty.bound)
            state.memory.b[k] -= rate * slope
            state.tally[STEPS] += row.weight
            state.tally[LOSS] += row.weight * g

    def run(self, state: State, block: Block) -> None:
        smooth = bool(np.isfinite(self.loss.smoothness))
        with_loss(learn, self.loss)(
            tuple(block), self.loss.code, smooth, state.w, state.w_bar, state.memory.b, state.tally
        )  # fmt: skip

    def run_rows(self, state: State, model: LazyModel, block: Block) -> None:
        smooth = bool(np.isfinite(self.loss.smoothness))
        with_loss(learn_rows, self.loss)(
            tuple(block), self.loss.code, smooth, model.w_hat, model.u_hat, model.factors, state.memory.b, state.tally
        )  # fmt: skip


@compiled
def descent(
    loss: int, smooth: bool, y: float, s: float, square: float, weight: float, rate: float, b: Array, tally: Array
) -> float:  # fmt: skip
    """Update b; return the factor of z in the step of w (infinity: no step, not even of the penalty)."""
    margin = y * (s + b[0])
    g, slope = loss_value(loss, margin), y * loss_slope(loss, margin)
    length = safe_length(g, slope * slope * (square + 1.0), 1.0, rate, smooth, False, tally)
    if length == SKIP:
        return np.inf
    b[0] -= length * slope
    tally[STEPS] += weight
    tally[LOSS] += weight * g
    return length * slope


@compiled
def learn(block_: Any, loss: int, smooth: bool, w: Array, w_bar: Array, b: Array, tally: Array) -> None:
    """Run ``Pointwise.step`` over a block of rows."""
    block = Block(*block_)
    Z, steps, averaging = block.Z, block.steps, block.averaging
    for i in range(Z.shape[0]):
        z = Z[i]
        square = float(dot(z, z))
        for k in range(w.shape[0]):
            s = dot(w[k], z)
            block.scores[i, k] = dot(w_bar[k], z) if averaging else s
            by = descent(loss, smooth, block.y[i, k], s, square, block.weight[i], steps[1, i], b[k : k + 1], tally)
            if by < np.inf:
                apply_step(w[k], z, steps[0, i], by, steps[2, i], np.inf)
            if averaging:
                move(w_bar[k], w[k], block.rho[i])


@compiled
def learn_rows(
    block_: Any, loss: int, smooth: bool, w_hat: Array, u_hat: Array, factors: Array, b: Array, tally: Array
) -> None:  # fmt: skip
    """Run ``learn`` on CSR rows: w = sigma w_hat."""
    block = Block(*block_)
    y, weight, steps, averaging, scores = block.y, block.weight, block.steps, block.averaging, block.scores
    data, indices, indptr = block.Z
    nowhere = np.empty(0)
    for i in range(y.shape[0]):
        cols, vals = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        square = square_of(vals)
        for k in range(w_hat.shape[0]):
            w, u, f = w_hat[k], u_hat[k], factors[k]
            s = gather(w, cols, vals)
            scores[i, k] = f[A] * s + f[B] * gather(u, cols, vals) if averaging else f[SIGMA] * s
            by = descent(loss, smooth, y[i, k], f[SIGMA] * s, square, weight[i], steps[1, i], b[k : k + 1], tally)
            if by < np.inf:
                step_rows(w, u, f, nowhere, cols, vals, square, steps[0, i], by, steps[2, i], np.inf)
            if averaging:
                average_rows(w, u, f, block.rho[i])
