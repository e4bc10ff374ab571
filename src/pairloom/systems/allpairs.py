"""AllPairs: every row is paired with all rows before it."""

from typing import Any, ClassVar, Literal

import numpy as np

from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.columns import ColumnsLike
from pairloom.engines.base import EngineName
from pairloom.estimators.card import Card
from pairloom.estimators.class_weight import ClassWeight
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.features import FeatureMap, linear_map
from pairloom.features.scaling import Scaling
from pairloom.losses import LOSSES, LossName
from pairloom.memory import WholeHistory
from pairloom.models.base import Dtype, Model
from pairloom.models.learner import Learner
from pairloom.models.moments import MAX_BYTES, Moments, PairSet
from pairloom.models.rule import RuleLearner
from pairloom.pairs import ClassDifference, OppositeClass
from pairloom.steps import L2, Average, Polynomial
from pairloom.stream.drift import Drift
from pairloom.stream.forgetting import HalfLife

Forms = Literal["auto", "moments", "history"]


class AllPairs(PairwiseClassifier):
    r"""Online pairwise least squares: a step on the pairs of the newest row with all rows before it.

    .. math::

        w \leftarrow w - \frac{\gamma_t}{t - 1} \sum_{i < t} \big(\langle w, z_t - z_i \rangle - (t_t - t_i)\big)
        (z_t - z_i), \qquad \gamma_t = \eta\, t^{-\theta}

    The targets t are +1 and -1, so scores of one class should be equal. The sum is a function of the mean and the
    covariance of the rows so far ("moments"); losses other than the square need the rows themselves ("history").

    Parameters
    ----------
    pairs : "all" (the paper) or "opposite": pairs of different classes, which should differ by 1 (AUC). The sum is
        divided by the number of all rows in both cases.
    loss : "square" (the paper, with its factor 1/2); with opposite pairs also "hinge", "squared_hinge" or "logistic".
    form : "moments" (square loss only), "history", or "auto": moments where they will do.
    eta : step size, 1 / mu in the paper, where mu is the largest squared distance of two rows.
    power : theta; the paper's theory asks for 1/2 < theta < 1.
    average : the iterate that scores: "last" (the paper), "mean" or "poly".
    max_rows : rows that the history can take; more are refused.
    max_bytes : room for the moments; a larger number of features is refused.
    features : any feature map, such as ``RandomFourier(512)``, in place of the columns themselves.
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".
    dtype, pos_label, class_weight, random_state, engine, columns, half_life, drift : as in
        :class:`~pairloom.systems.FPOGD`.

    Notes
    -----
    Cost: Moments: 3 D^2 / 2 multiply-adds per example and D^2 / 2 numbers ("opposite": D^2), with K > 2 classes K times
    as much; CSR rows become dense, a block of rows at a time. History: 2 t D multiply-adds for row t and model, and
    ``max_rows`` D numbers.

    References
    ----------
    Boissier, Lyu, Ying and Zhou, Fast Convergence of Online Pairwise Learning Algorithms, AISTATS 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AllPairs(eta=0.05, scale="minmax").fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "-AUC": {"pairs": "opposite"}}

    def __init__(
        self,
        *,
        pairs: PairSet = "all",
        loss: LossName = "square",
        form: Forms = "auto",
        eta: float = 0.1,
        power: float = 0.6,
        average: Average = "last",
        max_rows: int = 10_000,
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
        self.pairs = pairs
        self.loss = loss
        self.form = form
        self.eta = eta
        self.power = power
        self.average = average
        self.max_rows = max_rows
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
        if self._keeps_rows:
            return Card("Boissier et al. 2016", "t D", "t D", "general", variance_reduction="exact", memory="grows")
        return Card("Boissier et al. 2016", "D^2", "D^2", "general", variance_reduction="exact")

    @property
    def _keeps_rows(self) -> bool:
        return self.form == "history" or (self.form == "auto" and self.loss != "square")

    def _make_model(self, n_classes: int, seed: int | None) -> Model:
        check_choice("pairs", self.pairs, PairSet)
        check_choice("loss", self.loss, LOSSES)
        check_choice("form", self.form, Forms)
        check_number("eta", self.eta, 0, open_low=True)
        check_count("max_rows", self.max_rows)
        check_count("max_bytes", self.max_bytes)
        if self.loss != "square" and (self.pairs == "all" or self.form == "moments"):
            raise ValueError(
                f"pairs='all' and form='moments' need loss='square': with loss={self.loss!r} use pairs='opposite' and "
                "form='history'"
            )
        # Square() has no factor 1/2.
        half = 0.5 if self._keeps_rows and self.loss == "square" else 1.0
        parts: dict[str, Any] = {
            "features": linear_map(self.features, self.scale),
            "pairs": (ClassDifference if self.pairs == "all" else OppositeClass)(n_classes),
            "step": Polynomial(half * self.eta, self.power),
            "penalty": L2(),
            "average": self.average,
            "dtype": self.dtype,
            "seed": seed,
            "engine": self.engine,
        }
        if self._keeps_rows:
            return Learner(loss=LOSSES[self.loss], memory=WholeHistory(self.max_rows, by="joint"), **parts)
        return RuleLearner(rule=Moments(self.pairs, "history", self.max_bytes), **parts)
