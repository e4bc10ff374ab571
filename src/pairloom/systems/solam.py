"""SOLAM: stochastic online AUC maximisation as a saddle point problem."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from pairloom.base.capabilities import decay_factors
from pairloom.base.checks import check_choice
from pairloom.base.compiled import compiled, dot, move
from pairloom.base.merging import RowCounts, added, moved
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.engines import reference
from pairloom.engines.fused_steps import SKIP, apply_step, guard
from pairloom.engines.sparse_steps import SIGMA, A, B, average_rows, gather, square_of, step_rows
from pairloom.engines.state import LOSS, STEPS, LazyModel, State
from pairloom.estimators.card import Card
from pairloom.estimators.parameters import estimator
from pairloom.models.rule import Block, CSRRule, Row, RuleLearner, descend
from pairloom.steps import Average, Ball, Penalty
from pairloom.steps.schedules import SimpleSchedule, simple_schedule
from pairloom.systems.base import LinearClassifier

WeightedAverage = Literal["weighted", "last"]


@estimator
class SOLAM(LinearClassifier):
    r"""Rank one class above the other by the square loss at O(D) per row, as a saddle point problem.

    .. math::

        E[(1 - \langle w, z - z' \rangle)^2] = 1 + \tfrac{1}{p (1 - p)} \min_{a, b} \max_\beta E[F(w, a, b, \beta)]

        F = (1 - p)(s - a)^2 [y = 1] + p (s - b)^2 [y = -1]
            + 2 (1 + \beta)(p s [y = -1] - (1 - p) s [y = 1]) - p (1 - p) \beta^2,\qquad s = \langle w, z \rangle

    Each step descends in w, a, b and ascends in beta, with p the share of positives so far, and projects onto
    ||w|| <= R, |a|, |b| <= R kappa and |beta| <= 2 R kappa, with kappa the largest norm of a row so far. It starts at
    0, as in the paper's analysis; the published code starts at the boundary.

    Parameters
    ----------
    eta : step size (the paper's zeta).
    schedule : "sqrt" (eta / sqrt(t), the paper), "constant" or "poly" (eta t^-0.75).
    radius : R. The projections also keep long steps from diverging, so no step is shortened.
    average : the iterate that predicts: "weighted" (the paper: sum eta_t w_t / sum eta_t, w_t before step t) or "last".
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax". The paper scales rows to norm 1.

    Notes
    -----
    Cost: O(D) time per row and 2 D numbers. The cost of CSR rows is linear in their entries, unless ``scale`` centres
    them.

    References
    ----------
    Ying, Wen and Lyu, Stochastic Online AUC Maximization, NIPS 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SOLAM(eta=0.1, scale="standard").fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    """

    eta: float = 0.1
    schedule: SimpleSchedule = "sqrt"
    radius: float = 10.0
    average: WeightedAverage = "weighted"

    @property
    def card(self) -> Card:
        return Card("Ying et al. 2016", "D", "D")

    def _make_model(self, n_classes: int, seed: int | None) -> RuleLearner:
        check_choice("average", self.average, WeightedAverage)
        return RuleLearner(
            rule=SaddlePoint(),
            step=simple_schedule(self.schedule, self.eta),
            penalty=Ball(self.radius),
            average="last" if self.average == "last" else "mean",
            **self._common_parts(n_classes, seed),
        )


@node
class Saddle:
    """The saddle point and the statistics for its steps.

    ``point`` (models, 3): a, b and beta. ``counts`` (models, 2): weight of the rest and of the class of each model.
    ``kappa`` (models,): the largest norm of a row. ``total`` (1,): the sum of the step sizes.
    """

    point: Annotated[Array, "f8 v 3"]
    counts: Annotated[Array, "f8 v 2"]
    kappa: Annotated[Array, "f8 v"]
    total: Annotated[Array, "f8 1"]


@dataclass(frozen=True)
class SaddlePoint(CSRRule):
    """The update of :class:`SOLAM`."""

    averages_before = True

    def start(self, dim: int, n_models: int) -> Saddle:
        return Saddle(np.zeros((n_models, 3)), np.zeros((n_models, 2)), np.zeros(n_models), np.zeros(1))

    def rates(self, state: State, average: Average, t: Array, eta: Array) -> Array:
        total = np.cumsum(np.concatenate([state.memory.total, eta]))
        state.memory.total[0] = total[-1]
        return np.asarray(eta / total[1:])

    @property
    def merging(self) -> "SaddlePoint":
        return self

    def merge(self, base: Saddle, parts: list[Saddle], rows: RowCounts) -> Saddle:
        """Add counts and steps, and average the saddle point by rows."""
        counts = added(base.counts, [part.counts for part in parts])
        total = added(base.total, [part.total for part in parts])
        kappa = np.max([one.kappa for one in (base, *parts)], axis=0)
        return Saddle(moved(base.point, [part.point for part in parts], rows.shares), counts, kappa, total)

    @property
    def forgetting(self) -> "SaddlePoint":
        return self

    def forget(self, kept: Saddle, keep: float) -> None:
        """Reduce the weight of past rows in the share of positives and the average, not in kappa and the point."""
        kept.counts *= decay_factors(kept.counts, keep)
        kept.total *= decay_factors(kept.total, keep)

    def step(self, state: State, k: int, row: Row, penalty: Penalty) -> None:
        kept, w, z = state.memory, state.w[k], row.z
        kept.counts[k, int(row.y > 0)] += row.weight
        kept.kappa[k] = max(kept.kappa[k], np.sqrt(z @ z))
        p, s = kept.counts[k, 1] / kept.counts[k].sum(), w @ z
        a, b, beta = kept.point[k]
        if row.y > 0:
            residual = s - a - 1 - beta
            g_w, g_a, g_b = 2 * (1 - p) * residual * z, -2 * (1 - p) * (s - a), 0.0
            g_beta = -2 * (1 - p) * s - 2 * p * (1 - p) * beta
        else:
            residual = s - b + 1 + beta
            g_w, g_a, g_b = 2 * p * residual * z, 0.0, -2 * p * (s - b)
            g_beta = 2 * p * s - 2 * p * (1 - p) * beta
        rate = reference.guard(row.rate, 0.0, float(g_w @ g_w), state.tally)
        if rate == 0:
            return
        state.w[k] = descend(w, g_w, row, rate, penalty.bound)
        limit = penalty.bound * kept.kappa[k] * np.array([1.0, 1.0, 2.0])
        moved = np.array([a - rate * g_a, b - rate * g_b, beta + rate * g_beta])
        kept.point[k] = np.clip(moved, -limit, limit)
        if 0 < p < 1:
            state.tally[STEPS] += row.weight
            state.tally[LOSS] += row.weight * residual**2

    def run(self, state: State, block: Block) -> None:
        kept = state.memory
        learn(tuple(block), state.w, state.w_bar, kept.point, kept.counts, kept.kappa, state.tally)

    def run_rows(self, state: State, model: LazyModel, block: Block) -> None:
        kept = state.memory
        learn_rows(
            tuple(block), model.w_hat, model.u_hat, model.factors, kept.point, kept.counts, kept.kappa, state.tally
        )  # fmt: skip


@compiled
def move_point(
    y: float, weight: float, rate: float, bound: float, s: float, square: float,
    point: Array, counts: Array, kappa: Array, tally: Array,
) -> float:  # fmt: skip
    """Update a, b and beta; return the factor of z in the step of w (0: no step)."""
    counts[1 if y > 0 else 0] += weight
    kappa[0] = max(kappa[0], np.sqrt(square))
    p = counts[1] / (counts[0] + counts[1])
    own, share = (0, 1.0 - p) if y > 0 else (1, p)
    gap = s - point[own]
    residual = gap - y * (1.0 + point[2])
    slope: float = 2.0 * share * residual
    length = guard(rate, 0.0, slope * slope * square, tally)
    if length == SKIP:
        return 0.0
    limit = bound * kappa[0]
    rise = -y * 2.0 * share * s - 2.0 * p * (1.0 - p) * point[2]
    point[own] = min(limit, max(-limit, point[own] + length * 2.0 * share * gap))
    point[2] = min(2.0 * limit, max(-2.0 * limit, point[2] + length * rise))
    if 0.0 < p < 1.0:
        tally[STEPS] += weight
        tally[LOSS] += weight * residual * residual
    return length * slope


@compiled
def learn(block_: Any, w: Array, w_bar: Array, point: Array, counts: Array, kappa: Array, tally: Array) -> None:
    """Run ``SaddlePoint.step`` over a block of rows."""
    block = Block(*block_)
    Z, y, weight, bound, averaging, scores = block.Z, block.y, block.weight, block.bound, block.averaging, block.scores
    rates = block.steps[1]
    for i in range(Z.shape[0]):
        z = Z[i]
        square = float(dot(z, z))
        for k in range(w.shape[0]):
            s = dot(w[k], z)
            scores[i, k] = dot(w_bar[k], z) if averaging else s
            if averaging:
                move(w_bar[k], w[k], block.rho[i])
            descent = move_point(
                y[i, k], weight[i], rates[i], bound, s, square, point[k], counts[k], kappa[k : k + 1], tally
            )  # fmt: skip
            if descent != 0:
                apply_step(w[k], z, 1.0, descent, 0.0, bound)


@compiled
def learn_rows(
    block_: Any, w_hat: Array, u_hat: Array, factors: Array, point: Array, counts: Array, kappa: Array, tally: Array
) -> None:  # fmt: skip
    """Run ``learn`` on CSR rows: w = sigma w_hat."""
    block = Block(*block_)
    y, weight, bound, averaging, scores = block.y, block.weight, block.bound, block.averaging, block.scores
    rates = block.steps[1]
    data, indices, indptr = block.Z
    nowhere = np.empty(0)
    for i in range(y.shape[0]):
        cols, vals = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        square = square_of(vals)
        for k in range(w_hat.shape[0]):
            w, u, f = w_hat[k], u_hat[k], factors[k]
            s = gather(w, cols, vals)
            scores[i, k] = f[A] * s + f[B] * gather(u, cols, vals) if averaging else f[SIGMA] * s
            s *= f[SIGMA]
            if averaging:
                average_rows(w, u, f, block.rho[i])
            descent = move_point(
                y[i, k], weight[i], rates[i], bound, s, square, point[k], counts[k], kappa[k : k + 1], tally
            )  # fmt: skip
            if descent != 0:
                step_rows(w, u, f, nowhere, cols, vals, square, 1.0, descent, 0.0, bound)
