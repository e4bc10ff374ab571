"""OLP: each row is paired with a sample of the past, drawn with replacement (RS-x)."""

from typing import Any, ClassVar, Literal

from pairloom.base.checks import check_choice
from pairloom.estimators.card import Card
from pairloom.estimators.parameters import estimator
from pairloom.losses import LOSSES, LossName
from pairloom.memory import RSx
from pairloom.memory.base import By
from pairloom.models.learner import Learner
from pairloom.steps import Average
from pairloom.steps.penalties import l2_or_ball
from pairloom.steps.schedules import schedule_named
from pairloom.systems.base import LinearClassifier


@estimator
class OLP(LinearClassifier):
    r"""Rank one class above the other by pairs with a uniform sample of all rows so far.

    .. math::

        w \leftarrow \Pi_R\Bigl( w - \frac{\eta}{\sqrt t} \frac{1}{|B|} \sum_{j \in B,\, y_j \ne y_t}
        y_t\, \ell'(y_t \langle w, z_t - z_j\rangle) (z_t - z_j) \Bigr)

    The buffer B holds independent draws from the past (:class:`~pairloom.memory.RSx`). Draws of the row's own class
    form no pair, but count in |B|.

    Parameters
    ----------
    size : rows in the buffer; in theory about the square root of the length of the stream.
    buffer : "joint" (one for all rows, the paper) or "class" (one per class, so that every member is a partner).
    loss : "hinge", "square", "squared_hinge" or "logistic".
    eta : step size.
    schedule : "sqrt" (eta / sqrt(t), the paper), "constant", "poly" (eta t^-0.75) or "adagrad" (one step size per
        coordinate, see :class:`~pairloom.steps.AdaGrad`).
    alpha : L2 penalty, instead of the ball: each step shrinks w by 1 - eta alpha.
    radius : R, the largest norm of w; None for no bound.
    average : the iterate that predicts: "mean", "poly" or "last".

    Notes
    -----
    Cost: O(s D) time per row and (s + 2) D numbers for ``size`` s; (2 s + 2) D with two buffers. The cost of CSR rows
    is linear in the entries of their partners.

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

    size: int = 100
    buffer: By = "joint"
    loss: LossName = "hinge"
    eta: float = 0.1
    schedule: Literal["sqrt", "constant", "poly", "adagrad"] = "sqrt"
    alpha: float = 0.0
    radius: float | None = None
    average: Average = "mean"

    @property
    def card(self) -> Card:
        return Card("Kar et al. 2013", "s D", "s D", problem="general")

    def _make_model(self, n_classes: int, seed: int | None) -> Learner:
        check_choice("buffer", self.buffer, By)
        check_choice("loss", self.loss, LOSSES)
        return Learner(
            loss=LOSSES[self.loss],
            memory=RSx(self.size, by=self.buffer),
            step=schedule_named(self.schedule, self.eta),
            penalty=l2_or_ball(self.alpha, self.radius),
            average=self.average,
            **self._common_parts(n_classes, seed),
        )
