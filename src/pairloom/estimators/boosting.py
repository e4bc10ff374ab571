"""BoostingClassifier: gradient boosting in one pass."""

from pairloom.base.typing import Array
from pairloom.estimators.card import Card
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.estimators.parameters import estimator
from pairloom.estimators.predictions import opposite_pairs
from pairloom.models.boosting import Boosting


@estimator
class BoostingClassifier(PairwiseClassifier):
    r"""Rank one class above the other by gradient boosting on a stream, in one pass and bounded memory.

    .. math::

        s(x) = b + \sum_{m=1}^{M} \rho\, v_m(\ell_m(x))

    Small trees on histograms of the newest rows minimise the logistic loss. They are grown one by one while rows
    arrive, in generations that replace each other; arriving rows show how many trees are best. See
    :class:`~pairloom.models.Boosting` for the rules. :class:`~pairloom.AUCClassifier` combines this model with others.

    Parameters
    ----------
    n_trees : maximum number of trees of a generation, for each class.
    learning_rate : factor of each tree's values.
    max_leaves : maximum number of leaves of a tree.
    min_rows : minimum number of rows in a leaf.
    alpha : L2 penalty of the values of leaves.
    n_rows : number of newest rows kept, at most 16,384.
    eta : step size (AdaGrad) in the leaves of a complete generation; 0: they stay as they are.

    Attributes
    ----------
    n_pairs_ : number of pairs of different classes among the rows so far, by weight.
    loss_ : share of wrongly ordered pairs among the newest 4,096 rows, each scored before it was learned.

    Notes
    -----
    Cost: 10 to 40 microseconds per row up to 40 columns, 100 for 800; d + 4 d bytes for each of the ``n_rows`` rows.

    References
    ----------
    Friedman, Greedy Function Approximation: A Gradient Boosting Machine, Annals of Statistics 2001.
    Ke et al., LightGBM: A Highly Efficient Gradient Boosting Decision Tree, NeurIPS 2017 (histograms).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BoostingClassifier(random_state=0).fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.97)
    True
    """

    n_trees: int = 100
    learning_rate: float = 0.1
    max_leaves: int = 31
    min_rows: int = 20
    alpha: float = 1.0
    n_rows: int = 16_384
    eta: float = 0.01

    @property
    def card(self) -> Card:
        return Card("this library", "d", "d", problem="pointwise", model="kernel", settled=self.n_rows)

    @property
    def _takes_nan(self) -> bool:
        return True

    def _make_model(self, n_classes: int, seed: int | None) -> Boosting:
        return Boosting(
            n_trees=self.n_trees, learning_rate=self.learning_rate, max_leaves=self.max_leaves, min_rows=self.min_rows,
            alpha=self.alpha, n_rows=self.n_rows, eta=self.eta, **self._common_parts(n_classes, seed),
        )  # fmt: skip

    @property
    def n_pairs_(self) -> int:
        """Number of pairs of different classes among the rows so far, by weight."""
        return opposite_pairs(self._learned.came)

    @property
    def loss_(self) -> float:
        """Share of wrongly ordered pairs among the newest rows (mean over more than two classes)."""
        return self._discordant_share

    @property
    def coef_(self) -> Array:
        """Raise AttributeError: trees have no weight vector."""
        raise AttributeError("a BoostingClassifier has trees, no weight vector")
