"""History of a stream: AUC, alerts and score quantiles over time, in a table of bounded size."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from pairloom.base.clock import next_race_calibration
from pairloom.base.merging import RowCounts
from pairloom.base.spec import Count
from pairloom.base.tree import copy, node
from pairloom.base.typing import Array
from pairloom.metrics.alerts import alert_threshold
from pairloom.metrics.intervals import mean_area
from pairloom.models.base import Model
from pairloom.stream.calibration import Calibration
from pairloom.stream.hooks import N_RECENT, ArrivalScores, Hook, RecentScores
from pairloom.stream.state import StreamState

POINTS = 256
"""Size of the table; when it is full, pairs of points are merged, and each point covers twice as many ticks."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

ALERT_RATE = 0.01
"""The share of rows above the alert threshold."""


@node
class Timeline:
    """A table of ``count`` points over the whole stream, each of ``each`` ticks; the newest has ``open`` ticks.

    Areas and scores of a point are means over its ticks, alerts are sums.

    ``rows`` (points,): the row of the last tick. ``areas`` (points, 3): the AUC of the newest rows, and its bounds.
    ``alerts`` (points, 3): alerts for class 1, alerts for class 0, and all rows. ``scores`` (points, 2, 5): quantiles
    of the rows of class 1, and of all others. ``cuts`` (2,): the current alert thresholds for either class.
    """

    rows: Annotated[Array, f"i8 {POINTS} 0:BIG"] = field(default_factory=lambda: np.zeros(POINTS, np.int64))
    areas: Annotated[Array, f"f8 {POINTS} 3"] = field(default_factory=lambda: np.full((POINTS, 3), np.nan))
    alerts: Annotated[Array, f"f8 {POINTS} 3 0:BIG"] = field(default_factory=lambda: np.zeros((POINTS, 3)))
    scores: Annotated[Array, f"f8 {POINTS} 2 {len(QUANTILES)}"] = field(
        default_factory=lambda: np.full((POINTS, 2, len(QUANTILES)), np.nan)
    )
    cuts: Annotated[Array, "f8 2"] = field(default_factory=lambda: np.full(2, np.nan))
    count: Count = 0
    each: Count = 1
    open: Count = 0

    @property
    def last(self) -> int:
        """The row of the last tick; 0 before the first."""
        return int(self.rows[self.count - 1]) if self.count else 0

    def check(self) -> None:
        """Check that points are in order and have the right number of ticks, and that the rest is empty."""
        ticks = 0 < self.open <= self.each if self.count else self.open == 0
        fits = self.count <= POINTS and self.each.bit_count() == 1 and ticks
        if not fits or (np.diff(self.rows[: self.count]) <= 0).any() or self.rows[self.count :].any():
            raise ValueError("must have points in the order of their rows")

    def add(self, row: int, areas: Array, alerts: Array, scores: Array) -> None:
        """Add a tick to the newest point, or to a new one if that is complete."""
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
        """Merge points two by two."""
        half = POINTS // 2
        self.rows[:half], self.rows[half:] = self.rows[1::2].copy(), 0
        self.alerts[:half], self.alerts[half:] = self.alerts[::2] + self.alerts[1::2], 0.0
        for table in (self.areas, self.scores):
            table[:half], table[half:] = _mean(table[::2], table[1::2], 1), np.nan
        self.count, self.each, self.open = half, 2 * self.each, 2 * self.each


@dataclass(frozen=True)
class StreamHistory(Hook):
    """Record the history of the stream, at the rows where a race is calibrated: see :class:`Timeline`.

    - AUC of the newest 4,096 rows, from their scores on arrival, with DeLong's 95 % interval: the estimator's ``auc_``;
    - the number of rows since the last tick whose score on arrival reached the threshold set at that tick for the top
      ``ALERT_RATE`` of the preceding 4,096 rows. Their share deviates from ``ALERT_RATE`` when the distribution of
      scores shifts, which is visible before labels are known;
    - quantiles 5, 25, 50, 75 and 95 % of the log-odds of these 4,096 rows, by class.

    The last two ignore sample weights. With more than two classes the score is that of class ``positive`` or, if that
    is None, the highest score of each row.

    Cost: O(n log n) for n = 4,096 rows at a tick, one to two milliseconds for two classes. Ticks are an eighth of the
    stream apart, at most 2,048 rows. 256 points, 35 KB, for any length of the stream.
    """

    name: ClassVar[str] = "history"
    requires: ClassVar[tuple[type[Hook], ...]] = (ArrivalScores, Calibration)
    optional: ClassVar[bool] = True

    positive: int | None = None

    def init(self, model: Model) -> Timeline:
        return Timeline()

    def next_row(self, t: int) -> int:
        return next_race_calibration(t)

    def tick(self, own: Timeline, state: StreamState, model: Model) -> None:
        recent, arrivals, fit = (state.observed[one.name] for one in (RecentScores, ArrivalScores, Calibration))
        rows = np.arange(max(0, recent.count - N_RECENT), recent.count)
        rows = rows[recent.weights[rows % N_RECENT] > 0]
        places, targets = rows % N_RECENT, model.pairs.targets
        scores, labels = arrivals.scores[places], recent.labels[places]
        areas = np.array(mean_area(scores, labels, recent.weights[places], targets))
        odds, positive = self.one_score(fit.a * scores + fit.b), self._positive(labels, targets)
        quantiles = np.stack([_quantiles(odds[side]) for side in (positive, ~positive)])
        own.add(state.t, areas, _alerts(self.one_score(scores[rows >= own.last]), own.cuts), quantiles)
        own.cuts[:] = _thresholds(self.one_score(recent.scores[places]))

    def merge(
        self, base: Timeline, parts: list[Timeline], rows: RowCounts, state: StreamState, model: Model
    ) -> Timeline:
        """Continue the history of the base with a tick for the merged scores; that of the parts is dropped."""
        own = copy(base)
        if state.t > own.last:
            self.tick(own, state, model)
        return own

    def check(self, own: Timeline, state: StreamState, model: Model) -> None:
        if own.rows.max() > state.t or max(0, own.count - 1) * own.each + own.open > state.t:
            raise ValueError(f"must be of {state.t} rows")

    def one_score(self, scores: Array) -> Array:
        """Return one score per row, from those for all targets."""
        if scores.shape[1] == 1:
            return scores[:, 0]
        return np.asarray(scores.max(axis=1) if self.positive is None else scores[:, self.positive])

    def _positive(self, labels: Array, targets: Array) -> Array:
        """Return which rows belong to the class of the score."""
        if len(targets) == 1:
            return np.asarray(labels == targets[0])
        return np.full(len(labels), True) if self.positive is None else np.asarray(labels == self.positive)


def _thresholds(scores: Array) -> Array:
    """Return the alert thresholds of the scores and of the negated scores.

    NaN if there is less than one such row, or if all scores are equal, before anything was learned.
    """
    if len(scores) * ALERT_RATE < 1.0 or scores.min() == scores.max():
        return np.full(2, np.nan)
    return np.array([alert_threshold(scores, ALERT_RATE), alert_threshold(-scores, ALERT_RATE)])


def _alerts(scores: Array, cuts: Array) -> Array:
    """Return the number of rows at or above either threshold, and of all rows; 0 without thresholds."""
    if np.isnan(cuts[0]):
        return np.zeros(3)
    return np.array([(scores >= cuts[0]).sum(), (-scores >= cuts[1]).sum(), len(scores)], dtype=float)


def _quantiles(values: Array) -> Array:
    return np.quantile(values, QUANTILES) if len(values) else np.full(len(QUANTILES), np.nan)


def _mean(old: Array, new: Array, n: int) -> Array:
    """Return the mean after adding ``new`` to ``old``, the mean of n numbers; NaN is ignored."""
    return np.where(np.isnan(old), new, np.where(np.isnan(new), old, old + (new - old) / (n + 1)))
