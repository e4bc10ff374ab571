"""Ranking by graded or real labels, also within queries."""

from typing import Any

from pairloom.base.checks import check_choice
from pairloom.base.typing import Array
from pairloom.estimators.parameters import estimator
from pairloom.estimators.real_labels import PairwiseEstimator
from pairloom.losses import LOSSES, Loss
from pairloom.metrics.concordance import concordance
from pairloom.pairs import Order, Pairs


@estimator
class PairwiseRanker(PairwiseEstimator):
    r"""Rank rows by graded or real labels on a stream, in one pass, with a kernel and bounded memory.

    .. math:: \min_w \sum_t \sum_{j \in B_t} p_j\,
        \ell\left(\mathrm{sign}(y_t - y_j) \langle w, \varphi(x_t) - \varphi(x_j)\rangle\right)
        + \tfrac{\alpha}{2} \|w\|^2

    The partners B_t are the newest rows with another label and, with ``groups``, of the same query. The score
    s(x) = <w, phi(x)> has no meaningful scale or origin: only the order of scores matters.

    Parameters
    ----------
    loss : "squared_hinge", "hinge", "square" or "logistic" (with larger steps, about eta=2).

    Notes
    -----
    Cost: d D + 4 S D flops per row for S = 64 partners; S D + d D / 2 numbers, regardless of the length of the stream,
    and D more with ``schedule="adagrad"``.

    References
    ----------
    Herbrich, Graepel and Obermayer, Large Margin Rank Boundaries for Ordinal Regression, 2000 (pairs by order).
    Yang et al., Simple Stochastic and Online Gradient Descent Algorithms for Pairwise Learning, NeurIPS 2021 (partners
    from the newest rows).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ranker = PairwiseRanker(random_state=0).fit(X[:300], y[:300])
    >>> bool(ranker.score(X[300:], y[300:]) > 0.7)
    True
    """

    loss: str = "squared_hinge"
    eta: float = 0.25

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Return the share of pairs with different labels, within queries, in the right order.

        1 is perfect, 0.5 is chance; for two labels it is the AUC. See :func:`~pairloom.estimators.concordance`.
        """
        return concordance(y, self.predict(X), sample_weight=sample_weight, groups=groups)

    def _pairs_and_loss(self) -> tuple[Pairs, Loss]:
        check_choice("loss", self.loss, LOSSES)
        return Order(), LOSSES[self.loss]

    def _predictions(self, scores: Array) -> Array:
        return scores
