"""OAM: a reservoir per class, and steps scaled to the sum over all pairs of the past."""

from typing import Any, ClassVar, Literal

from pairloom.base.checks import check_choice, check_number
from pairloom.estimators.card import Card
from pairloom.estimators.parameters import estimator
from pairloom.losses import Hinge
from pairloom.memory import Reservoir
from pairloom.models.learner import Learner
from pairloom.steps import Average, Constant, PassiveAggressive
from pairloom.systems.base import LinearClassifier

Update = Literal["sequential", "gradient"]


@estimator
class OAM(LinearClassifier):
    r"""Rank one class above the other with the hinge loss, against a uniform sample of the opposite class.

    .. math::

        \min_w\; \tfrac12 \|w\|^2 + C \sum_{i, j:\, y_i \ne y_j} \max(0, 1 - y_i \langle w, z_i - z_j\rangle)

    Each class has a reservoir B of s rows. Row t, after N rows of the opposite class, uses C_t = C max(1, N / s), so
    that the sample represents all N. With u_j = y_t (z_t - B_j):

    - "sequential" (OAMseq): for each j in turn, w <- w + tau_j u_j with
      tau_j = min(C_t / 2, max(0, 1 - <w, u_j>) / ||u_j||^2);
    - "gradient" (OAMgra): w <- w + (C_t / 2) times the sum of all u_j with <w, u_j> < 1.

    The objective is a sum, not a mean: C_t grows with the stream, so C should be small.

    Parameters
    ----------
    update : "sequential" or "gradient".
    C : weight of the loss. Both updates keep the factor 1/2 of the paper.
    size : rows in the reservoir of each class.
    average : the iterate that predicts: "last" (the paper), "mean" or "poly".

    Notes
    -----
    Cost: O(s D) time per row and 2 (s + 1) D numbers for ``size`` s. The cost of CSR rows is linear in the entries of
    their partners.

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

    update: Update = "sequential"
    C: float = 1e-4
    size: int = 100
    average: Average = "last"

    @property
    def card(self) -> Card:
        return Card("Zhao et al. 2011", "s D", "s D")

    def _make_model(self, n_classes: int, seed: int | None) -> Learner:
        check_choice("update", self.update, Update)
        check_number("C", self.C, 0, open_low=True)
        return Learner(
            loss=Hinge(),
            memory=Reservoir(self.size, normalization="sum"),
            step=(PassiveAggressive if self.update == "sequential" else Constant)(self.C / 2),
            average=self.average,
            **self._common_parts(n_classes, seed),
        )
