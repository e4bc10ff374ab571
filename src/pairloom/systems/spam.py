"""SPAM: stochastic proximal AUC maximisation by class means."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from pairloom.base.capabilities import decay_factors
from pairloom.base.checks import check_choice
from pairloom.base.compiled import compiled, dot, move
from pairloom.base.merging import RowCounts, added
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.engines import reference
from pairloom.engines.fused_steps import SKIP, apply_step, guard
from pairloom.engines.sparse_steps import SIGMA, A, B, average_rows, gather, scatter, square_of, step_rows
from pairloom.engines.state import LOSS, STEPS, LazyModel, State
from pairloom.estimators.card import Card
from pairloom.estimators.parameters import estimator
from pairloom.models.rule import Block, CSRRule, PreparedRule, Row, RuleLearner, descend
from pairloom.steps import Average, ElasticNet, Penalty
from pairloom.steps.schedules import SimpleSchedule, simple_schedule
from pairloom.systems.base import LinearClassifier

Means = Literal["running", "full"]


@estimator
class SPAM(LinearClassifier):
    r"""Rank one class above the other by the square loss at O(D) per row, from the class means.

    .. math::

        \min_w\; p (1 - p)\, E[(1 - \langle w, z - z' \rangle)^2] + \tfrac{\alpha}{2} \|w\|^2 + \lambda_1 \|w\|_1

    Given the class means m, each row has an unbiased gradient: 2 (1 - p) (<w, z - m_-> - 1) z for a positive and
    2 p (<w, z - m_+> + 1) z for a negative. A proximal step of the penalty follows.

    Parameters
    ----------
    eta : step size (the paper's C).
    schedule : "sqrt" (eta / sqrt(t), the paper), "constant" or "poly" (eta t^-0.75).
    alpha : L2 penalty (the paper's beta), with the factor 1/2: a step divides w by 1 + eta alpha.
    l1 : L1 penalty; above 0 this is the paper's SPAM-NET.
    means : "running" (online: means of the rows so far) or "full" (the published code: means of all rows, computed
        before the first step, so without ``partial_fit`` and half-life).
    average : the iterate that predicts: "mean" (the published code), "poly" or "last".

    Notes
    -----
    Cost: O(D) time per row and 5 D numbers. The cost of CSR rows is linear in their entries, unless ``scale`` centres
    them or ``l1`` > 0.

    References
    ----------
    Natole, Ying and Lyu, Stochastic Proximal Algorithms for AUC Maximization, ICML 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SPAM(eta=0.02, scale="standard").fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {"-L2": {}, "-NET": {"l1": 1e-4}, "-full": {"means": "full"}}

    eta: float = 0.1
    schedule: SimpleSchedule = "sqrt"
    alpha: float = 1e-4
    l1: float = 0.0
    means: Means = "running"
    average: Average = "mean"

    @property
    def card(self) -> Card:
        return Card("Natole et al. 2018", "D", "D", scheme="offline" if self.needs_all_rows else "online")

    @property
    def needs_all_rows(self) -> bool:
        return self.means == "full"

    def _make_model(self, n_classes: int, seed: int | None) -> RuleLearner:
        return RuleLearner(
            rule=ClassMeans(self.means),
            step=simple_schedule(self.schedule, self.eta),
            penalty=ElasticNet(self.alpha, self.l1),
            average=self.average,
            **self._common_parts(n_classes, seed),
        )


@node
class Means2:
    """Weight ``counts`` (models, 2) and ``sums`` (models, 2, D) of the rest and of the class of each model.

    ``products`` (models, 2): <w, sum>, maintained for CSR rows only; NaN until then.
    """

    counts: Annotated[Array, "f8 v 2"]
    sums: Annotated[Array, "f8 v 2 D"]
    products: Annotated[Array, "f8 v 2"]


@dataclass(frozen=True)
class ClassMeans(CSRRule, PreparedRule):
    """The update of :class:`SPAM`."""

    means: Means = "running"

    def __post_init__(self) -> None:
        check_choice("means", self.means, Means)

    def start(self, dim: int, n_models: int) -> Means2:
        return Means2(np.zeros((n_models, 2)), np.zeros((n_models, 2, dim)), np.full((n_models, 2), np.nan))

    @property
    def prepared(self) -> "ClassMeans | None":
        return None if self.means == "running" else self

    def prepare(self, state: State, rows: Callable[[], Any]) -> None:
        for Z, y, weight in rows():
            for k in range(y.shape[1]):
                for c in (0, 1):
                    own = weight * (y[:, k] == 2 * c - 1)
                    state.memory.counts[k, c] += own.sum()
                    state.memory.sums[k, c] += own @ Z

    @property
    def merging(self) -> "ClassMeans":
        return self

    def merge(self, base: Means2, parts: list[Means2], rows: RowCounts) -> Means2:
        """Add the sums of all rows."""
        counts = added(base.counts, [part.counts for part in parts])
        sums = added(base.sums, [part.sums for part in parts])
        return Means2(counts, sums, np.full_like(base.products, np.nan))

    @property
    def forgetting(self) -> "ClassMeans | None":
        return self if self.means == "running" else None

    def forget(self, kept: Means2, keep: float) -> None:
        factors = decay_factors(kept.counts, keep)
        kept.counts *= factors
        kept.sums *= factors[..., None]
        kept.products *= factors

    def step(self, state: State, k: int, row: Row, penalty: Penalty) -> None:
        counts, sums, w = state.memory.counts[k], state.memory.sums[k], state.w[k]
        if self.means == "running":
            counts[int(row.y > 0)] += row.weight
            sums[int(row.y > 0)] += row.weight * row.z
        if not counts.all():
            return
        p = counts[1] / counts.sum()
        s, a, b = w @ row.z, w @ sums[1] / counts[1], w @ sums[0] / counts[0]
        alpha = b - a
        if row.y > 0:
            factor, residual, other = 2 * (1 - p), (s - a) - (1 + alpha), sums[0] / counts[0]
        else:
            factor, residual, other = 2 * p, (s - b) + (1 + alpha), sums[1] / counts[1]
        v = factor * residual * row.z
        # A step multiplies the residual by 1 - rate factor <z, z - other>.
        rate = reference.guard(row.rate, factor * abs(row.z @ row.z - row.z @ other), float(v @ v), state.tally)
        if rate:
            state.w[k] = descend(w, v, row, rate, penalty.bound)
            state.tally[STEPS] += row.weight
            state.tally[LOSS] += row.weight * residual**2

    def run(self, state: State, block: Block) -> None:
        running, kept = self.means == "running", state.memory
        learn(tuple(block), running, state.w, state.w_bar, kept.counts, kept.sums, state.tally)

    def run_rows(self, state: State, model: LazyModel, block: Block) -> None:
        kept = state.memory
        if np.isnan(kept.products).any():
            kept.products[:] = np.einsum("kd,kcd->kc", model.w_hat, kept.sums)
        running = self.means == "running"
        statistics = kept.counts, kept.sums, kept.products
        learn_rows(tuple(block), running, model.w_hat, model.u_hat, model.factors, statistics, state.tally)


@compiled
def learn(block_: Any, running: bool, w: Array, w_bar: Array, counts: Array, sums: Array, tally: Array) -> None:
    """Run ``ClassMeans.step`` over a block of rows."""
    block = Block(*block_)
    Z, y, weight, steps, averaging, scores = block.Z, block.y, block.weight, block.steps, block.averaging, block.scores
    for i in range(Z.shape[0]):
        z = Z[i]
        square = float(dot(z, z))
        for k in range(w.shape[0]):
            s = dot(w[k], z)
            scores[i, k] = dot(w_bar[k], z) if averaging else s
            own = 1 if y[i, k] > 0 else 0
            other = 1 - own
            if running:
                counts[k, own] += weight[i]
                for c in range(z.shape[0]):
                    sums[k, own, c] += weight[i] * z[c]
            if counts[k, 0] > 0 and counts[k, 1] > 0:
                n = counts[k, other]
                factor = 2.0 * n / (n + counts[k, own])
                residual = s - dot(sums[k, other], w[k]) / n - y[i, k]
                curvature = factor * abs(square - dot(sums[k, other], z) / n)
                slope = factor * residual
                rate = guard(steps[1, i], curvature, slope * slope * square, tally)
                if rate != SKIP:
                    apply_step(w[k], z, steps[0, i], rate * slope, steps[2, i], np.inf)
                    tally[STEPS] += weight[i]
                    tally[LOSS] += weight[i] * residual * residual
            if averaging:
                move(w_bar[k], w[k], block.rho[i])


@compiled
def learn_rows(
    block_: Any, running: bool, w_hat: Array, u_hat: Array, factors: Array, statistics: Any, tally: Array
) -> None:  # fmt: skip
    """Run ``learn`` on CSR rows: w = sigma w_hat; <w, sum> of both classes is updated incrementally."""
    block = Block(*block_)
    y, weight, steps, averaging, scores = block.y, block.weight, block.steps, block.averaging, block.scores
    (data, indices, indptr), (counts, sums, products) = block.Z, statistics
    nowhere = np.empty(0)
    for i in range(y.shape[0]):
        cols, vals = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        square = square_of(vals)
        for k in range(w_hat.shape[0]):
            w, u, f = w_hat[k], u_hat[k], factors[k]
            s = gather(w, cols, vals)
            scores[i, k] = f[A] * s + f[B] * gather(u, cols, vals) if averaging else f[SIGMA] * s
            s *= f[SIGMA]
            own = 1 if y[i, k] > 0 else 0
            other = 1 - own
            if running:
                counts[k, own] += weight[i]
                scatter(sums[k, own], cols, vals, weight[i])
                products[k, own] += weight[i] * s
            if counts[k, 0] > 0 and counts[k, 1] > 0:
                n = counts[k, other]
                factor = 2.0 * n / (n + counts[k, own])
                residual = s - products[k, other] / n - y[i, k]
                across = gather(sums[k, other], cols, vals)
                slope = factor * residual
                rate = guard(steps[1, i], factor * abs(square - across / n), slope * slope * square, tally)
                if rate != SKIP:
                    products[k, other] = steps[0, i] * products[k, other] - rate * slope * across
                    along = gather(sums[k, own], cols, vals)
                    products[k, own] = steps[0, i] * products[k, own] - rate * slope * along
                    step_rows(
                        w, u, f, nowhere, cols, vals, square, steps[0, i], rate * slope, steps[2, i], np.inf
                    )  # fmt: skip
                    if steps[2, i] > 0:
                        products[k, 0], products[k, 1] = f[SIGMA] * dot(w, sums[k, 0]), f[SIGMA] * dot(w, sums[k, 1])
                    tally[STEPS] += weight[i]
                    tally[LOSS] += weight[i] * residual * residual
            if averaging:
                average_rows(w, u, f, block.rho[i])
