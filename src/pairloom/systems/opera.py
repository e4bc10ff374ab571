"""OPERA: every row is paired with all rows before it, in the space of a kernel."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from pairloom.base.aging import aged
from pairloom.base.batch import Batch
from pairloom.base.checks import check_choice, check_count
from pairloom.base.tree import Rounded, node
from pairloom.base.typing import Array
from pairloom.columns import ColumnsLike
from pairloom.engines import reference
from pairloom.engines.base import EngineName
from pairloom.engines.state import LOSS, PAIRS, STEPS, State
from pairloom.estimators.card import Card
from pairloom.estimators.class_weight import ClassWeight
from pairloom.estimators.kernel_classifier import KernelClassifier
from pairloom.features import Identity, exact_kernel
from pairloom.features.choice import KernelName
from pairloom.features.scaling import Scaling
from pairloom.losses import LOSSES, Loss, LossName, Square, with_loss
from pairloom.memory.history import check_rows
from pairloom.models.base import Dtype
from pairloom.models.expansion import Expansion, ExpansionState, KernelBlock, KernelRow
from pairloom.models.moments import PairSet
from pairloom.pairs import OppositeClass
from pairloom.steps import Polynomial
from pairloom.stream.drift import Drift
from pairloom.stream.forgetting import HalfLife
from pairloom.systems.opera_loop import Past, Rule, learn

SMALLEST = 64
"""Rows for which there is room at the start; it doubles whenever it is used up."""


class OPERA(KernelClassifier):
    r"""Online pairwise learning with an exact kernel: a step on the pairs of the newest row with all rows before it.

    .. math::

        f \leftarrow f - \frac{\gamma_t}{t - 1} \sum_{i < t} \ell'_i\, \big(k(x_t, \cdot) - k(x_i, \cdot)\big), \qquad
        f = \sum_i a_i k(x_i, \cdot), \qquad \gamma_t = \eta\, t^{-\theta}

    Ying and Zhou's OPERA asks that scores differ as the labels +1 and -1 do, by the loss
    1/2 (f(x_t) - f(x_i) - (y_t - y_i))^2 over all pairs, so scores of one class should be equal. Lin et al. take other
    losses; for AUC they count the pairs of different classes. The coefficients a_i sum to 0 after every row.

    Nothing is left out and nothing is forgotten: this is what the kernel systems with a budget, and those with random
    features, approximate. In a space of explicit features the same steps cost the same however long the stream is: see
    :class:`~pairloom.systems.AllPairs`, with ``features=RandomFourier(512)``.

    Parameters
    ----------
    pairs : "all" (OPERA) or "opposite": pairs of different classes, which should differ by 1 (AUC). The sum is divided
        by the number of all rows in both cases.
    loss : "square" (with the papers' factor 1/2); with opposite pairs also "hinge", "squared_hinge" or "logistic".
    kernel : "gaussian", "laplace", "cauchy", "matern32", "matern52" or "linear".
    gamma : kernel width: a number, "paper" = 1 / (2 d), or "median" = 1 / median squared distance.
    eta : step size, 1 / mu in the papers, where mu is the largest k(x, x) + k(x', x') - 2 k(x, x'): at most 2, but for
        the linear kernel.
    power : theta; the papers' theory asks for 1/2 < theta < 1.
    max_rows : rows that it can take; more are refused, before anything changes.
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".
    dtype, pos_label, class_weight, random_state, engine, columns, half_life, drift : as in
        :class:`~pairloom.systems.FPOGD`.

    A weight scales the step, and the row's share of the sums of later rows.

    Attributes
    ----------
    support_, coef_, gamma_ : see :class:`~pairloom.estimators.kernel_classifier.KernelClassifier`; all rows are
        supports.

    Notes
    -----
    Cost: Row t takes t d flops for its kernels, and t^2 for f at all rows before it, for each model. t^2 + t d numbers:
    64 MB for 4,096 rows of float32 and few columns.

    References
    ----------
    Ying and Zhou, Online Pairwise Learning Algorithms, Neural Computation 2016.
    Lin, Lei, Zhang and Zhou, Online Pairwise Learning Algorithms with Convex Loss Functions, Information Sciences 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OPERA(scale="standard").fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    >>> model.support_.shape, bool(abs(model.coef_.sum()) < 1e-12)
    ((400, 30), True)
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "-AUC": {"pairs": "opposite"}}

    def __init__(
        self,
        *,
        pairs: PairSet = "all",
        loss: LossName = "square",
        kernel: KernelName = "gaussian",
        gamma: float | Literal["paper", "median"] = "paper",
        eta: float = 0.5,
        power: float = 0.6,
        max_rows: int = 4096,
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
        self.pairs = pairs
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.eta = eta
        self.power = power
        self.max_rows = max_rows
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
        reference = "Ying and Zhou 2016, Lin et al. 2017"
        return Card(reference, "t d + t^2", "t d + t^2", "general", model, variance_reduction="exact", memory="grows")

    def _make_model(self, n_classes: int, seed: int | None) -> "PairExpansion":
        check_choice("loss", self.loss, LOSSES)
        return PairExpansion(
            pair_set=self.pairs,
            loss=LOSSES[self.loss],
            max_rows=self.max_rows,
            kernel=exact_kernel(self.kernel, self.gamma),
            features=Identity(scale=self.scale),
            pairs=OppositeClass(n_classes),
            step=Polynomial(self.eta, self.power),
            dtype=self.dtype,
            seed=seed,
            engine=self.engine,
        )


@node
class History(ExpansionState):
    """All rows so far, the first ``used`` of those there is room for.

    Scaled ``points`` (n, d), kernels between them ``gram`` (n, n), labels ``y`` (n, models), weights ``mass`` (n,);
    of each model the coefficients ``coef`` and the values ``f`` at all points (models, n).
    """

    points: Rounded
    gram: Rounded
    y: Array
    mass: Array
    coef: Array
    f: Array
    used: Array

    def make_room(self, rows: int, max_rows: int) -> None:
        """Let there be room for so many rows: how much depends on their number alone."""
        have, size = len(self.mass), SMALLEST
        while size < rows:
            size *= 2
        more = min(size, max_rows) - have
        if more > 0:
            for name in ("points", "y", "mass"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros((more, *old.shape[1:]), old.dtype)]))
            for name in ("coef", "f"):
                setattr(self, name, np.pad(getattr(self, name), ((0, 0), (0, more))))
            self.gram = np.pad(self.gram, (0, more))


@dataclass(frozen=True, kw_only=True)
class PairExpansion(Expansion):
    """The learner of :class:`OPERA`."""

    pair_set: PairSet = "all"
    loss: Loss = field(default_factory=Square)
    max_rows: int = 4096

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("pairs", self.pair_set, PairSet)
        check_count("max_rows", self.max_rows)
        if self.pair_set == "all" and self.loss.name != "square":
            raise ValueError(f"pairs='all' needs loss='square': with loss={self.loss.name!r} use pairs='opposite'")

    @property
    def factor(self) -> float:
        """Square() has no factor 1/2."""
        return 0.5 if self.loss.name == "square" else 1.0

    @property
    def draws(self) -> int:
        return 0

    def init(self, n_features: int, first: Batch | None) -> State:
        return self.begin_empty(n_features, first)

    def check_room(self, state: State | None, n: int) -> None:
        instead = "a system of fixed size, such as KOIL(), or AllPairs(features=RandomFourier(512))"
        check_rows("OPERA", self.max_rows, 0 if state is None else int(state.memory.used[0]), n, instead)

    @property
    def forgets(self) -> bool:
        return True

    def forget(self, state: State, keep: float) -> None:
        """The rows stay, and weigh less in the sums of later ones; steps are as long as those of a younger stream."""
        state.forget(keep)
        state.memory.mass *= aged(state.memory.mass, keep)

    def terms(self, kept: History) -> list[tuple[Array, Array]]:
        n = int(kept.used[0])
        return [(kept.points[:n], kept.coef[:, :n])]

    def start(self, gamma: Array, dim: int) -> History:
        models = len(self.pairs.targets)
        return History(
            gamma, np.zeros((0, dim), self.dtype), np.zeros((0, 0), self.dtype), np.zeros((0, models)), np.zeros(0),
            np.zeros((models, 0)), np.zeros((models, 0)), np.zeros(1, np.int64),
        )  # fmt: skip

    def _pair(self, y: float, partners: Array) -> tuple[Array, Array]:
        """a and b of the margins a (f(x) - f(x_i)) + b; a = 0: the pair does not count."""
        if self.pair_set == "all":
            return np.ones(len(partners)), 1.0 - (y - partners)
        return (y - partners) / 2.0, np.zeros(len(partners))

    def step_row(self, state: State, row: KernelRow) -> None:
        kept, n = state.memory, int(state.memory.used[0])
        kept.make_room(n + 1, self.max_rows)
        kept.points[n], kept.y[n] = row.x, row.y
        kept.gram[n, : n + 1] = kept.gram[: n + 1, n] = self.values(state, row.x, kept.points[: n + 1])
        for k in range(len(row.y)):
            self._descend(state, k, row, n)
        kept.mass[n] = row.weight
        kept.used[0] += 1

    def _descend(self, state: State, k: int, row: KernelRow, n: int) -> None:
        """A step of model k on the pairs of row n, and f at all rows after it."""
        kept = state.memory
        gram, coef = kept.gram[: n + 1, : n + 1], kept.coef[k, : n + 1]
        a, b = self._pair(row.y[k], kept.y[:n, k])
        if a.any():
            p = kept.mass[:n] / kept.mass[:n].sum()
            f = coef @ gram
            margin = a * (f[n] - f[:n]) + b
            g = float(self.factor * p[a != 0] @ self.loss.value(margin[a != 0]))
            q = self.factor * p * a * self.loss.derivative(margin)
            v = np.append(-q, q.sum())
            squared_norm = float(v @ gram @ v)
            smooth = g > 0 and np.isfinite(self.loss.smoothness)
            rate = reference.guard(row.eta, squared_norm / (2.0 * g) if smooth else 0.0, g + squared_norm, state.tally)
            if rate:
                coef -= rate * v
                state.tally[[STEPS, PAIRS, LOSS]] += [row.weight, np.count_nonzero(a), row.weight * g]
        kept.f[k, : n + 1] = coef @ gram

    def run_block(self, state: State, block: KernelBlock) -> None:
        kept = state.memory
        kept.make_room(int(kept.used[0]) + len(block.y), self.max_rows)
        smooth = bool(np.isfinite(self.loss.smoothness))
        rule = Rule(self.kernel.code, float(kept.gamma), self.pair_set == "all", self.loss.code, smooth, self.factor)
        past = Past(kept.points, kept.gram, kept.y, kept.mass, kept.coef, kept.f, kept.used)
        with_loss(learn, self.loss)(tuple(block), tuple(rule), tuple(past), state.tally)
