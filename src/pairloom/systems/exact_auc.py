"""ExactAUC: the exact minimiser of the square loss over all pairs, from class moments."""

from typing import Any, cast

import numpy as np

from pairloom.base.typing import Array
from pairloom.estimators.card import Card
from pairloom.estimators.parameters import estimator
from pairloom.estimators.predictions import opposite_pairs
from pairloom.models.class_moments import ClassMoments
from pairloom.models.exact import ExactLearner
from pairloom.systems.base import LinearClassifier


@estimator
class ExactAUC(LinearClassifier):
    r"""Rank one class above the other by the exact minimiser of the square loss over all pairs so far.

    .. math::

        \min_w\; \tfrac{1}{n_+ n_-} \sum_{i \in +} \sum_{j \in -} (1 - \langle w, z_i - z_j \rangle)^2
            + \tfrac{\alpha}{2} \|w\|^2
        \quad\Leftrightarrow\quad (S_+ + S_- + \delta\delta^\top + \tfrac{\alpha}{2} I)\, w = \delta

    One pass computes the class covariances S and the difference delta of the class means; w is computed on demand. This
    system is the reference for the regret of all learners with the square loss, and a strong learner if D^2 numbers fit
    into memory. Scores for the calibration come from solutions an eighth of the stream apart. With a half-life, pairs
    are weighted.

    Parameters
    ----------
    alpha : L2 penalty; 0 gives the minimum-norm solution.
    max_bytes : largest size of the moments; more features raise ValueError.

    Notes
    -----
    Cost: O(D^2) time per row, as matrix products, and D^2 numbers per class; O(D^3) for a solution, which is kept until
    the next row is learned.

    References
    ----------
    Gao, Jin, Zhu and Zhou, One-Pass AUC Optimization, ICML 2013 (the moments).

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

    alpha: float = 1e-4
    max_bytes: int = 2**30

    @property
    def card(self) -> Card:
        return Card("Gao et al. 2013, in closed form", "D^2", "D^2", variance_reduction="exact")

    @property
    def n_pairs_(self) -> int:
        """Number of pairs of different classes among the rows so far, by weight."""
        return opposite_pairs(self._moments().counts)

    @property
    def loss_(self) -> float:
        """Mean square loss over all pairs so far (mean over classes if there are more than two)."""
        moments = self._moments()
        pairs = zip(self.stream_.model.pairs.targets, self.stream_.coef.astype(float), strict=True)
        return float(np.mean([moments.of(int(k)).loss(w) for k, w in pairs]))

    def coef_path(self, alphas: Any) -> Array:
        """Return w for each penalty, of shape (penalties, D), from one eigendecomposition. For two classes only."""
        alphas = np.asarray(alphas, dtype=float)
        if len(self.coef_.shape) > 1:
            raise ValueError("coef_path is for two classes")
        return np.asarray(self._labels.sign * self._moments().of(1).path(alphas))

    def pair_loss(self, coef: Any) -> float:
        """Return the mean square loss of any w, shaped like ``coef_``, over all pairs so far. For two classes only."""
        return self._moments().of(1).loss(self._labels.sign * np.asarray(coef, dtype=float))

    def _moments(self) -> ClassMoments:
        """Return the moments of all rows so far."""
        return cast(ClassMoments, self._learned.memory.folded())

    def _make_model(self, n_classes: int, seed: int | None) -> ExactLearner:
        return ExactLearner(
            alpha=self.alpha,
            max_bytes=self.max_bytes,
            **self._common_parts(n_classes, seed),
        )
