"""How a stream went, from its first row to its newest, in a table of bounded size."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from pairloom.base.batch import Scored
from pairloom.base.clock import next_race_calibration
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.metrics.alerts import budget_cut
from pairloom.metrics.area import mean_area
from pairloom.models.base import Model
from pairloom.stream.calibration import Calibration
from pairloom.stream.observers import RECENT, ArrivalScores, RecentScores
from pairloom.stream.state import StreamState

POINTS = 256
"""The most points of a table; at this many, two become one, and each is of twice as many ticks from then on."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

ALERT_RATE = 0.01
"""The share of the rows on which a threshold is to alert."""


@node
class Timeline:
    """Points over the whole stream, the first ``count`` of which are there; each sums up ``each`` ticks of an observer.

    The newest has ``open`` so far. Areas and scores of a point are means over its ticks, alerts are sums.

    ``rows`` (points,): the row of the last tick. ``areas`` (points, 3): the area under the curve of the newest rows,
    and its bounds. ``alerts`` (points, 3): alerts on the class of code 1, alerts on that of code 0, and the rows that
    were looked at. ``scores`` (points, 2, 5): quantiles of the rows of the class of code 1, and of all others.
    ``cuts`` (2,): the thresholds for alerts on the rows to come, for either class.
    """

    rows: Array = field(default_factory=lambda: np.zeros(POINTS, np.int64))
    areas: Array = field(default_factory=lambda: np.full((POINTS, 3), np.nan))
    alerts: Array = field(default_factory=lambda: np.zeros((POINTS, 3)))
    scores: Array = field(default_factory=lambda: np.full((POINTS, 2, len(QUANTILES)), np.nan))
    cuts: Array = field(default_factory=lambda: np.full(2, np.nan))
    count: int = 0
    each: int = 1
    open: int = 0

    @property
    def last(self) -> int:
        """The row of the last tick; 0 before the first."""
        return int(self.rows[self.count - 1]) if self.count else 0

    def add(self, row: int, areas: Array, alerts: Array, scores: Array) -> None:
        """Write down a tick: into the newest point, or into a new one if that has all of its ticks."""
        if self.count == 0 or self.open == self.each:
            if self.count == POINTS:
                self._halve()
            self.count, self.open = self.count + 1, 0
        at = self.count - 1
        self.rows[at] = row
        self.areas[at] = _mean(self.areas[at], areas, self.open)
        self.scores[at] = _mean(self.scores[at], scores, self.open)
        self.alerts[at] += alerts
        self.open += 1

    def _halve(self) -> None:
        """Make one point of every two."""
        half = POINTS // 2
        self.rows[:half], self.rows[half:] = self.rows[1::2].copy(), 0
        self.alerts[:half], self.alerts[half:] = self.alerts[::2] + self.alerts[1::2], 0.0
        for table in (self.areas, self.scores):
            table[:half], table[half:] = _mean(table[::2], table[1::2], 1), np.nan
        self.count, self.each, self.open = half, 2 * self.each, 2 * self.each


@dataclass(frozen=True)
class StreamHistory:
    """Writes down, at the rows where a race fits log-odds anew, how the stream does: see :class:`Timeline`.

    - the area under the curve of the newest 4,096 rows by the scores that they had when they came, with DeLong's 95 %
      interval: ``auc_`` of the estimator at that row;
    - how many of the rows since the last tick had, when they came, a score at or above the threshold that an alert
      budget of ``ALERT_RATE`` set there, from the 4,096 rows before it as the mixture of then scores them. While the
      scores are those of the rows before, this is the budget; what moves them shows here, before any label can tell;
    - quantiles 5, 25, 50, 75 and 95 % of the log-odds of these 4,096 rows, by class.

    Rows count alike in the last two, whatever their weights. With more than two classes the score is that of the class
    of code ``positive`` or, if that is None, the highest one of each row, for all rows alike.

    It reads what ArrivalScores and Calibration keep, and comes after them among the observers of a stream.

    Cost: O(n log n) for n = 4,096 rows at a tick, one to two milliseconds for two classes. Ticks are an eighth of the
    stream apart, at most 2,048 rows. 256 points, 35 KB, whatever the length of the stream.
    """

    name: ClassVar[str] = "history"
    on_arrival: ClassVar[bool] = False

    positive: int | None = None

    def init(self, model: Model) -> Timeline:
        return Timeline()

    def see(self, own: Timeline, scored: Scored) -> None:
        """The newest scores are kept anyway."""

    def next_row(self, t: int) -> int:
        return next_race_calibration(t)

    def tick(self, own: Timeline, state: StreamState, model: Model) -> None:
        recent, arrivals, fit = (state.observed[one.name] for one in (RecentScores, ArrivalScores, Calibration))
        rows = np.arange(max(0, recent.count - RECENT), recent.count)
        rows = rows[recent.weights[rows % RECENT] > 0]
        places, targets = rows % RECENT, model.pairs.targets
        scores, labels = arrivals.scores[places], recent.labels[places]
        areas = np.array(mean_area(scores, labels, recent.weights[places], targets))
        odds, spoken_for = self._said(fit.a * scores + fit.b), self._spoken_for(labels, targets)
        quantiles = np.stack([_quantiles(odds[side]) for side in (spoken_for, ~spoken_for)])
        own.add(state.t, areas, _alerts(self._said(scores[rows >= own.last]), own.cuts), quantiles)
        own.cuts[:] = _cuts(self._said(recent.scores[places]))

    def _said(self, scores: Array) -> Array:
        """The one score of each row that is written down, of those for all targets."""
        if scores.shape[1] == 1:
            return scores[:, 0]
        return np.asarray(scores.max(axis=1) if self.positive is None else scores[:, self.positive])

    def _spoken_for(self, labels: Array, targets: Array) -> Array:
        """Which rows are of the class for which it speaks."""
        if len(targets) == 1:
            return np.asarray(labels == targets[0])
        return np.full(len(labels), True) if self.positive is None else np.asarray(labels == self.positive)


def _cuts(scores: Array) -> Array:
    """Thresholds for alerts on the highest scores and on the lowest, these with the other sign.

    NaN while the budget is less than one row, and while all scores are the same: nothing has been learned.
    """
    if len(scores) * ALERT_RATE < 1.0 or scores.min() == scores.max():
        return np.full(2, np.nan)
    return np.array([budget_cut(scores, ALERT_RATE), budget_cut(-scores, ALERT_RATE)])


def _alerts(scores: Array, cuts: Array) -> Array:
    """Rows at or above either threshold, and all rows; no rows while there are no thresholds."""
    if np.isnan(cuts[0]):
        return np.zeros(3)
    return np.array([(scores >= cuts[0]).sum(), (-scores >= cuts[1]).sum(), len(scores)], dtype=float)


def _quantiles(values: Array) -> Array:
    return np.quantile(values, QUANTILES) if len(values) else np.full(len(QUANTILES), np.nan)


def _mean(old: Array, new: Array, n: int) -> Array:
    """The mean of ``old``, which is one of n numbers, and a new one; NaN is none."""
    return np.where(np.isnan(old), new, np.where(np.isnan(new), old, old + (new - old) / (n + 1)))
