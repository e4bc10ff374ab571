"""AdaDSG: random pairs of nested subsets that grow, each learned to its own statistical accuracy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, ClassVar, Literal

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.clock import NEVER
from pairloom.base.csr import Rows, is_sparse
from pairloom.base.typing import Array
from pairloom.columns import ColumnsLike
from pairloom.engines.base import Engine, EngineName
from pairloom.engines.fused import BLOCK_BYTES
from pairloom.engines.sparse_kernels import SIGMA
from pairloom.engines.state import State
from pairloom.estimators.card import Card
from pairloom.estimators.class_weight import ClassWeight
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.features import FeatureMap, linear_map
from pairloom.features.growing import refuse_growing
from pairloom.features.scaling import Scaling
from pairloom.losses import LOSSES, Loss, LossName, Square, with_loss
from pairloom.models.base import Dtype, Mapped, Trouble, linear_scores
from pairloom.models.rule import lazy_model
from pairloom.pairs import OppositeClass
from pairloom.steps import Constant, ElasticNet
from pairloom.stream.drift import Drift
from pairloom.stream.forgetting import HalfLife
from pairloom.systems.adadsg_loop import descend, learn, learn_rows

Accuracy = Literal["sqrt", "inverse", "constant"]

POWERS: dict[str, float] = {"sqrt": -0.5, "inverse": -1.0, "constant": 0.0}


class AdaDSG(PairwiseClassifier):
    r"""Rank one class above the other by steps on random pairs, first of few rows and then of twice as many.

    .. math::

        w \leftarrow \mathrm{prox}\big(w - \eta\, \ell'(\langle w, z_i - z_j \rangle) (z_i - z_j)\big), \qquad
        \Omega_n(w) = V_n \big(\tfrac{\alpha}{2} \|w\|^2 + \lambda_1 \|w\|_1\big)

    i and j are drawn anew for each step from the positives and the negatives of the stage's n rows. These are the first
    of one permutation of each class, so the subsets are nested and the classes keep their shares. A row of weight 2 is
    drawn twice as often; so a pair counts as the product of its weights.

    This is a reconstruction: the exponent of V_n, the constant of the penalty and the number of steps of a stage are
    not confirmed. The code that was seen takes half the gradient of the square loss (its eta is twice this one) and
    goes through two permutations in place of drawing with replacement.

    Parameters
    ----------
    loss : "square", "hinge", "squared_hinge" or "logistic".
    eta : step size.
    alpha, l1 : weights of the penalty's two norms, for V_n = 1.
    accuracy : V_n: "sqrt" (n^-1/2), "inverse" (1 / n) or "constant" (1, the code that was seen).
    n_stages : stages; the first has a share of growth^(1 - n_stages) of each class, rounded up, the last all rows.
    growth : how many times larger a stage is than the one before it; with 1 this is plain SGD on random pairs.
    passes : steps of a stage, in units of its larger class.
    features : any feature map, such as ``RandomFourier(512)``, in place of the columns themselves.
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".
    dtype, pos_label, class_weight, random_state, engine, columns, half_life, drift : as in
        :class:`~pairloom.systems.FPOGD`.

    It needs all rows at once: there is ``fit`` alone, and no half-life. Log-odds are fitted to scores of the rows that
    were learned.

    Notes
    -----
    Cost: With growth 2, about 2 ``passes`` times the larger class in steps of O(D), and as many times two rows mapped;
    D numbers besides the rows. CSR rows cost their entries, unless ``l1`` is above 0.

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

    def __init__(
        self,
        *,
        loss: LossName = "square",
        eta: float = 0.01,
        alpha: float = 0.01,
        l1: float = 0.0,
        accuracy: Accuracy = "sqrt",
        n_stages: int = 10,
        growth: float = 2.0,
        passes: int = 1,
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
        self.loss = loss
        self.eta = eta
        self.alpha = alpha
        self.l1 = l1
        self.accuracy = accuracy
        self.n_stages = n_stages
        self.growth = growth
        self.passes = passes
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
        return Card("Gu et al. 2019", "D", "D", problem="general", scheme="offline")

    @property
    def needs_all_rows(self) -> bool:
        return True

    def _make_model(self, n_classes: int, seed: int | None) -> "StagedPairs":
        check_choice("loss", self.loss, LOSSES)
        check_choice("accuracy", self.accuracy, Accuracy)
        return StagedPairs(
            features=linear_map(self.features, self.scale),
            pairs=OppositeClass(n_classes),
            loss=LOSSES[self.loss],
            step=Constant(self.eta),
            penalty=ElasticNet(self.alpha, self.l1),
            accuracy=self.accuracy,
            n_stages=self.n_stages,
            growth=self.growth,
            passes=self.passes,
            dtype=self.dtype,
            seed=seed,
            engine=self.engine,
        )


@dataclass(frozen=True)
class Stage:
    """Rows of the two sides of a model, positives first, with their weights added up; and the steps to be taken."""

    rows: tuple[Array, Array]
    masses: tuple[Array, Array]
    steps: int

    def draw(self, uniforms: Array) -> tuple[Array, Array]:
        """Rows i and j of pairs, from two uniform numbers each; a row's chance is in proportion to its weight."""
        i, j = (
            rows[np.searchsorted(mass, mass[-1] * u, side="right").clip(max=len(rows) - 1)]
            for rows, mass, u in zip(self.rows, self.masses, uniforms.T, strict=True)
        )
        return i, j


def stages(
    positive: Array, weight: Array, n_stages: int, growth: float, passes: int, rng: np.random.Generator
) -> Iterator[Stage]:
    """Nested subsets: the first of one permutation of each side."""
    sides = [rng.permutation(np.flatnonzero(side)) for side in (positive, ~positive)]
    for stage in range(n_stages):
        share = float(growth) ** (stage + 1 - n_stages)
        i, j = (side[: ceil(share * len(side))] for side in sides)
        yield Stage((i, j), (np.cumsum(weight[i]), np.cumsum(weight[j])), passes * max(len(i), len(j)))


@dataclass(frozen=True)
class Scoring:
    """Score rows that were learned before."""

    double: bool
    any_part: bool

    def takes(self, model: "StagedPairs", state: State, batch: Batch) -> bool:
        return True

    def run(self, model: "StagedPairs", state: State, batch: Batch) -> Array:
        state.t += len(batch)
        return model.score(state, batch.X)


@dataclass(frozen=True, kw_only=True)
class StagedPairs(Mapped):
    """A model <w, phi(x)> learned from random pairs of all rows, in stages. Parameters as in :class:`AdaDSG`."""

    engines: ClassVar[Mapping[str, Sequence[Engine]]] = {
        "reference": (Scoring(double=True, any_part=True),),
        "fused": (Scoring(double=False, any_part=False),),
    }
    large_products: ClassVar[bool] = False

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
        refuse_growing(self.features, type(self).__name__)
        check_count("n_stages", self.n_stages)
        check_number("growth", self.growth, 1)
        check_count("passes", self.passes)

    @property
    def n_vectors(self) -> int:
        return len(self.pairs.targets)

    @property
    def needs_data(self) -> bool:
        return self.features.needs_data

    def init(self, n_features: int, first: Batch | None) -> State:
        """Learn from all rows."""
        state = self.begin(n_features, self.warm(first), lambda phi, rows: None)
        if first is not None:
            self._learn(state, first[self.features.growers(state.phi) :])
        return state

    def _learn(self, state: State, batch: Batch) -> None:
        for k, target in enumerate(self.pairs.targets):
            positive = batch.y == target
            if positive.all() or not positive.any():
                continue
            for stage in stages(positive, batch.weight, self.n_stages, self.growth, self.passes, state.rng):
                self._learn_stage(state, k, batch.X, stage)
        self._settle(state)

    def run(self, state: State, batch: Batch) -> Scored:
        """Only score the rows: they were learned by ``init``."""
        return self.learn(state, batch)

    def coef(self, state: State) -> Array:
        """w, one row per target of the pairs."""
        return state.w

    def score(self, state: State, X: Any) -> Array:
        """<w, phi(x)> of each row."""
        return linear_scores(self.features, state, state.w, X)

    def next_row(self, state: State) -> int:
        return NEVER

    def check_room(self, state: State | None, n: int) -> None:
        """There is room for every row."""

    def trouble(self, state: State, told: float) -> Trouble | None:
        return self.stable(state, told)

    @property
    def forgets(self) -> bool:
        """No: its stages have all rows before them at once."""
        return False

    def forget(self, state: State, keep: float) -> None:
        """There is nothing to do."""

    def _learn_stage(self, state: State, k: int, X: Any, stage: Stage) -> None:
        accuracy = sum(map(len, stage.rows)) ** POWERS[self.accuracy]
        penalty = ElasticNet(accuracy * self.penalty.alpha, accuracy * self.penalty.l1)
        steps = np.array(penalty.at(np.asarray(self.step.eta)))
        rows = max(8, BLOCK_BYTES // state.w[0].nbytes)
        for start in range(0, stage.steps, rows):
            i, j = stage.draw(state.rng.random((min(rows, stage.steps - start), 2)))
            self._descend(state, k, X[i], X[j], steps)

    def _descend(self, state: State, k: int, X: Any, X2: Any, steps: Array) -> None:
        """A step for each of some pairs of rows, in order."""
        loss, D = self.loss, self._differences(state, X, X2)
        smooth = bool(np.isfinite(loss.smoothness))
        if self.by_specification:
            for d in D:
                state.w[k] = descend(state.w[k], d, loss, steps, state.tally)
        elif isinstance(D, Rows):
            model = lazy_model(state, averaging=False)
            with_loss(learn_rows, loss)(
                D.data, D.indices, D.indptr, loss.code, smooth, steps,
                model.w_hat[k], model.u_hat[k], model.factors[k], state.tally,
            )  # fmt: skip
        else:
            with_loss(learn, loss)(D, loss.code, smooth, steps, state.w[k], state.tally)

    def _differences(self, state: State, X: Any, X2: Any) -> Any:
        """phi(x) - phi(x') of pairs of rows; CSR rows stay CSR in linear mode, but for the specification."""
        phi = self.features
        if not (phi.sparse or (phi.keeps_csr and is_sparse(X))):
            return phi.apply(state.phi, X) - phi.apply(state.phi, X2)
        mapped = phi.apply if phi.sparse else phi.inputs
        D: Any = mapped(state.phi, X) - mapped(state.phi, X2)
        return D.toarray() if self.by_specification else Rows.of(D)

    def _settle(self, state: State) -> None:
        """The model as dense weights; what CSR rows needed besides is done with."""
        if state.lazy is not None:
            state.w[:] = state.lazy.factors[:, [SIGMA]] * state.lazy.w_hat
            state.lazy = None
