"""Regression on differences: pairwise least squares."""

import numpy as np

from pairloom.base.graph import Value
from pairloom.base.typing import Array
from pairloom.estimators.parameters import estimator
from pairloom.estimators.real_labels import PairwiseEstimator
from pairloom.estimators.scikit_learn import RegressorMixin
from pairloom.losses import Loss, Square
from pairloom.pairs import Difference, Pairs


@estimator
class PairwiseRegressor(RegressorMixin, PairwiseEstimator):
    r"""Predict differences of labels on a stream, in one pass, with a kernel and bounded memory.

    .. math:: \min_w \sum_t \sum_{j \in B_t} p_j
        \left(\langle w, \varphi(x_t) - \varphi(x_j)\rangle - (y_t - y_j)\right)^2 + \tfrac{\alpha}{2} \|w\|^2

    ``pair_score`` returns the predicted difference s(x) - s(x'), ``predict`` returns s(x) + b, with b the mean of
    y - s over the newest 4,096 rows, each scored before it was learned. With ``groups``, only differences within a
    group are learned: an offset common to all labels of a group cancels. The predictions scale with y.

    Parameters
    ----------
    schedule : "constant", "sqrt" (eta / sqrt(t)), "poly" (eta t^-0.75) or "adagrad" (one step size per coordinate, see
        :class:`~pairloom.steps.AdaGrad`; eta is then in the units of y).

    Attributes
    ----------
    intercept_ : b, the mean of y - s(x) over the newest 4,096 rows.

    Notes
    -----
    Cost: as for :class:`~pairloom.PairwiseRanker`.

    References
    ----------
    Yang et al., Simple Stochastic and Online Gradient Descent Algorithms for Pairwise Learning, NeurIPS 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = PairwiseRegressor(random_state=0).fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.4)
    True
    """

    max_abs_label = 1e12

    @property
    def intercept_(self) -> float:
        """b, the mean of y - s(x) over the newest 4,096 rows; the mean of y while no row has a score."""
        scores, labels, weight = self._recent.with_scores()
        if not len(labels):
            return float(self._recent.view()[1].mean())
        return float(np.average(labels - scores[:, 0], weights=weight))

    def _pairs_and_loss(self) -> tuple[Pairs, Loss]:
        return Difference(), Square()

    def _predictions(self, scores: Array) -> Array:
        return scores + self.intercept_

    def _predictions_onnx(self, scores: Value) -> Value:
        return scores + self.intercept_
