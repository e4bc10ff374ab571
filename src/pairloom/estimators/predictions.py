"""Predictions of a classifier: log-odds, probabilities, thresholds, and the AUC of the newest rows."""

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.metrics import roc_curve
from sklearn.utils.validation import check_is_fitted

from pairloom.base.typing import Array
from pairloom.estimators.base import StreamEstimator
from pairloom.estimators.class_weight import ClassWeight, without_class_weight
from pairloom.metrics.alerts import Threshold, choose_threshold, one_criterion, threshold_at
from pairloom.metrics.auc import mean_auc
from pairloom.metrics.intervals import Area, mean_area
from pairloom.stream.calibration import Calibration, Fit, platt
from pairloom.stream.drift import DriftWatch
from pairloom.stream.hooks import N_RECENT


class ClassifierPredictions(StreamEstimator):
    """Base class of classifiers: the methods that read the model without changing it.

    Attributes
    ----------
    classes_ : the labels known so far, in order.
    pos_label_ : the positive class: ``pos_label``, or ``classes_[1]``.
    coef_ : weights w of the score for ``classes_[1]``; with more than two classes, one row per class.
    auc_ : AUC of the newest 4,096 rows with a 95 % confidence interval; each row is scored before it is learned.
    changes_ : row numbers at which drift was detected.
    calibration_ : (a, b) of each score s, such that a s + b is the log-odds.
    balanced_threshold_ : threshold of ``decision_function`` with the best balanced accuracy on the newest rows.
    """

    _calibration: ClassVar[Calibration] = Calibration()

    pos_label: Any
    class_weight: ClassWeight

    def score_one(self, x: Any) -> float:
        """Return the log-odds of the positive class, ``pos_label_``, for one row; 0 before the first row is learned."""
        if not self._started:
            return 0.0
        return float(self._for_positive(self._decide(self._row(x)))[0])

    def score_many(self, X: Any) -> Array:
        """Return the log-odds of the positive class, ``pos_label_``, for each row.

        ``decision_function`` is the same for ``classes_[1]``, as in scikit-learn, regardless of ``pos_label``.
        """
        return self._for_positive(self._decide(self._rows_to_score(X)))

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """Return the probability of each class for one row; empty before the first row is learned."""
        if not self._started:
            return {}
        return dict(zip(self._labels.classes.tolist(), self._probabilities(self._row(x))[0].tolist(), strict=True))

    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of ``classes_[1]``; with more than two classes, of each class against the rest."""
        return self._decide(self._rows_to_score(X))

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, in the order of ``classes_``."""
        return self._probabilities(self._rows_to_score(X))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row."""
        decisions = self.decision_function(X)
        chosen = decisions.argmax(axis=1) if decisions.ndim == 2 else (decisions > 0).astype(int)
        return np.asarray(self.classes_[chosen])

    @property
    def classes_(self) -> Array:
        """The labels known so far, in order."""
        check_is_fitted(self)
        classes: Array = self._labels.classes
        return classes

    @property
    def pos_label_(self) -> Any:
        """The positive class, which ``score_many`` and ``score_one`` score: ``pos_label``, or ``classes_[1]``."""
        if self.pos_label is None and len(self.classes_) != 2:
            raise AttributeError(f"the classes are {self.classes_.tolist()}: set pos_label to name the positive one")
        return self.classes_[1].item() if self.pos_label is None else self.pos_label

    @property
    def coef_(self) -> Array:
        """Weights w of the score for ``classes_[1]``; with more than two classes, one row per class."""
        check_is_fitted(self)
        w = self._labels.sign * self.stream_.coef
        return np.asarray(w[0] if len(w) == 1 else w)

    @property
    def auc_(self) -> Area:
        """AUC of the newest 4,096 rows with a 95 % confidence interval; each row is scored before it is learned.

        NaN until there are rows of both classes. With more than two classes, the mean over one-vs-rest problems.
        """
        scores, codes, weight = self._arrivals()
        return mean_area(scores, codes, weight, self.stream_.model.pairs.targets)

    @property
    def changes_(self) -> list[int]:
        """Row numbers at which drift was detected, the newest 1,024; empty without ``drift``."""
        check_is_fitted(self)
        assert self.stream_.state is not None
        watched = self.stream_.state.observed.get(DriftWatch.name)
        return [] if watched is None else watched.alarms.tolist()

    @property
    def calibration_(self) -> list[tuple[float, float]]:
        """(a, b) of each score s, such that a s + b is the log-odds of the class that s ranks first."""
        check_is_fitted(self)
        fit = self._platt_fit
        return list(zip(fit.a.tolist(), fit.b.tolist(), strict=True))

    @property
    def _platt_fit(self) -> Fit:
        assert self.stream_.state is not None
        fit: Fit = self.stream_.state.observed[Calibration.name]
        return fit

    @property
    def _discordant_share(self) -> float:
        """Share of wrongly ordered pairs among the newest rows, each scored before it was learned."""
        scores, codes, weight = self._recent.view()
        area = float(mean_auc(scores[:, None, :], codes, weight, self.stream_.model.pairs.targets)[0])
        return 0.5 if np.isnan(area) else 1.0 - area

    def _decide(self, rows: Any) -> Array:
        if len(self._labels.classes) < 2:
            return np.zeros(rows.shape[0])
        return self._calibrate(self.stream_.score_rows(rows))

    def _calibrate(self, scores: Array) -> Array:
        """Return a s + b of each model; scores are (n,) or (n, models)."""
        a, b = self._platt_fit.a, self._platt_fit.b
        if len(a) > 1:
            return np.asarray(a * scores + b)
        return np.asarray(self._labels.sign * (a[0] * scores.reshape(len(scores)) + b[0]))

    def _for_positive(self, decisions: Array) -> Array:
        """Return the log-odds of the positive class, from those of ``decision_function``."""
        labels, positive = self._labels, self.pos_label
        if len(labels.classes) < 2 or (positive is None and decisions.ndim == 1):
            return decisions
        if positive is None:
            raise ValueError(
                "with more than two classes, score_one and score_many need a positive class: set pos_label"
            )
        if positive not in labels.codes:
            raise ValueError(f"pos_label={positive!r} is not one of the classes {labels.classes.tolist()}")
        if decisions.ndim == 1:
            return -decisions if positive == labels.classes[0] else decisions
        return np.asarray(decisions[:, labels.classes.tolist().index(positive)])

    def _probabilities(self, rows: Any) -> Array:
        if len(self._labels.classes) < 2:
            return np.ones((rows.shape[0], 1))
        decisions = self._decide(rows)
        if decisions.ndim == 1:
            p = expit(decisions)
            return np.column_stack([1.0 - p, p])
        # In log space: far from the data all sigmoids may underflow to 0.
        return np.asarray(softmax(log_expit(decisions), axis=1))

    def threshold(
        self,
        *,
        alert_rate: float | None = None,
        per_thousand: float | None = None,
        precision: float | None = None,
        cost_ratio: float | None = None,
    ) -> Threshold:
        r"""Choose a threshold of ``score_many`` for alerts, with estimates of its precision, recall and alert rate.

        Alert where ``score_many(X) >= threshold``. The estimates come from the newest 4,096 rows, each scored before it
        was learned. Exactly one parameter must be given. For two classes only.

        Parameters
        ----------
        alert_rate
            Largest share of rows with an alert, in (0, 1].
        per_thousand
            Largest number of alerts per 1,000 rows.
        precision
            Minimum precision: choose the lowest threshold that reaches it.
        cost_ratio
            Cost of a missed positive, in false alerts. With p the probability of a positive, an alert pays off where
            cost_ratio p > 1 - p: above the score at which a Platt fit a s + b to these rows is -ln cost_ratio.

        Returns
        -------
        threshold
            A float with the attributes ``precision``, ``recall`` and ``alert_rate``. Raises ValueError until rows of
            both classes have been scored, and if no threshold reaches the precision.

        Notes
        -----
        Cost: O(n log n) for n = 4,096 rows.

        Rows are weighted by ``sample_weight`` but not by ``class_weight``, since alerts are for rows as they arrive.
        The intervals do not account for drift or for a model that still improves quickly.

        For a cost ratio, ``choose_threshold`` minimises the cost on the given rows instead. On later rows the Platt fit
        costs less in 11 of 15 cases (``benchmarks/alerts.py``: five streams, four seeds each): on average by 2 % of the
        minimum cost for a ratio of 20 and 5 % for 100, mostly under drift; it costs 1 % more for a ratio of 5, and 2 %
        more with heavy tails, where log-odds are not linear in the score.

        As a scikit-learn classifier (``pos_label`` matters if the positive class is ``classes_[0]``)::

            FixedThresholdClassifier(
                FrozenEstimator(model), threshold=model.threshold(alert_rate=0.01), pos_label=model.pos_label_,
                response_method="decision_function",
            )

        Examples
        --------
        >>> from pairloom.systems import ExactAUC
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(3000, 3))
        >>> y = (X[:, 0] + rng.normal(size=3000) > 2.5).astype(int)
        >>> model = ExactAUC().fit(X, y)
        >>> cut = model.threshold(per_thousand=20)
        >>> cut.alert_rate.value, bool(cut.precision.low > 0.2), len(model.score_many(X[:9]) >= cut)
        (0.02, True, 9)
        """
        name, value = one_criterion(
            alert_rate=alert_rate, per_thousand=per_thousand, precision=precision, cost_ratio=cost_ratio
        )
        positive, scores, weights = self._scored_positives()
        if name != "cost_ratio":
            return choose_threshold(positive, scores, weights, **{name: value})
        a, b = platt(scores, positive, weights)
        return threshold_at((-np.log(value) - b) / a, positive, scores, weights)

    @property
    def balanced_threshold_(self) -> float:
        """Threshold of ``decision_function`` with the best balanced accuracy on the newest 4,096 rows.

        For ``FixedThresholdClassifier(model, threshold=..., response_method="decision_function")``; ``predict`` uses 0,
        the more probable class. 0 until rows of both classes have been scored. For two classes only.
        """
        scores, codes, weight = self._recent.with_scores()
        if scores.shape[1] > 1:
            raise AttributeError("balanced_threshold_ is for two classes")
        if len(np.unique(codes)) < 2:
            return 0.0
        positive = codes == self._labels.codes[self.classes_[1].item()]
        fpr, tpr, cuts = roc_curve(positive, self._calibrate(scores), sample_weight=weight)
        best = int(np.argmax(tpr - fpr))
        return float(cuts[best]) if best else 0.0

    def _scored_positives(self) -> tuple[Array, Array, Array]:
        """Return which of the newest rows are positive, their positive scores, and weights without class weights."""
        scores, codes, weights = self._arrivals()
        if scores.shape[1] > 1:
            raise ValueError(f"threshold is for two classes; this model has {len(self.classes_)}")
        has_score = weights > 0
        if len(np.unique(codes[has_score])) < 2:
            raise ValueError(
                f"threshold needs rows of both classes among the newest {N_RECENT:,} with a score; there are "
                f"{int(has_score.sum()):,}, all of one class"
            )
        # In time order, the ring buffer starts after its newest row.
        order = np.roll(np.arange(len(codes)), -(self._recent.count % len(codes)))
        scores, codes, weights, has_score = scores[order], codes[order], weights[order], has_score[order]
        own = without_class_weight(self.class_weight, self._class_counts, self._labels, codes, weights)
        positive = codes == self._labels.codes[self.pos_label_]
        return positive[has_score], self._for_positive(self._calibrate(scores[has_score])), own[has_score]


def opposite_pairs(counts: Array) -> int:
    """Return the number of pairs of different classes.

    >>> opposite_pairs(np.array([2.0, 3.0]))
    6
    """
    return int((counts.sum() ** 2 - counts @ counts) / 2)
