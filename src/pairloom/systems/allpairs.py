"""AllPairs: each row is paired with all previous rows."""

from typing import Any, ClassVar, Literal

from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.estimators.card import Card
from pairloom.estimators.parameters import estimator
from pairloom.losses import LOSSES, LossName
from pairloom.memory import WholeHistory
from pairloom.models.base import Model
from pairloom.models.learner import Learner
from pairloom.models.moments_rule import MAX_BYTES, Moments, PairSet
from pairloom.models.rule import RuleLearner
from pairloom.pairs import ClassDifference
from pairloom.steps import L2, Average, Polynomial
from pairloom.systems.base import LinearClassifier

Forms = Literal["auto", "moments", "history"]


@estimator
class AllPairs(LinearClassifier):
    r"""Online pairwise least squares: each step uses the pairs of a row with all previous rows.

    .. math::

        w \leftarrow w - \frac{\gamma_t}{t - 1} \sum_{i < t} \big(\langle w, z_t - z_i \rangle - (t_t - t_i)\big)
        (z_t - z_i), \qquad \gamma_t = \eta\, t^{-\theta}

    The targets t_i are +1 and -1, so all scores of a class should be equal. For the square loss the sum follows from
    the mean and the covariance of the rows so far ("moments"); other losses need the rows themselves ("history").

    Parameters
    ----------
    pairs : "all" (the paper) or "opposite": pairs of different classes, whose scores should differ by 1 (AUC). Both
        divide the sum by the number of all rows.
    loss : "square" (the paper, with its factor 1/2); with opposite pairs also "hinge", "squared_hinge" or "logistic".
    form : "moments" (square loss only), "history", or "auto" (moments if possible).
    eta : step size, 1 / mu in the paper, where mu is the largest squared distance of two rows.
    power : theta; the paper's theory requires 1/2 < theta < 1.
    average : the iterate that predicts: "last" (the paper), "mean" or "poly".
    max_rows : largest number of rows in the history; more rows raise ValueError.
    max_bytes : largest size of the moments; more features raise ValueError.

    Notes
    -----
    Cost: with moments, 3 D^2 / 2 multiply-adds per row and D^2 / 2 numbers ("opposite": D^2), K times as much for K > 2
    classes; CSR rows are converted to dense, a block of rows at a time. With the history, 2 t D multiply-adds for row t
    and each model, and ``max_rows`` D numbers.

    References
    ----------
    Boissier, Lyu, Ying and Zhou, Fast Convergence of Online Pairwise Learning Algorithms, AISTATS 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AllPairs(eta=0.05, scale="minmax").fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "-AUC": {"pairs": "opposite"}}

    pairs: PairSet = "all"
    loss: LossName = "square"
    form: Forms = "auto"
    eta: float = 0.1
    power: float = 0.6
    average: Average = "last"
    max_rows: int = 10_000
    max_bytes: int = MAX_BYTES

    @property
    def card(self) -> Card:
        if self._keeps_rows:
            return Card("Boissier et al. 2016", "t D", "t D", "general", variance_reduction="exact", memory="grows")
        return Card("Boissier et al. 2016", "D^2", "D^2", "general", variance_reduction="exact")

    @property
    def _keeps_rows(self) -> bool:
        return self.form == "history" or (self.form == "auto" and self.loss != "square")

    def _make_model(self, n_classes: int, seed: int | None) -> Model:
        check_choice("pairs", self.pairs, PairSet)
        check_choice("loss", self.loss, LOSSES)
        check_choice("form", self.form, Forms)
        check_number("eta", self.eta, 0, open_low=True)
        check_count("max_rows", self.max_rows)
        check_count("max_bytes", self.max_bytes)
        if self.loss != "square" and (self.pairs == "all" or self.form == "moments"):
            raise ValueError(
                f"pairs='all' and form='moments' need loss='square': with loss={self.loss!r} use pairs='opposite' and "
                "form='history'"
            )
        # Square() has no factor 1/2.
        half = 0.5 if self._keeps_rows and self.loss == "square" else 1.0
        parts = self._common_parts(n_classes, seed) | {
            "step": Polynomial(half * self.eta, self.power),
            "penalty": L2(),
            "average": self.average,
        }
        if self.pairs == "all":
            parts["pairs"] = ClassDifference(n_classes)
        if self._keeps_rows:
            return Learner(loss=LOSSES[self.loss], memory=WholeHistory(self.max_rows, by="joint"), **parts)
        return RuleLearner(rule=Moments(self.pairs, "history", self.max_bytes), **parts)
