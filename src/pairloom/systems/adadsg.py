"""AdaDSG: random pairs of growing nested subsets, each learned to its statistical accuracy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from types import NoneType
from typing import Any, ClassVar, Literal

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.compiled import compiled, dot
from pairloom.base.csr import CSRRows, is_sparse
from pairloom.base.graph import Value
from pairloom.base.spec import StateSpec
from pairloom.base.typing import Array
from pairloom.engines import reference
from pairloom.engines.base import BLOCK_BYTES, Engine
from pairloom.engines.fused_steps import SKIP, apply_step, safe_length
from pairloom.engines.sparse import lazy_weights
from pairloom.engines.sparse_steps import SIGMA, gather, square_of, step_rows
from pairloom.engines.state import LOSS, PAIRS, STEPS, State
from pairloom.estimators.card import Card
from pairloom.estimators.parameters import estimator
from pairloom.features.capabilities import check_not_growing, rows_used_to_grow, scores_onnx
from pairloom.features.contributions import Explainable
from pairloom.losses import LOSSES, Loss, LossName, Square, loss_slope, loss_value, with_loss
from pairloom.models.mapped import Mapped, explainable_scores, linear_scores
from pairloom.pairs import OppositeClass
from pairloom.steps import Constant, ElasticNet
from pairloom.systems.base import LinearClassifier

Accuracy = Literal["sqrt", "inverse", "constant"]

ACCURACY_EXPONENTS: dict[str, float] = {"sqrt": -0.5, "inverse": -1.0, "constant": 0.0}


@estimator
class AdaDSG(LinearClassifier):
    r"""Rank one class above the other by steps on random pairs from nested subsets of increasing size.

    .. math::

        w \leftarrow \mathrm{prox}\big(w - \eta\, \ell'(\langle w, z_i - z_j \rangle) (z_i - z_j)\big), \qquad
        \Omega_n(w) = V_n \big(\tfrac{\alpha}{2} \|w\|^2 + \lambda_1 \|w\|_1\big)

    Each step draws a positive i and a negative j from the n rows of the stage. Stages take the first rows of one
    permutation of each class, so the subsets are nested and stratified. A row of weight 2 is drawn twice as often, so a
    pair counts by the product of its weights. It needs all rows at once: there is only ``fit``, and log-odds are fitted
    to the scores of the training rows.

    This is a reconstruction: the exponent of V_n, the constant of the penalty and the number of steps per stage are not
    confirmed. The available code uses half the gradient of the square loss (its eta is twice the eta here), and
    iterates over two permutations instead of drawing with replacement.

    Parameters
    ----------
    loss : "square", "hinge", "squared_hinge" or "logistic".
    eta : step size.
    alpha : L2 penalty, for V_n = 1.
    l1 : L1 penalty, for V_n = 1.
    accuracy : V_n: "sqrt" (n^-1/2), "inverse" (1 / n) or "constant" (1, as in the available code).
    n_stages : number of stages. The first has a share growth^(1 - n_stages) of each class, the last all rows.
    growth : size of a stage relative to the previous one; 1 is plain SGD on random pairs.
    passes : number of steps of a stage, in multiples of its larger class.

    Notes
    -----
    Cost: with growth 2, about 2 ``passes`` n steps of O(D) for n rows in the larger class, each with the features of
    two rows; D numbers in addition to the rows. The cost of CSR rows is linear in their entries, unless ``l1`` > 0.

    References
    ----------
    Gu, Huo and Huang, Scalable and Efficient Pairwise Learning to Achieve Statistical Accuracy, AAAI 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaDSG(eta=0.001, scale="standard", random_state=0).fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    """

    loss: LossName = "square"
    eta: float = 0.01
    alpha: float = 0.01
    l1: float = 0.0
    accuracy: Accuracy = "sqrt"
    n_stages: int = 10
    growth: float = 2.0
    passes: int = 1

    @property
    def card(self) -> Card:
        return Card("Gu et al. 2019", "D", "D", problem="general", scheme="offline")

    @property
    def needs_all_rows(self) -> bool:
        return True

    def _make_model(self, n_classes: int, seed: int | None) -> "StagedPairs":
        check_choice("loss", self.loss, LOSSES)
        check_choice("accuracy", self.accuracy, Accuracy)
        return StagedPairs(
            loss=LOSSES[self.loss],
            step=Constant(self.eta),
            penalty=ElasticNet(self.alpha, self.l1),
            accuracy=self.accuracy,
            n_stages=self.n_stages,
            growth=self.growth,
            passes=self.passes,
            **self._common_parts(n_classes, seed),
        )


@dataclass(frozen=True)
class Stage:
    """The rows of a stage, positives first, their cumulative weights, and the number of steps."""

    rows: tuple[Array, Array]
    cumulative: tuple[Array, Array]
    steps: int

    def draw(self, uniforms: Array) -> tuple[Array, Array]:
        """Return rows i and j of pairs, from two uniform numbers each, with probabilities proportional to weights."""
        i, j = (
            rows[np.searchsorted(total, total[-1] * u, side="right").clip(max=len(rows) - 1)]
            for rows, total, u in zip(self.rows, self.cumulative, uniforms.T, strict=True)
        )
        return i, j


def stages(
    positive: Array, weight: Array, n_stages: int, growth: float, passes: int, rng: np.random.Generator
) -> Iterator[Stage]:
    """Yield nested subsets: the first rows of one permutation of each side."""
    sides = [rng.permutation(np.flatnonzero(side)) for side in (positive, ~positive)]
    for stage in range(n_stages):
        share = float(growth) ** (stage + 1 - n_stages)
        i, j = (side[: ceil(share * len(side))] for side in sides)
        yield Stage((i, j), (np.cumsum(weight[i]), np.cumsum(weight[j])), passes * max(len(i), len(j)))


@dataclass(frozen=True)
class Scoring:
    """An engine that only scores: the rows have been learned before."""

    double: bool
    any_part: bool

    def takes(self, model: "StagedPairs", state: State, batch: Batch) -> bool:
        return True

    def run(self, model: "StagedPairs", state: State, batch: Batch) -> Array:
        state.t += len(batch)
        return model.score(state, batch.X)


@dataclass(frozen=True, kw_only=True)
class StagedPairs(Mapped):
    """The model of :class:`AdaDSG`: <w, phi(x)>, learned from random pairs of all rows, in stages."""

    engines: ClassVar[Mapping[str, Sequence[Engine]]] = {
        "reference": (Scoring(double=True, any_part=True),),
        "fused": (Scoring(double=False, any_part=False),),
    }

    pairs: OppositeClass = field(default_factory=OppositeClass)
    loss: Loss = field(default_factory=Square)
    step: Constant = field(default_factory=lambda: Constant(0.01))
    penalty: ElasticNet = field(default_factory=ElasticNet)
    accuracy: Accuracy = "sqrt"
    n_stages: int = 10
    growth: float = 2.0
    passes: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_growing(self.features, type(self).__name__)
        check_count("n_stages", self.n_stages)
        check_number("growth", self.growth, 1)
        check_count("passes", self.passes)

    def init(self, n_features: int, first: Batch | None) -> State:
        """Learn all rows."""
        state = self.begin(n_features, self.warm(first), lambda phi, rows: None)
        if first is not None:
            self._learn(state, first[rows_used_to_grow(self.features, state.phi) :])
        return state

    def _learn(self, state: State, batch: Batch) -> None:
        for k, target in enumerate(self.pairs.targets):
            positive = batch.y == target
            if positive.all() or not positive.any():
                continue
            for stage in stages(positive, batch.weight, self.n_stages, self.growth, self.passes, state.rng):
                self._learn_stage(state, k, batch.X, stage)
        self._make_dense(state)

    def run(self, state: State, batch: Batch) -> Scored:
        """Score the rows, which ``init`` has learned."""
        return self.learn(state, batch)

    def coef(self, state: State) -> Array:
        """Return w, one row per target of the pairs."""
        return state.w

    def score(self, state: State, X: Any) -> Array:
        """Return <w, phi(x)> of each row."""
        return linear_scores(self.features, state, state.w, X)

    def explainable(self, state: State) -> Explainable | None:
        return explainable_scores(self.features, state, self.coef(state))

    def to_onnx(self, state: State, x: Value) -> Value:
        return scores_onnx(self.features, state.phi, self.coef(state), x)

    def memory_spec(self, n_features: int, dim: int) -> StateSpec:
        return StateSpec(NoneType)

    def check_state(self, t: int, state: State) -> None:
        state.check_plain(t)

    def _learn_stage(self, state: State, k: int, X: Any, stage: Stage) -> None:
        accuracy = sum(map(len, stage.rows)) ** ACCURACY_EXPONENTS[self.accuracy]
        penalty = ElasticNet(accuracy * self.penalty.alpha, accuracy * self.penalty.l1)
        steps = np.array(penalty.at(np.asarray(self.step.eta)))
        rows = max(8, BLOCK_BYTES // state.w[0].nbytes)
        for start in range(0, stage.steps, rows):
            i, j = stage.draw(state.rng.random((min(rows, stage.steps - start), 2)))
            self._descend(state, k, X[i], X[j], steps)

    def _descend(self, state: State, k: int, X: Any, X2: Any, steps: Array) -> None:
        """Take a step for each of these pairs, in order."""
        loss, D = self.loss, self._differences(state, X, X2)
        smooth = bool(np.isfinite(loss.smoothness))
        if self.by_specification:
            for d in D:
                state.w[k] = descend(state.w[k], d, loss, steps, state.tally)
        elif isinstance(D, CSRRows):
            model = lazy_weights(state, averaging=False)
            with_loss(learn_rows, loss)(
                D.data, D.indices, D.indptr, loss.code, smooth, steps,
                model.w_hat[k], model.u_hat[k], model.factors[k], state.tally,
            )  # fmt: skip
        else:
            with_loss(learn, loss)(D, loss.code, smooth, steps, state.w[k], state.tally)

    def _differences(self, state: State, X: Any, X2: Any) -> Any:
        """Return phi(x) - phi(x') of pairs of rows; CSR if possible, but dense for the specification."""
        phi = self.features
        if phi.sparse is None and not (phi.keeps_csr and is_sparse(X)):
            return phi.apply(state.phi, X) - phi.apply(state.phi, X2)
        mapped = phi.inputs if phi.sparse is None else phi.apply
        D: Any = mapped(state.phi, X) - mapped(state.phi, X2)
        return D.toarray() if self.by_specification else CSRRows.of(D)

    def _make_dense(self, state: State) -> None:
        """Convert the lazy weights of CSR rows to dense weights."""
        if state.lazy is not None:
            state.w[:] = state.lazy.factors[:, [SIGMA]] * state.lazy.w_hat
            state.lazy = None


def descend(w: Array, d: Array, loss: Loss, steps: Array, tally: Array) -> Array:
    """Return w after a step on a pair with difference d = z_i - z_j: the specification."""
    keep, rate, threshold = steps.tolist()
    margin = w @ d
    g, slope = float(loss.value(margin)), float(loss.derivative(margin))
    size = slope**2 * float(d @ d)
    curvature = size / (2.0 * g) if g > 0 and np.isfinite(loss.smoothness) else 0.0
    rate = reference.guard(rate, curvature, g + size, tally)
    if rate == 0:
        return w
    tally[[STEPS, PAIRS, LOSS]] += [1.0, 1.0, g]
    u = keep * w - rate * slope * d
    return np.asarray(np.sign(u) * np.maximum(0.0, np.abs(u) - threshold))


@compiled
def learn(D: Array, loss: int, smooth: bool, steps: Array, w: Array, tally: Array) -> None:
    """Run ``descend`` over the rows of D."""
    for i in range(D.shape[0]):
        margin = dot(w, D[i])
        g, slope = loss_value(loss, margin), loss_slope(loss, margin)
        length = safe_length(g, slope * slope * float(dot(D[i], D[i])), steps[0], steps[1], smooth, False, tally)
        if length != SKIP:
            apply_step(w, D[i], steps[0], length * slope, steps[2], np.inf)
            tally[STEPS] += 1.0
            tally[PAIRS] += 1.0
            tally[LOSS] += g


@compiled
def learn_rows(
    data: Array, indices: Array, indptr: Array, loss: int, smooth: bool, steps: Array,
    w: Array, u: Array, f: Array, tally: Array,
) -> None:  # fmt: skip
    """Run ``learn`` on CSR rows: w = sigma w_hat."""
    nowhere = np.empty(0)
    for i in range(indptr.shape[0] - 1):
        cols, vals = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        margin, square = f[SIGMA] * gather(w, cols, vals), square_of(vals)
        g, slope = loss_value(loss, margin), loss_slope(loss, margin)
        length = safe_length(g, slope * slope * square, steps[0], steps[1], smooth, False, tally)
        if length != SKIP:
            step_rows(w, u, f, nowhere, cols, vals, square, steps[0], length * slope, steps[2], np.inf)
            tally[STEPS] += 1.0
            tally[PAIRS] += 1.0
            tally[LOSS] += g
