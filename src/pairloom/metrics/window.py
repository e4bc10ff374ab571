"""WindowAUC: AUC and other ranking metrics of the newest rows."""

from dataclasses import KW_ONLY, field
from typing import Any, Self

import numpy as np

from pairloom.base.checks import check_count, check_number
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.metrics import curve
from pairloom.metrics.auc import weighted_auc
from pairloom.metrics.inputs import check_metric_inputs, with_room
from pairloom.metrics.intervals import check_level, delong


@node
class WindowAUC:
    r"""AUC of the newest ``size`` rows: the weighted share of pairs in order; ties count half.

    .. math:: \sum_{i \in P, j \in N} w_i w_j \left([s_i > s_j] + \tfrac12 [s_i = s_j]\right)
        / \sum_{i \in P, j \in N} w_i w_j

    It is exact for finite and infinite scores. Rows of weight 0 are ignored. With rows of one class, the AUC is NaN.

    Parameters
    ----------
    size
        Number of rows in the window.
    pos_label
        The positive label; all others are negative. Default: True and 1 are positive, False, 0 and -1 negative, and
        other labels raise ValueError.

    The other fields are the state, a ring buffer.

    Cost: O(1) per row, O(n log n) per value; 17 bytes per row of the window.

    Reference: Brzezinski and Stefanowski, Prequential AUC: properties of the area under the ROC curve for data streams
    with concept drift, Knowledge and Information Systems 2017.

    >>> auc = WindowAUC(4).update([1, 1, 0, 0, 1], [0.1, 0.9, 0.9, 0.2, 0.5])
    >>> auc.value, auc.counts
    (0.625, (2, 2))
    >>> auc.update(True, 0.7, sample_weight=3.0).value
    0.5
    """

    size: int
    _: KW_ONLY
    pos_label: Any = None
    scores: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    weights: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    positive: Array = field(default_factory=lambda: np.zeros(0, bool), repr=False)
    rows: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        check_count("size", self.size)

    def update(self, y_true: Any, score: Any, sample_weight: Any = None) -> Self:
        """Add rows, one or many, and return self; an error changes nothing."""
        positive, scores, weights = check_metric_inputs(y_true, score, sample_weight, self.pos_label)
        n, end = len(scores), self.rows + len(scores)
        newest = slice(max(0, n - self.size), None)
        places = np.arange(self.rows, end)[newest] % self.size
        for name, values in (("scores", scores), ("weights", weights), ("positive", positive)):
            ring = with_room(getattr(self, name), end, self.size)
            ring[places] = values[newest]
            setattr(self, name, ring)
        self.rows = end
        return self

    @property
    def value(self) -> float:
        """The AUC; NaN with one class."""
        scores, positive, weights = self._window()
        return float(weighted_auc(scores[:, None], positive, weights)[0]) if self._both() else np.nan

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of positive and of negative rows in the window."""
        positive = self._window()[1]
        n = int(positive.sum())
        return n, len(positive) - n

    def partial(self, max_fpr: float) -> float:
        """Return the partial AUC up to a false positive rate of ``max_fpr``: 0.5 for chance, 1 at best."""
        check_number("max_fpr", max_fpr, 0.0, 1.0, open_low=True)
        return curve.partial_auc(*self._window(), max_fpr) if self._both() else np.nan

    @property
    def average_precision(self) -> float:
        """Mean precision at the scores of the positives; NaN with one class."""
        return curve.average_precision(*self._window()) if self._both() else np.nan

    def precision_at(self, k: int) -> float:
        """Return the weighted share of positives among the k rows with the highest scores; NaN without rows.

        Rows that tie for the last places share them equally.
        """
        check_count("k", k)
        return curve.precision_at(*self._window(), k) if self.rows else np.nan

    def top(self, share: float) -> tuple[float, float]:
        """Return precision and recall of the top ``share`` of the rows; ties as in ``precision_at``.

        The last row may count as a fraction. NaN without rows; the recall is also NaN without positives.
        """
        check_number("share", share, 0.0, 1.0, open_low=True)
        window = self._window()
        return curve.top(*window, share * len(window[0])) if self.rows else (np.nan, np.nan)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return DeLong's confidence interval of the AUC (:func:`delong`); NaN with one class."""
        check_level(level)
        return delong(*self._window(), level)

    def _window(self) -> tuple[Array, Array, Array]:
        """Return scores, which are positive, and weights."""
        return self.scores[: self.rows], self.positive[: self.rows], self.weights[: self.rows]

    def _both(self) -> bool:
        return min(self.counts) > 0
