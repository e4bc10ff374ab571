"""OGD: each row is paired with the previous one."""

from typing import Any, ClassVar, Literal

from pairloom.base.checks import check_choice
from pairloom.estimators.card import Card
from pairloom.estimators.parameters import estimator
from pairloom.losses import LOSSES, LossName
from pairloom.memory import Latest
from pairloom.memory.latest import Partner
from pairloom.models.learner import Learner
from pairloom.steps import Average
from pairloom.steps.penalties import l2_or_ball
from pairloom.steps.schedules import schedule_named
from pairloom.systems.base import LinearClassifier


@estimator
class OGD(LinearClassifier):
    r"""Rank one class above the other at O(D) per row, by the pair with the previous row.

    .. math::

        w \leftarrow \Pi_R\bigl( w - \eta_t\, y_t\, \ell'(y_t \langle w, z_t - z_{t-1}\rangle) (z_t - z_{t-1}) \bigr)
        \quad\text{if } y_t \ne y_{t-1}

    With a share p of positives, a share 2 p (1 - p) of the rows of a shuffled stream form a pair with the previous row,
    and almost none of a stream sorted by class. ``partner="opposite"`` keeps the newest row of each class instead, and
    learns from every row.

    Parameters
    ----------
    partner : "previous" (the paper) or "opposite" (the newest row of the other class).
    loss : "hinge", "square", "squared_hinge" or "logistic".
    eta : step size.
    schedule : "sqrt" (eta / sqrt(t)), "constant", "poly" (eta t^-0.75), "horizon" (eta / sqrt(T) for all steps, as in
        the published code) or "adagrad" (one step size per coordinate, see :class:`~pairloom.steps.AdaGrad`).
    horizon : expected length T of the stream, for ``schedule="horizon"``.
    alpha : L2 penalty, instead of the ball: each step shrinks w by 1 - eta alpha.
    radius : R, the largest norm of w; None for no bound.
    average : the iterate that predicts: "mean" (the paper), "poly" or "last".

    Notes
    -----
    Cost: O(D) time per row and 3 D numbers; 4 D with ``partner="opposite"``. The cost of CSR rows is linear in their
    entries.

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

    partner: Partner = "previous"
    loss: LossName = "hinge"
    eta: float = 0.1
    schedule: Literal["sqrt", "constant", "poly", "horizon", "adagrad"] = "sqrt"
    horizon: int | None = None
    alpha: float = 0.0
    radius: float | None = None
    average: Average = "mean"

    @property
    def card(self) -> Card:
        return Card("Yang et al. 2021", "D", "D", problem="general")

    def _make_model(self, n_classes: int, seed: int | None) -> Learner:
        check_choice("loss", self.loss, LOSSES)
        return Learner(
            loss=LOSSES[self.loss],
            memory=Latest(self.partner),
            step=schedule_named(self.schedule, self.eta, self.horizon),
            penalty=l2_or_ball(self.alpha, self.radius),
            average=self.average,
            **self._common_parts(n_classes, seed),
        )
