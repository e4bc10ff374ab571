"""ExactAUC: the minimiser of the square loss over all pairs, from the moments of the classes."""

from typing import Any, cast

import numpy as np

from pairloom.base.typing import Array
from pairloom.columns import ColumnsLike
from pairloom.engines.base import EngineName
from pairloom.estimators.card import Card
from pairloom.estimators.class_weight import ClassWeight
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.features import FeatureMap, linear_map
from pairloom.features.scaling import Scaling
from pairloom.models.base import Dtype
from pairloom.models.exact import ClassMoments, ExactLearner
from pairloom.pairs import OppositeClass
from pairloom.stream.drift import Drift
from pairloom.stream.forgetting import HalfLife


class ExactAUC(PairwiseClassifier):
    r"""The exact minimiser of the square loss over all pairs of the two classes, in any feature space.

    .. math::

        \min_w\; \tfrac{1}{n_+ n_-} \sum_{i \in +} \sum_{j \in -} (1 - \langle w, z_i - z_j \rangle)^2
            + \tfrac{\alpha}{2} \|w\|^2
        \quad\Leftrightarrow\quad (S_+ + S_- + \delta\delta^\top + \tfrac{\alpha}{2} I)\, w = \delta

    S are the covariances of the classes and delta the difference of their means: one pass keeps these, and w is solved
    for when it is asked for. The yardstick for the regret of every learner with the square loss, and where D^2 numbers
    fit a strong one itself. The scores behind the calibration come from solutions an eighth of the stream apart.

    Parameters
    ----------
    alpha : L2 penalty; 0 takes the solution of least norm.
    features : any feature map, such as ``RandomFourier(512)``, in place of the columns themselves.
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".
    max_bytes : refuse feature spaces whose moments need more.
    dtype, pos_label, class_weight, random_state, engine, columns, half_life, drift : as in
        :class:`~pairloom.systems.FPOGD`; moments are float64 always, and the "reference" engine takes rows in one by
        one. With a half-life the loss is that of weighted pairs.

    Notes
    -----
    Cost: O(D^2) time per example, as matrix products, and D^2 numbers for each class; O(D^3) for a solution, kept until
    the next row comes.

    References
    ----------
    Gao, Jin, Zhu and Zhou, One-Pass AUC Optimization, ICML 2013, for the moments.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ExactAUC(alpha=0.01, scale="standard").fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    >>> model.coef_path([0.001, 0.01, 0.1]).shape
    (3, 30)
    """

    def __init__(
        self,
        *,
        alpha: float = 1e-4,
        features: FeatureMap | None = None,
        scale: Scaling = None,
        max_bytes: int = 2**30,
        dtype: Dtype = "float32",
        pos_label: Any = None,
        class_weight: ClassWeight = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        engine: EngineName = "auto",
        columns: ColumnsLike = None,
        half_life: HalfLife = None,
        drift: Drift = None,
    ) -> None:
        self.alpha = alpha
        self.features = features
        self.scale = scale
        self.max_bytes = max_bytes
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
        return Card("Gao et al. 2013, in closed form", "D^2", "D^2", variance_reduction="exact")

    @property
    def n_pairs_(self) -> int:
        """Pairs of different classes among the rows so far, by weight."""
        counts = self._moments().counts
        return int((counts.sum() ** 2 - counts @ counts) / 2)

    @property
    def loss_(self) -> float:
        """Mean square loss of the model over all pairs so far (mean over the models of more than two classes)."""
        moments = self._moments()
        pairs = zip(self.stream_.model.pairs.targets, self.stream_.coef.astype(float), strict=True)
        return float(np.mean([moments.of(int(k)).loss(w) for k, w in pairs]))

    def coef_path(self, alphas: Any) -> Array:
        """w for each of many penalties, (penalties, D), at the cost of one eigendecomposition. Two classes only."""
        alphas = np.asarray(alphas, dtype=float)
        if len(self.coef_.shape) > 1:
            raise ValueError("coef_path is for two classes")
        return np.asarray(self._labels.sign * self._moments().of(1).path(alphas))

    def pair_loss(self, coef: Any) -> float:
        """Mean square loss of any w, (D,) like ``coef_``, over all pairs learned so far. Two classes only."""
        return self._moments().of(1).loss(self._labels.sign * np.asarray(coef, dtype=float))

    def _moments(self) -> ClassMoments:
        """The moments of all rows so far."""
        return cast(ClassMoments, self._learned.memory.folded())

    def _make_model(self, n_classes: int, seed: int | None) -> ExactLearner:
        return ExactLearner(
            features=linear_map(self.features, self.scale),
            pairs=OppositeClass(n_classes),
            alpha=self.alpha,
            max_bytes=self.max_bytes,
            dtype=self.dtype,
            seed=seed,
            engine=self.engine,
        )
