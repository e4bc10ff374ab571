"""OGD: each example is paired with the one before it."""

from typing import Any, ClassVar, Literal

import numpy as np

from pairloom.base.checks import check_choice
from pairloom.columns import ColumnsLike
from pairloom.engines.base import EngineName
from pairloom.estimators.card import Card
from pairloom.estimators.class_weight import ClassWeight
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.features import FeatureMap, linear_map
from pairloom.features.scaling import Scaling
from pairloom.losses import LOSSES
from pairloom.memory import Latest
from pairloom.memory.latest import Partner
from pairloom.models.base import Dtype
from pairloom.models.learner import Learner
from pairloom.pairs import OppositeClass
from pairloom.steps import Average, l2_or_ball, schedule_named
from pairloom.stream.drift import Drift
from pairloom.stream.forgetting import HalfLife


class OGD(PairwiseClassifier):
    r"""Rank one class above the other at O(D) per example: learn from the pair with the previous example.

    .. math::

        w \leftarrow \Pi_R\bigl( w - \eta_t\, y_t\, \ell'(y_t \langle w, z_t - z_{t-1}\rangle) (z_t - z_{t-1}) \bigr)
        \quad\text{if } y_t \ne y_{t-1}

    With a share p of positives, 2 p (1 - p) of the examples of a shuffled stream make a pair with the one before; of a
    stream sorted by class, almost none. ``partner="opposite"`` keeps the newest example of each class, and learns from
    every one.

    Parameters
    ----------
    partner : "previous" (the publication) or "opposite" (the newest example of the other class).
    loss : "hinge", "square", "squared_hinge" or "logistic".
    eta : step size.
    schedule : "sqrt" (eta / sqrt(t)), "constant", "poly" (eta t^-0.75), "horizon" (eta / sqrt(T), constant, as in the
        published code) or "adagrad" (a step for each coordinate, see :class:`~pairloom.AdaGrad`).
    horizon : expected length T of the stream, for ``schedule="horizon"``.
    alpha : L2 penalty, in place of the ball: w shrinks by 1 - eta alpha in each step.
    radius : R, the largest norm of w; None for no bound.
    average : the iterate that scores: "mean" (the publication), "poly" or "last".
    features : any feature map, such as ``RandomFourier(512)``, in place of the columns themselves.
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".
    dtype, pos_label, class_weight, random_state, engine, columns, half_life, drift : as in
        :class:`~pairloom.systems.FPOGD`.

    Notes
    -----
    Cost: O(D) time and 3 D numbers; 4 D with ``partner="opposite"``. CSR rows cost their entries.

    References
    ----------
    Yang, Lei, Wang, Yang and Ying, Simple Stochastic and Online Gradient Descent Algorithms for Pairwise Learning,
    NeurIPS 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OGD(scale="standard").fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "-opposite": {"partner": "opposite"}}

    def __init__(
        self,
        *,
        partner: Partner = "previous",
        loss: Literal["hinge", "square", "squared_hinge", "logistic"] = "hinge",
        eta: float = 0.1,
        schedule: Literal["sqrt", "constant", "poly", "horizon", "adagrad"] = "sqrt",
        horizon: int | None = None,
        alpha: float = 0.0,
        radius: float | None = None,
        average: Average = "mean",
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
        self.partner = partner
        self.loss = loss
        self.eta = eta
        self.schedule = schedule
        self.horizon = horizon
        self.alpha = alpha
        self.radius = radius
        self.average = average
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
        return Card("Yang et al. 2021", "D", "D", problem="general")

    def _make_model(self, n_classes: int, seed: int | None) -> Learner:
        check_choice("loss", self.loss, LOSSES)
        return Learner(
            features=linear_map(self.features, self.scale),
            pairs=OppositeClass(n_classes),
            loss=LOSSES[self.loss],
            memory=Latest(self.partner),
            step=schedule_named(self.schedule, self.eta, self.horizon),
            penalty=l2_or_ball(self.alpha, self.radius),
            average=self.average,
            dtype=self.dtype,
            seed=seed,
            engine=self.engine,
        )
