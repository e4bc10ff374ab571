"""Where a classifier of two classes is cut, by the scores that its newest rows had when they came."""

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.metrics import roc_curve

from pairloom.base.typing import Array
from pairloom.estimators.base import StreamEstimator
from pairloom.estimators.class_weight import ClassWeight, unweighed
from pairloom.metrics.alerts import Threshold, choose_threshold, one_aim, threshold_at
from pairloom.stream.calibration import platt
from pairloom.stream.observers import RECENT


class ThresholdClassifier(StreamEstimator):
    """What a classifier says of thresholds."""

    class_weight: ClassWeight = None

    @property
    @abstractmethod
    def classes_(self) -> Array:
        """The labels known so far, in order."""

    @property
    @abstractmethod
    def pos_label_(self) -> Any:
        """The positive class."""

    @abstractmethod
    def _calibrate(self, scores: Array) -> Array:
        """Log-odds of ``classes_[1]``."""

    @abstractmethod
    def _for_positive(self, decisions: Array) -> Array:
        """What they say for the positive class."""

    def threshold(
        self,
        *,
        alert_rate: float | None = None,
        per_thousand: float | None = None,
        precision: float | None = None,
        cost_ratio: float | None = None,
    ) -> Threshold:
        r"""Where to cut ``score_many`` for alerts: a float, with the precision, recall and rate of alerts it has.

        By the newest 4,096 rows, each with the score that it had when it came, on the scale of log-odds that the model
        has now; alert where ``score_many(X) >= threshold``. In scikit-learn, of which ``pos_label`` matters if the
        positive class is ``classes_[0]`` (``decision_function`` then speaks for the other one)::

            FixedThresholdClassifier(
                FrozenEstimator(model), threshold=model.threshold(alert_rate=0.01), pos_label=model.pos_label_,
                response_method="decision_function",
            )

        Parameters
        ----------
        alert_rate, per_thousand, precision
            As in :func:`~pairloom.metrics.choose_threshold`: alerts on at most this share of the rows, or on so many
            of 1,000; or as many alerts as have this precision.
        cost_ratio
            What a missed positive costs, in false alerts. With p the probability of a positive, an alert costs less
            where cost_ratio p > 1 - p: the threshold is where a Platt fit a s + b of these rows has the log-odds
            -ln cost_ratio.

        Exactly one of them is given. ValueError for anything else, until rows of both classes have been scored, and if
        no threshold has the precision. Two classes only.

        A cost ratio could also be met by the threshold with the least cost on the rows themselves, which is what
        ``choose_threshold`` does for scores of which nothing is known. On later rows it costs more where positives are
        few. ``benchmarks/alerts.py`` compares the two on five streams, four seeds each, by the cost on later rows over
        the least there is. The fit costs less in 11 of 15 cases: on average by 2 % of the least cost for a ratio of 20
        and 5 % for 100 (most of it under drift), and 1 % more for 5; on heavy tails, where log-odds are no straight
        line, 2 % more for each.

        Rows count by ``sample_weight``, without ``class_weight``: alerts are for rows as they come. Scores of a model
        that still learns fast are not those of later rows; the intervals do not know of that, nor of drift.

        Cost: O(n log n) for n = 4,096 rows.

        >>> from pairloom.systems import ExactAUC
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(3000, 3))
        >>> y = (X[:, 0] + rng.normal(size=3000) > 2.5).astype(int)
        >>> model = ExactAUC().fit(X, y)
        >>> cut = model.threshold(per_thousand=20)
        >>> cut.alert_rate.value, bool(cut.precision.low > 0.2), len(model.score_many(X[:9]) >= cut)
        (0.02, True, 9)
        """
        name, value = one_aim(
            alert_rate=alert_rate, per_thousand=per_thousand, precision=precision, cost_ratio=cost_ratio
        )
        positive, scores, weights = self._scored_positives()
        if name != "cost_ratio":
            return choose_threshold(positive, scores, weights, **{name: value})
        a, b = platt(scores, positive, weights)
        return threshold_at((-np.log(value) - b) / a, positive, scores, weights)

    @property
    def balanced_threshold_(self) -> float:
        """The cut of ``decision_function`` with the best balanced accuracy on the last 4,096 test-then-train scores.

        For ``FixedThresholdClassifier(model, threshold=..., response_method="decision_function")``; ``predict`` cuts
        at 0, the more probable class. 0 until both classes have been scored. Two classes only.
        """
        scores, codes, weight = self._recent.taught()
        if scores.shape[1] > 1:
            raise AttributeError("balanced_threshold_ is for two classes")
        if len(np.unique(codes)) < 2:
            return 0.0
        positive = codes == self._labels.codes[self.classes_[1].item()]
        fpr, tpr, cuts = roc_curve(positive, self._calibrate(scores), sample_weight=weight)
        best = int(np.argmax(tpr - fpr))
        return float(cuts[best]) if best else 0.0

    def _scored_positives(self) -> tuple[Array, Array, Array]:
        """Which of the newest rows are positive, their scores for the positive class, and their own weights."""
        scores, codes, weights = self._arrivals()
        if scores.shape[1] > 1:
            raise ValueError(f"threshold is for two classes; this model has {len(self.classes_)}")
        there = weights > 0
        if len(np.unique(codes[there])) < 2:
            raise ValueError(
                f"threshold needs rows of both classes among the newest {RECENT:,} that have a score; there are "
                f"{int(there.sum()):,}, and none of another class"
            )
        # A ring: in the order of time it starts after its newest row.
        order = np.roll(np.arange(len(codes)), -(self._recent.count % len(codes)))
        scores, codes, weights, there = scores[order], codes[order], weights[order], there[order]
        own = unweighed(self.class_weight, self._class_counts, self._labels, codes, weights)
        positive = codes == self._labels.codes[self.pos_label_]
        return positive[there], self._for_positive(self._calibrate(scores[there])), own[there]
