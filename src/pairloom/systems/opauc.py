"""OPAUC: one-pass AUC optimisation by the means and covariances of the classes."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from scipy.special import ndtri

from pairloom.base.capabilities import decay_factors
from pairloom.base.checks import check_choice, check_count
from pairloom.base.compiled import add_rows, compiled, dot, dots, move
from pairloom.base.spec import StateSpec
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.engines.state import State
from pairloom.estimators.card import Card
from pairloom.estimators.parameters import estimator
from pairloom.models.moments_rule import MAX_BYTES, Moments, SquareRule, take_step
from pairloom.models.rule import Block, Row, Rule, RuleLearner
from pairloom.steps import L2, Average
from pairloom.steps.penalties import L2Form
from pairloom.steps.schedules import SimpleSchedule, simple_schedule
from pairloom.systems.base import LinearClassifier

Sketches = Literal["centred", "published"]


@estimator
class OPAUC(LinearClassifier):
    r"""Rank one class above the other by the square loss over all pairs so far, from class means and covariances.

    .. math::

        w \leftarrow (1 - \eta\alpha) w - \eta \big(u \langle u, w \rangle + S w - y_t u\big), \quad u = z_t - c

    With c and S the mean and the covariance of the other class so far, this is the exact gradient of
    1/2 (1 - y_t <w, z_t - z_i>)^2 averaged over all rows i of that class. There is no step before its first row.

    Parameters
    ----------
    eta : step size, for half the square loss.
    alpha : L2 penalty (the paper's lambda).
    l2 : "explicit" (the paper) or "proximal" step of the penalty.
    schedule : "constant" (the paper), "sqrt" (eta / sqrt(t)) or "poly" (eta t^-0.75).
    average : the iterate that predicts: "last" (the paper), "mean" or "poly".
    rank : number of random directions that approximate each covariance, the paper's OPAUCr; None: exact covariances.
    sketch : estimate of S with ``rank``: "centred" (unbiased, positive semidefinite) or "published" (the released code,
        with mean S + (1 - 1 / N) c c': the second moment instead of the covariance).
    max_bytes : largest size of the matrices; more features raise ValueError.

    Notes
    -----
    Cost: 3 D^2 / 2 multiply-adds per row and D^2 numbers; with rank r, 3 r D and 2 r D. K > 2 classes cost K times as
    much. CSR rows are converted to dense, a block of rows at a time.

    References
    ----------
    Gao, Jin, Zhu and Zhou, One-Pass AUC Optimization, ICML 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OPAUC(eta=0.003, scale="standard").fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "r": {"rank": 50}}

    eta: float = 0.01
    alpha: float = 1e-4
    l2: L2Form = "explicit"
    schedule: SimpleSchedule = "constant"
    average: Average = "last"
    rank: int | None = None
    sketch: Sketches = "centred"
    max_bytes: int = MAX_BYTES

    @property
    def card(self) -> Card:
        size, exact = ("D^2", "exact") if self.rank is None else ("r D", "sketch")
        return Card("Gao et al. 2013", size, size, variance_reduction=exact)

    def _make_model(self, n_classes: int, seed: int | None) -> RuleLearner:
        check_choice("sketch", self.sketch, Sketches)
        rule: Rule = Moments("opposite", max_bytes=self.max_bytes)
        if self.rank is not None:
            rule = Sketch(self.rank, self.sketch, self.max_bytes)
        return RuleLearner(
            rule=rule,
            step=simple_schedule(self.schedule, self.eta),
            penalty=L2(self.alpha, self.l2),
            average=self.average,
            **self._common_parts(n_classes, seed),
        )


@node
class SketchState:
    """Number of rows, mass and mean c for each model and side (the rest, then the class of the model).

    With a_i ~ N(0, I / r) for each row and its weight p_i, ``rho`` (r) is sum_i sqrt(p_i) a_i and ``Y`` (D, r) is
    sum_i sqrt(p_i) (z_i - c) a_i', or sum_i sqrt(p_i) z_i a_i' as published.
    """

    rows: Annotated[Array, "f8 v 2"]
    mass: Annotated[Array, "f8 v 2"]
    mean: Annotated[Array, "f8 v 2 D"]
    rho: Annotated[Array, "f8 v 2 s"]
    Y: Annotated[Array, "f8 v 2 D s"]


@dataclass(frozen=True)
class Sketch(SquareRule):
    """OPAUCr: random directions a_i instead of covariances; S = Y Y' / N, minus ||rho / N||^2 c c' as published.

    E <a_i, a_j> = 1 for i = j and 0 else, so E[Y Y'] = sum_i p_i (z_i - c) (z_i - c)'.
    """

    rank: int = 50
    sketch: Sketches = "centred"
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        check_count("rank", self.rank)
        check_count("max_bytes", self.max_bytes)

    @property
    def draws(self) -> int:
        return self.rank

    def state_spec(self, dim: int) -> StateSpec:
        return StateSpec(SketchState, {"s": self.rank})

    def sides(self, y: float) -> tuple[int, int]:
        return int(y > 0), int(y < 0)

    def start(self, dim: int, n_models: int) -> SketchState:
        sets = (n_models, 2)
        column = 16 * n_models * self.rank
        if dim * column > self.max_bytes:
            raise ValueError(
                f"rank={self.rank} sketches of D={dim} features need {dim * column:,} bytes, more than "
                f"max_bytes={self.max_bytes:,}, which is enough for D={self.max_bytes // column}. Raise max_bytes, "
                "lower rank, or use SPAM or a feature map with fewer outputs"
            )
        return SketchState(
            np.zeros(sets), np.zeros(sets), np.zeros((*sets, dim)), np.zeros((*sets, self.rank)),
            np.zeros((*sets, dim, self.rank)),
        )  # fmt: skip

    def gradient(self, kept: SketchState, k: int, other: int, row: Row, w: Array) -> tuple[float, Array]:
        n, c, Y, rho = kept.mass[k, other], kept.mean[k, other], kept.Y[k, other], kept.rho[k, other]
        u = row.z - c
        residual = u @ w - row.y
        projected = Y.T @ w
        Sw = Y @ projected / n
        if self.sketch == "published":
            Sw -= (rho @ rho) / n**2 * (c @ w) * c
        return max(0.0, 0.5 * float(residual**2 + w @ Sw)), residual * u + Sw

    def observe(self, kept: SketchState, k: int, own: int, row: Row) -> None:
        kept.rows[k, own] += 1
        kept.mass[k, own] += row.weight
        share = row.weight / kept.mass[k, own]
        u = row.z - kept.mean[k, own]
        b = np.sqrt(row.weight) * normals(row.draws)
        kept.mean[k, own] += share * u
        kept.rho[k, own] += b
        if self.sketch == "published":
            kept.Y[k, own] += np.outer(row.z, b)
        else:
            # sum_i sqrt(p_i) (z_i - c) a_i' with the new mean c, from that with the old one.
            kept.Y[k, own] += np.outer(u, b - share * kept.rho[k, own])

    @property
    def forgetting(self) -> "Sketch":
        return self

    def forget(self, kept: SketchState, keep: float) -> None:
        """Scale the mass, and Y Y' and ||rho||^2, which are sums over rows."""
        factors = decay_factors(kept.mass, keep)
        kept.mass *= factors
        kept.rho *= np.sqrt(factors)[..., None]
        kept.Y *= np.sqrt(factors)[..., None, None]

    def run(self, state: State, block: Block) -> None:
        kept = state.memory
        directions = np.sqrt(block.weight)[:, None] * normals(block.draws)
        statistics = kept.rows, kept.mass, kept.mean, kept.rho, kept.Y
        published = self.sketch == "published"
        learn_sketch(tuple(block), directions, published, state.w, state.w_bar, statistics, state.tally)


def normals(uniforms: Array) -> Array:
    """Return one N(0, I / r) vector for each row of r uniform numbers."""
    # Uniform numbers are multiples of 2^-53, and may be 0.
    return np.asarray(ndtri(np.maximum(uniforms, 2.0**-54)) / np.sqrt(uniforms.shape[-1]))


@compiled
def learn_sketch(
    block_: Any, directions: Array, published: bool, w: Array, w_bar: Array, statistics: Any, tally: Array
) -> None:  # fmt: skip
    """Run ``Sketch.step`` over a block of rows; ``statistics`` are the fields of ``SketchState``."""
    block = Block(*block_)
    Z, y, weight, scores = block.Z, block.y, block.weight, block.scores
    rows, mass, mean, rho, Y = statistics
    dim, rank = w.shape[1], directions.shape[1]
    u, v, w64, every = np.empty(dim), np.empty(dim), np.empty(dim), np.arange(dim)
    projected, b = np.empty(rank), np.empty(rank)
    for i in range(Z.shape[0]):
        for k in range(w.shape[0]):
            scores[i, k] = dot(w_bar[k] if block.averaging else w[k], Z[i])
            own = 1 if y[i, k] > 0 else 0
            other = 1 - own
            n, c = mass[k, other], mean[k, other]
            if n > 0:
                w64[:] = w[k]
                spin = dot(rho[k, other], rho[k, other]) / (n * n) if published else 0.0
                g = sketch_gradient(w64, Z[i], y[i, k], n, c, spin, Y[k, other], every, projected, u, v)
                take_step(w[k], v, g, block.steps[:, i], block.bound, weight[i], rows[k, other], tally)
            rows[k, own] += 1.0
            mass[k, own] += weight[i]
            share = weight[i] / mass[k, own]
            for j in range(rank):
                rho[k, own, j] += directions[i, j]
                b[j] = directions[i, j] - (0.0 if published else share * rho[k, own, j])
            for d in range(dim):
                gap = Z[i, d] - mean[k, own, d]
                mean[k, own, d] += share * gap
                x, row = (Z[i, d] if published else gap), Y[k, own, d]
                for j in range(rank):
                    row[j] += x * b[j]
            if block.averaging:
                move(w_bar[k], w[k], block.rho[i])


@compiled
def sketch_gradient(
    w: Array, z: Array, y: float, n: float, c: Array, spin: float, Y: Array, every: Array, projected: Array,
    u: Array, v: Array,
) -> float:  # fmt: skip
    """Compute ``Sketch.gradient``: return g and fill v; ``spin`` is the factor of -c c' in S."""
    projected[:] = 0.0
    add_rows(projected, Y, every, w)
    dots(projected, Y, every, v)
    along = spin * dot(c, w)
    residual, bend = -y, 0.0
    for d in range(w.shape[0]):
        u[d] = z[d] - c[d]
        v[d] = v[d] / n - along * c[d]
        residual += u[d] * w[d]
        bend += v[d] * w[d]
    for d in range(w.shape[0]):
        v[d] += residual * u[d]
    return max(0.0, 0.5 * (residual * residual + bend))
