"""OLP: each example is paired with a sample of the past, drawn with replacement (RS-x)."""

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
from pairloom.memory import RSx
from pairloom.memory.base import By
from pairloom.models.base import Dtype
from pairloom.models.learner import Learner
from pairloom.pairs import OppositeClass
from pairloom.steps import Average, l2_or_ball, schedule_named
from pairloom.stream.drift import Drift
from pairloom.stream.forgetting import HalfLife


class OLP(PairwiseClassifier):
    r"""Rank one class above the other: learn from the pairs with a uniform sample of all examples so far.

    .. math::

        w \leftarrow \Pi_R\Bigl( w - \frac{\eta}{\sqrt t} \frac{1}{|B|} \sum_{j \in B,\, y_j \ne y_t}
        y_t\, \ell'(y_t \langle w, z_t - z_j\rangle) (z_t - z_j) \Bigr)

    The members of the buffer B are independent draws from the past (:class:`~pairloom.RSx`). Those of the example's own
    class teach nothing, but count in |B|.

    Parameters
    ----------
    size : examples in the buffer; the theory asks for about the square root of the stream's length.
    buffer : one for all examples ("joint", the publication) or one for each "class"; then every member is a partner.
    loss : "hinge", "square", "squared_hinge" or "logistic".
    eta : step size.
    schedule : "sqrt" (eta / sqrt(t), the publication), "constant", "poly" (eta t^-0.75) or "adagrad" (a step for each
        coordinate, see :class:`~pairloom.AdaGrad`).
    alpha : L2 penalty, in place of the ball: w shrinks by 1 - eta alpha in each step.
    radius : R, the largest norm of w; None for no bound.
    average : the iterate that scores: "mean", "poly" or "last".
    features : any feature map, such as ``RandomFourier(512)``, in place of the columns themselves.
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".
    dtype, pos_label, class_weight, random_state, engine, columns, half_life, drift : as in
        :class:`~pairloom.systems.FPOGD`.

    Notes
    -----
    Cost: O(s D) time and (s + 2) D numbers for ``size`` s; 2 s with a buffer for each of two classes. CSR rows cost the
    entries of their partners.

    References
    ----------
    Kar, Sriperumbudur, Jain and Karnick, On the Generalization Ability of Online Learning Algorithms for Pairwise Loss
    Functions, ICML 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OLP(scale="standard", random_state=0).fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "-class": {"buffer": "class"}}

    def __init__(
        self,
        *,
        size: int = 100,
        buffer: By = "joint",
        loss: Literal["hinge", "square", "squared_hinge", "logistic"] = "hinge",
        eta: float = 0.1,
        schedule: Literal["sqrt", "constant", "poly", "adagrad"] = "sqrt",
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
        self.size = size
        self.buffer = buffer
        self.loss = loss
        self.eta = eta
        self.schedule = schedule
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
        return Card("Kar et al. 2013", "s D", "s D", problem="general")

    def _make_model(self, n_classes: int, seed: int | None) -> Learner:
        check_choice("buffer", self.buffer, By)
        check_choice("loss", self.loss, LOSSES)
        return Learner(
            features=linear_map(self.features, self.scale),
            pairs=OppositeClass(n_classes),
            loss=LOSSES[self.loss],
            memory=RSx(self.size, by=self.buffer),
            step=schedule_named(self.schedule, self.eta),
            penalty=l2_or_ball(self.alpha, self.radius),
            average=self.average,
            dtype=self.dtype,
            seed=seed,
            engine=self.engine,
        )
