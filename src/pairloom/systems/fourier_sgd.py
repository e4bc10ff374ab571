"""FourierSGD: random Fourier features and plain stochastic gradient descent, the controls of every comparison."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from pairloom.base.checks import check_choice, check_count
from pairloom.base.compiled import compiled, dot, move
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.columns import ColumnsLike
from pairloom.engines import reference
from pairloom.engines.base import EngineName
from pairloom.engines.fused import SKIP, apply_step, safe_length
from pairloom.engines.sparse_kernels import SIGMA, A, B, average_rows, gather, square_of, step_rows
from pairloom.engines.state import LOSS, STEPS, LazyModel, State
from pairloom.estimators.card import Card
from pairloom.estimators.class_weight import ClassWeight
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.features import FeatureMap, feature_map
from pairloom.features.choice import KernelName
from pairloom.features.scaling import Scaling
from pairloom.losses import LOSSES, Logistic, Loss, LossName, loss_slope, loss_value, with_loss
from pairloom.memory import Latest, Memory, Reservoir
from pairloom.models.base import Dtype, Model
from pairloom.models.learner import Learner
from pairloom.models.rule import Block, Row, Rule, RuleLearner, descend
from pairloom.pairs import OppositeClass
from pairloom.steps import L2, Average, Penalty, simple_schedule
from pairloom.stream.drift import Drift
from pairloom.stream.forgetting import HalfLife
from pairloom.systems.fpogd import Schedules

PairsOf = Literal["none", "previous", "reservoir"]


class FourierSGD(PairwiseClassifier):
    r"""Random Fourier features and stochastic gradient descent: what FPOGD is without its strata.

    .. math::

        w \leftarrow (1 - \eta\alpha) w - \eta\, y\, \ell'(y (\langle w, z \rangle + b))\, z

    Parameters
    ----------
    pairs : "none" (the formula above: each example for itself, with an intercept b that no ranking sees), "previous"
        (the example before it, if it is of the other class) or "reservoir" (a uniform sample of the other class,
        equal weights: FPOGD without clusters).
    size : examples in each class's reservoir.
    loss : "logistic", "square", "hinge" or "squared_hinge", of the example's or of the pair's margin.
    kernel, gamma, n_components : as in :class:`~pairloom.systems.FPOGD`.
    eta, schedule, alpha, average : step, its schedule, L2 penalty, and the iterate that scores.
    scale, dtype, pos_label, class_weight, random_state, engine, features, columns, half_life, drift : as in
        :class:`~pairloom.systems.FPOGD`.

    In a kernel space a reservoir is a trap: see :class:`~pairloom.Reservoir`.

    Notes
    -----
    Cost: O(d D) time, of which the map takes most, and d D / 2 + 2 D numbers; with a reservoir s D more of both.

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

    def __init__(
        self,
        *,
        pairs: PairsOf = "none",
        size: int = 16,
        loss: LossName = "logistic",
        kernel: KernelName = "gaussian",
        gamma: float | Sequence[float] | Literal["paper", "median"] = "paper",
        n_components: int = 512,
        eta: float = 0.5,
        schedule: Schedules = "constant",
        alpha: float = 1e-6,
        average: Average = "mean",
        scale: Scaling = None,
        dtype: Dtype = "float32",
        pos_label: Any = None,
        class_weight: ClassWeight = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        engine: EngineName = "auto",
        features: FeatureMap | None = None,
        columns: ColumnsLike = None,
        half_life: HalfLife = None,
        drift: Drift = None,
    ) -> None:
        self.pairs = pairs
        self.size = size
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.eta = eta
        self.schedule = schedule
        self.alpha = alpha
        self.average = average
        self.scale = scale
        self.dtype = dtype
        self.pos_label = pos_label
        self.class_weight = class_weight
        self.random_state = random_state
        self.engine = engine
        self.features = features
        self.columns = columns
        self.half_life = half_life
        self.drift = drift

    @property
    def card(self) -> Card:
        cost = "d D + s D" if self.pairs == "reservoir" else "d D"
        problem: Literal["general", "pointwise"] = "pointwise" if self.pairs == "none" else "general"
        model: Literal["linear", "kernel"] = "linear" if self.kernel == "linear" else "kernel"
        return Card("Rahimi and Recht 2007", cost, cost, problem=problem, model=model)

    def _make_model(self, n_classes: int, seed: int | None) -> Model:
        check_choice("pairs", self.pairs, PairsOf)
        check_count("size", self.size)
        check_choice("loss", self.loss, LOSSES)
        parts: dict[str, Any] = {
            "features": feature_map(self.features, self.kernel, self.gamma, self.n_components, self.scale),
            "pairs": OppositeClass(n_classes),
            "step": simple_schedule(self.schedule, self.eta),
            "penalty": L2(self.alpha),
            "average": self.average,
            "dtype": self.dtype,
            "seed": seed,
            "engine": self.engine,
        }
        if self.pairs == "none":
            return RuleLearner(rule=Pointwise(LOSSES[self.loss]), **parts)
        memory: Memory = Latest("previous") if self.pairs == "previous" else Reservoir(self.size)
        return Learner(loss=LOSSES[self.loss], memory=memory, **parts)


@node
class Intercept:
    """b of each model."""

    b: Array


@dataclass(frozen=True)
class Pointwise(Rule):
    """A gradient step on the loss of the example's own margin y (<w, z> + b)."""

    loss: Loss = field(default_factory=Logistic)

    def start(self, dim: int, n_models: int) -> Intercept:
        return Intercept(np.zeros(n_models))

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
    """Move b; returns the factor of z by which w is to descend (infinity: no step, not even of the penalty)."""
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
    """``Pointwise.step`` over the rows of a block."""
    block = Block(*block_)
    Z, y, weight, steps, averaging, scores = block.Z, block.y, block.weight, block.steps, block.averaging, block.scores
    for i in range(Z.shape[0]):
        z = Z[i]
        square = float(dot(z, z))
        for k in range(w.shape[0]):
            s = dot(w[k], z)
            scores[i, k] = dot(w_bar[k], z) if averaging else s
            by = descent(loss, smooth, y[i, k], s, square, weight[i], steps[1, i], b[k : k + 1], tally)
            if by < np.inf:
                apply_step(w[k], z, steps[0, i], by, steps[2, i], np.inf)
            if averaging:
                move(w_bar[k], w[k], block.rho[i])


@compiled
def learn_rows(
    block_: Any, loss: int, smooth: bool, w_hat: Array, u_hat: Array, factors: Array, b: Array, tally: Array
) -> None:  # fmt: skip
    """``learn`` for CSR rows."""
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
