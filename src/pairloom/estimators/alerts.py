"""Alerts of a classifier: thresholds of its scores, and its alert budget."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pairloom.base.typing import Array
from pairloom.estimators.class_weight import without_class_weight
from pairloom.estimators.predictions import ClassifierPredictions
from pairloom.metrics.alerts import Threshold, choose_threshold, one_criterion, threshold_at
from pairloom.stream.alerts import AlertBudget
from pairloom.stream.calibration import platt
from pairloom.stream.drift import DriftWatch
from pairloom.stream.hooks import N_RECENT

MIN_ROWS = 256
"""Newest rows that thresholds are chosen on, even if fewer have been seen since a change."""


class ClassifierAlerts(ClassifierPredictions):
    """Base class of classifiers: thresholds and budgets of alerts.

    Attributes
    ----------
    balanced_threshold_ : threshold of ``decision_function`` with the best balanced accuracy on the newest rows.
    """

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
        was learned; after drift, from the rows since then (at least 256). The scores of a race are those of its current
        mixture. Exactly one parameter must be given. For two classes only. :meth:`alert_budget` keeps the rate of
        alerts on a stream that changes.

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
        The intervals do not account for drift that has not been detected, or for a model that still changes quickly.

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

    def alert_budget(self, rate: float | None = None, *, per_hour: float | None = None) -> AlertBudget:
        """Return the alert budget of this model, which decides on the rows of a stream and keeps the rate of alerts.

        The first call creates it, at the level of ``threshold(alert_rate=rate)``, and so does a call for another rate;
        other calls return the same object, which continues. It is part of the model: saved, loaded and copied with it.
        Only calling the budget changes it. For two classes only.

        Parameters
        ----------
        rate, per_hour
            As in :class:`~pairloom.stream.AlertBudget`; exactly one must be given. With ``per_hour``, the first 500
            rows raise no alert.

        Examples
        --------
        >>> from pairloom.systems import ExactAUC
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(9000, 3))
        >>> y = (X[:, 0] + rng.normal(size=9000) > 2.5).astype(int)
        >>> model, alerts = ExactAUC().fit(X[:3000], y[:3000]), 0
        >>> for start in range(3000, 9000, 500):
        ...     rows = slice(start, start + 500)
        ...     alerts += model.alert_budget(rate=0.02)(model.score_many(X[rows])).sum()
        ...     model = model.partial_fit(X[rows], y[rows])
        >>> int(alerts), model.alert_budget(rate=0.02).n_seen
        (117, 6000)
        """
        check_is_fitted(self)
        made = AlertBudget(rate, per_hour=per_hour)
        if len(self.classes_) > 2:
            raise ValueError(f"alert_budget is for two classes; this model has {len(self.classes_)}")
        own = self._alerts
        if own is None or (own.rate, own.per_hour) != (made.rate, made.per_hour):
            scores = self._newest_scores()[1]
            if made.rate is not None and len(self.classes_) == 2 and len(scores):
                made.start(scores)
            self._alerts = own = made
        return own

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
        from sklearn.metrics import roc_curve  # imported here: it is slow to import

        fpr, tpr, cuts = roc_curve(positive, self._calibrate(scores), sample_weight=weight)
        best = int(np.argmax(tpr - fpr))
        return float(cuts[best]) if best else 0.0

    def _scored_positives(self) -> tuple[Array, Array, Array]:
        """Return which of the newest rows are positive, their positive scores, and weights without class weights."""
        if len(self.classes_) > 2:
            raise ValueError(f"threshold is for two classes; this model has {len(self.classes_)}")
        codes, scores, weights = self._newest_scores()
        if len(np.unique(codes)) < 2:
            raise ValueError(
                f"threshold needs rows of both classes among the newest {N_RECENT:,} with a score; there are "
                f"{len(codes):,}, all of one class"
            )
        return codes == self._labels.codes[self.pos_label_], scores, weights

    def _newest_scores(self) -> tuple[Array, Array, Array]:
        """Return labels, positive scores and own weights of the newest rows with a score, in order.

        The scores are those of the current mixture, before the row was learned. Rows before a change are left out.
        """
        recent, state = self._recent, self.stream_.state
        assert state is not None
        watched = state.observed.get(DriftWatch.name)
        since = 0 if watched is None else watched.since
        n = min(recent.count, N_RECENT, max(MIN_ROWS, recent.count - since))
        newest = np.arange(recent.count - n, recent.count) % N_RECENT
        codes, weights = recent.labels[newest], recent.weights[newest]
        scored = weights > 0
        own = without_class_weight(self.class_weight, self._class_counts, self._labels, codes, weights)
        scores = self._for_positive(self._calibrate(recent.scores[newest][scored]))
        return codes[scored], scores, own[scored]
