"""AdaOAM: the gradient of OPAUC with one step size per coordinate."""

from dataclasses import dataclass
from math import sqrt
from typing import Annotated, Any

import numpy as np

from pairloom.base.checks import check_count, check_number
from pairloom.base.compiled import compiled, dot, move
from pairloom.base.merging import RowCounts, added
from pairloom.base.spec import StateSpec
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.engines import fused_steps, reference
from pairloom.engines.reference import MAX_WEIGHT
from pairloom.engines.state import LOSS, PAIRS, SKIPPED, STEPS, State
from pairloom.estimators.card import Card
from pairloom.estimators.parameters import estimator
from pairloom.models.moments_rule import MAX_BYTES, Moments, MomentsState, join, moment_gradient
from pairloom.models.rule import Block, Row, Rule, RuleLearner
from pairloom.steps import L2, Average, Ball, Constant, Penalty
from pairloom.steps.schedules import MIN_SQUARE
from pairloom.systems.base import LinearClassifier


@estimator
class AdaOAM(LinearClassifier):
    r"""Rank one class above the other by the square loss over all pairs so far, with adaptive steps.

    .. math::

        g_t = \alpha w + u \langle u, w \rangle + S w - y_t u, \quad u = z_t - c, \qquad
        w_j \leftarrow w_j - \eta\, g_{t, j} \Big/ \Big(\delta + \sqrt{\textstyle\sum_{i \le t} g_{i, j}^2}\Big)

    With c and S the mean and the covariance of the other class so far, g_t is the gradient of :class:`OPAUC`, with the
    penalty. Then w is projected onto the ball of radius 1 / sqrt(alpha), which contains the minimiser for any data.
    There is no step before the first row of the other class.

    Parameters
    ----------
    eta : step size: no coordinate changes by more than eta in one step.
    alpha : L2 penalty (the paper's lambda); 0: neither penalty nor ball.
    delta : smallest denominator of a step; the sum of the squares starts at 0.
    average : the iterate that predicts: "last" (the paper), "mean" or "poly".
    max_bytes : largest size of the matrices; more features raise ValueError.

    Notes
    -----
    Cost: 3 D^2 / 2 multiply-adds per row and D^2 + D numbers. K > 2 classes cost K times as much. CSR rows are
    converted to dense, a block of rows at a time.

    This is partly a reconstruction: the paper's abstract and introduction were available, its pseudocode and code were
    not. Our readings: the squares include the gradient of the penalty; eta is constant; the projection is Euclidean,
    not in the norm of the step; a weight multiplies the gradient; a coordinate whose gradient is below 3e-19 is not
    changed. SAdaOAM, the authors' variant for sparse rows, is not included.

    References
    ----------
    Ding, Zhao, Hoi and Ong, An Adaptive Gradient Method for Online AUC Maximization, AAAI 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaOAM(scale="standard").fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    """

    eta: float = 0.1
    alpha: float = 1e-4
    delta: float = 1e-6
    average: Average = "last"
    max_bytes: int = MAX_BYTES

    @property
    def card(self) -> Card:
        return Card("Ding et al. 2015", "D^2", "D^2", variance_reduction="exact")

    def _make_model(self, n_classes: int, seed: int | None) -> RuleLearner:
        rule = AdaptiveMoments(self.alpha, self.delta, self.max_bytes)
        return RuleLearner(
            rule=rule,
            step=Constant(self.eta),
            penalty=Ball(1.0 / sqrt(self.alpha)) if self.alpha else L2(),
            average=self.average,
            **self._common_parts(n_classes, seed),
        )


@node
class AdaptiveState(MomentsState):
    """``squares``: the sums of squared gradients, one per weight."""

    squares: Annotated[Array, "f8 v D 0:1e38"]


@dataclass(frozen=True)
class AdaptiveMoments(Rule):
    """The update of :class:`AdaOAM`. The penalty of its learner may only bound w."""

    alpha: float = 0.0
    delta: float = 1e-6
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, 0)
        check_number("delta", self.delta, 0)
        check_count("max_bytes", self.max_bytes)

    @property
    def moments(self) -> Moments:
        """The statistics and the gradient of OPAUC."""
        return Moments("opposite", max_bytes=self.max_bytes)

    def state_spec(self, dim: int) -> StateSpec:
        return StateSpec(AdaptiveState, self.moments.state_spec(dim).symbols)

    def start(self, dim: int, n_models: int) -> AdaptiveState:
        return AdaptiveState(**vars(self.moments.start(dim, n_models)), squares=np.zeros((n_models, dim)))

    @property
    def merging(self) -> "AdaptiveMoments":
        return self

    def merge(self, base: AdaptiveState, parts: list[AdaptiveState], rows: RowCounts) -> AdaptiveState:
        """Return the moments of all rows, and the sums of squares."""
        squares = added(base.squares, [part.squares for part in parts])
        return AdaptiveState(**vars(self.moments.merge(base, list(parts), rows)), squares=squares)

    @property
    def forgetting(self) -> "AdaptiveMoments":
        return self

    def forget(self, kept: AdaptiveState, keep: float) -> None:
        self.moments.forget(kept, keep)
        kept.squares *= keep

    def step(self, state: State, k: int, row: Row, penalty: Penalty) -> None:
        moments, kept = self.moments, state.memory
        own, other = moments.sides(row.y)
        if kept.mass[k, other] > 0:
            self.adapt(state, k, other, row, penalty.bound)
        moments.observe(kept, k, own, row)

    def adapt(self, state: State, k: int, other: int, row: Row, bound: float) -> None:
        """Take the step of a row against the rows of the class ``other``."""
        kept, w = state.memory, state.w[k].astype(float)
        loss, v = self.moments.gradient(kept, k, other, row, w)
        v = v + self.alpha * w
        square = (min(row.weight, MAX_WEIGHT) * v) ** 2
        if not reference.is_safe(1.0, loss + float(square.sum())):
            state.tally[SKIPPED] += 1
            return
        c = square > MIN_SQUARE
        kept.squares[k, c] += square[c]
        w[c] -= row.rate * v[c] / (self.delta + np.sqrt(kept.squares[k, c]))
        state.w[k] = reference.threshold_and_project(w, 0.0, bound)
        reference.count_step(state.tally, row.weight, kept.rows[k, other], loss)

    def run(self, state: State, block: Block) -> None:
        kept = state.memory
        statistics = kept.rows, kept.mass, kept.mean, kept.scatter, kept.squares
        learn(tuple(block), self.alpha, self.delta, state.w, state.w_bar, statistics, state.tally)


@compiled
def learn(
    block_: Any, alpha: float, delta: float, w: Array, w_bar: Array, statistics: Any, tally: Array
) -> None:  # fmt: skip
    """Apply ``AdaptiveMoments.step`` to the rows of a block; ``statistics``: the fields of ``AdaptiveState``."""
    block = Block(*block_)
    Z, y, weight, scores = block.Z, block.y, block.weight, block.scores
    rows, mass, mean, scatter, squares = statistics
    dim = w.shape[1]
    a, e, v = np.empty(dim + 1), np.empty(dim + 1), np.empty(dim + 1)
    for i in range(Z.shape[0]):
        for k in range(w.shape[0]):
            scores[i, k] = dot(w_bar[k] if block.averaging else w[k], Z[i])
            own = 1 if y[i, k] > 0 else 0
            other, t, rate = 1 - own, 0.5 * y[i, k], block.steps[1, i]
            n = mass[k, other]
            if n > 0:
                loss = moment_gradient(w[k], Z[i], t, n, 1.0, mean[k, other], scatter[k, other], a, e, v)
                for c in range(dim):
                    v[c] += alpha * w[k, c]
                if adapt(w[k], v[:dim], squares[k], loss, rate, min(weight[i], MAX_WEIGHT), delta, block.bound):
                    tally[STEPS] += weight[i]
                    tally[PAIRS] += rows[k, other]
                    tally[LOSS] += weight[i] * loss
                else:
                    tally[SKIPPED] += 1
            before = mass[k, own]
            rows[k, own] += 1.0
            mass[k, own] += weight[i]
            join(Z[i], t, weight[i] / mass[k, own], before, mean[k, own], scatter[k, own], e)
            if block.averaging:
                move(w_bar[k], w[k], block.rho[i])


@compiled
def adapt(
    w: Array, v: Array, squares: Array, loss: float, rate: float, weight: float, delta: float, bound: float
) -> bool:  # fmt: skip
    """Take the step of ``AdaptiveMoments.adapt``, given the loss and the gradient; False if it would overflow."""
    if not fused_steps.is_safe(1.0, loss + weight * weight * dot(v, v)):
        return False
    for c in range(w.shape[0]):
        square = (weight * v[c]) ** 2
        if square > MIN_SQUARE:
            squares[c] += square
            w[c] -= rate * v[c] / (delta + np.sqrt(squares[c]))
    fused_steps.threshold_and_project(w, 0.0, bound)
    return True
