"""OPAUC: one-pass AUC optimisation with the means and covariances of the classes."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import ndtri

from pairloom.base.aging import aged
from pairloom.base.checks import check_choice, check_count
from pairloom.base.compiled import add_rows, compiled, dot, dots, move
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.columns import ColumnsLike
from pairloom.engines.base import EngineName
from pairloom.engines.state import State
from pairloom.estimators.card import Card
from pairloom.estimators.class_weight import ClassWeight
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.features import FeatureMap, linear_map
from pairloom.features.scaling import Scaling
from pairloom.models.base import Dtype
from pairloom.models.moments import MAX_BYTES, Moments, SquareRule, take_step
from pairloom.models.rule import Block, Row, Rule, RuleLearner
from pairloom.pairs import OppositeClass
from pairloom.steps import L2, Average, Form, Simple, simple_schedule
from pairloom.stream.drift import Drift
from pairloom.stream.forgetting import HalfLife

Sketches = Literal["centred", "published"]


class OPAUC(PairwiseClassifier):
    r"""Rank one class above the other with the square loss over all pairs so far, by means and covariances.

    .. math::

        w \leftarrow (1 - \eta\alpha) w - \eta \big(u \langle u, w \rangle + S w - y_t u\big), \quad u = z_t - c

    c and S are mean and covariance of the other class so far: the exact gradient of the half-square loss
    1/2 (1 - y_t <w, z_t - z_i>)^2, averaged over all rows i of that class. There is no step before its first row.

    Parameters
    ----------
    eta : step size, of the half-square loss.
    alpha : L2 penalty (the paper's lambda).
    l2 : "explicit" (the paper) or "proximal" step of the penalty.
    schedule : "constant" (the paper), "sqrt" (eta / sqrt(t)) or "poly" (eta t^-0.75).
    average : the iterate that scores: "last" (the paper), "mean" or "poly".
    rank : None, or the number of random directions that stand for each covariance: the paper's OPAUCr.
    sketch : S of the OPAUCr: "centred" (unbiased, never negative) or "published" (that of the released code; it is
        S + (1 - 1 / N) c c' in the mean, the second moment and not the covariance). Used only with ``rank``.
    max_bytes : room for the matrices; a larger number of features is refused.
    features : any feature map, such as ``RandomFourier(512)``, in place of the columns themselves.
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".
    dtype : of the weights: "float32" or "float64"; means and covariances are float64.
    pos_label, class_weight, random_state, engine, columns, half_life, drift : as in :class:`~pairloom.systems.FPOGD`.

    Notes
    -----
    Cost: 3 D^2 / 2 multiply-adds per example and D^2 numbers; with rank r, 3 r D and 2 r D. With K > 2 classes, K times
    as much. CSR rows become dense, a block of rows at a time.

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

    def __init__(
        self,
        *,
        eta: float = 0.01,
        alpha: float = 1e-4,
        l2: Form = "explicit",
        schedule: Simple = "constant",
        average: Average = "last",
        rank: int | None = None,
        sketch: Sketches = "centred",
        max_bytes: int = MAX_BYTES,
        features: FeatureMap | None = None,
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
        self.eta = eta
        self.alpha = alpha
        self.l2 = l2
        self.schedule = schedule
        self.average = average
        self.rank = rank
        self.sketch = sketch
        self.max_bytes = max_bytes
        self.features = features
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
        size, exact = ("D^2", "exact") if self.rank is None else ("r D", "sketch")
        return Card("Gao et al. 2013", size, size, variance_reduction=exact)

    def _make_model(self, n_classes: int, seed: int | None) -> RuleLearner:
        check_choice("sketch", self.sketch, Sketches)
        rule: Rule = Moments("opposite", max_bytes=self.max_bytes)
        if self.rank is not None:
            rule = Sketch(self.rank, self.sketch, self.max_bytes)
        return RuleLearner(
            rule=rule,
            features=linear_map(self.features, self.scale),
            pairs=OppositeClass(n_classes),
            step=simple_schedule(self.schedule, self.eta),
            penalty=L2(self.alpha, self.l2),
            average=self.average,
            dtype=self.dtype,
            seed=seed,
            engine=self.engine,
        )


@node
class SketchState:
    """Of each model and class (the rest, then the class of the model): rows, mass and mean c.

    With a_i ~ N(0, I / r) for each row and its weight p_i, ``rho`` (r) is sum_i sqrt(p_i) a_i and ``Y`` (D, r) is
    sum_i sqrt(p_i) (z_i - c) a_i', or sum_i sqrt(p_i) z_i a_i' as published.
    """

    rows: Array
    mass: Array
    mean: Array
    rho: Array
    Y: Array


@dataclass(frozen=True)
class Sketch(SquareRule):
    """OPAUCr: random directions a_i in place of the covariances; S = Y Y' / N, less ||rho / N||^2 c c' as published.

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
    def forgets(self) -> bool:
        return True

    def forget(self, kept: SketchState, keep: float) -> None:
        """Y Y' and ||rho||^2 are sums over rows."""
        factors = aged(kept.mass, keep)
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
    """One N(0, I / r) vector from each row of r uniform numbers."""
    # A uniform number may be 0, and is a multiple of 2^-53.
    return np.asarray(ndtri(np.maximum(uniforms, 2.0**-54)) / np.sqrt(uniforms.shape[-1]))


@compiled
def learn_sketch(
    block_: Any, directions: Array, published: bool, w: Array, w_bar: Array, statistics: Any, tally: Array
) -> None:  # fmt: skip
    """``Sketch.step`` over the rows of a block; ``statistics``: the fields of ``SketchState``."""
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
    """``Sketch.gradient``: returns g and fills v; ``spin`` is the factor of -c c' in S."""
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
