"""OAM: a reservoir of each class, and steps for sums over all pairs of the past."""

from typing import Any, ClassVar, Literal

import numpy as np

from pairloom.base.checks import check_choice, check_number
from pairloom.columns import ColumnsLike
from pairloom.engines.base import EngineName
from pairloom.estimators.card import Card
from pairloom.estimators.class_weight import ClassWeight
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.features import FeatureMap, linear_map
from pairloom.features.scaling import Scaling
from pairloom.losses import Hinge
from pairloom.memory import Reservoir
from pairloom.models.base import Dtype
from pairloom.models.learner import Learner
from pairloom.pairs import OppositeClass
from pairloom.steps import Average, Constant, PassiveAggressive
from pairloom.stream.drift import Drift
from pairloom.stream.forgetting import HalfLife

Update = Literal["sequential", "gradient"]


class OAM(PairwiseClassifier):
    r"""Rank one class above the other with the hinge loss, against a uniform sample of the opposite class.

    .. math::

        \min_w\; \tfrac12 \|w\|^2 + C \sum_{i, j:\, y_i \ne y_j} \max(0, 1 - y_i \langle w, z_i - z_j\rangle)

    Each class has a reservoir of s examples B. Example t, with N examples of the opposite class before it, is learned
    with C_t = C max(1, N / s), so that its sample stands for all N. With u_j = y_t (z_t - B_j):

    - "sequential" (OAMseq): for one j after the other, w <- w + tau_j u_j with
      tau_j = min(C_t / 2, max(0, 1 - <w, u_j>) / ||u_j||^2);
    - "gradient" (OAMgra): w <- w + (C_t / 2) sum of the u_j with <w, u_j> < 1.

    These are sums, not means: C_t grows with the stream, so C is best small.

    Parameters
    ----------
    update : "sequential" or "gradient".
    C : weight of the loss. The factor 1/2 of the publication is kept in both updates.
    size : examples in the reservoir of each class.
    average : the iterate that scores: "last" (the publication), "mean" or "poly".
    features : any feature map, such as ``RandomFourier(512)``, in place of the columns themselves.
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".
    dtype, pos_label, class_weight, random_state, engine, columns, half_life, drift : as in
        :class:`~pairloom.systems.FPOGD`.

    Notes
    -----
    Cost: O(s D) time and 2 (s + 1) D numbers for ``size`` s. CSR rows cost the entries of their partners.

    References
    ----------
    Zhao, Hoi, Jin and Yang, Online AUC Maximization, ICML 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OAM(scale="standard", random_state=0).fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {"seq": {}, "gra": {"update": "gradient"}}

    def __init__(
        self,
        *,
        update: Update = "sequential",
        C: float = 1e-4,
        size: int = 100,
        average: Average = "last",
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
        self.update = update
        self.C = C
        self.size = size
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
        return Card("Zhao et al. 2011", "s D", "s D")

    def _make_model(self, n_classes: int, seed: int | None) -> Learner:
        check_choice("update", self.update, Update)
        check_number("C", self.C, 0, open_low=True)
        return Learner(
            features=linear_map(self.features, self.scale),
            pairs=OppositeClass(n_classes),
            loss=Hinge(),
            memory=Reservoir(self.size, normalization="sum"),
            step=(PassiveAggressive if self.update == "sequential" else Constant)(self.C / 2),
            average=self.average,
            dtype=self.dtype,
            seed=seed,
            engine=self.engine,
        )
