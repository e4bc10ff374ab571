"""Calibration: Platt scaling of scores to log-odds, since pairwise scores have no natural zero."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from pairloom.base.batch import Scored
from pairloom.base.clock import next_calibration, next_race_calibration
from pairloom.base.logistic import cross_entropy, fit_logistic
from pairloom.base.merging import RowCounts
from pairloom.base.spec import Count
from pairloom.base.tree import OPTIONAL, copy, node
from pairloom.base.typing import Array
from pairloom.models.base import Model
from pairloom.stream.hooks import Hook, RecentScores
from pairloom.stream.state import StreamState

MIN_SLOPE = 1e-3
"""Smallest slope per spread of the scores, so that their order never changes."""

MAX_DEVIATION = 5.0
"""Scores are clipped at this distance from the median, in interquartile ranges."""

REL_ROUNDING, ABS_ROUNDING = 1e-9, 1e-100
"""Scores with a smaller spread, relative to their size or absolutely, are constant up to rounding."""

MAX_START = 1e6
"""A previous fit beyond this is not used as a starting point."""

WINDOW_ROWS, WINDOW_CLASS_ROWS = 1024, 10
"""A window, in which scores are comparable, has the first number of rows, and the second number of either class."""


@node
class Fit:
    """Coefficients of each target: a s + b is the log-odds of its class. ``row``: the row of an unscheduled fit."""

    a: Annotated[Array, "f8 v 0:LATE"]
    b: Annotated[Array, "f8 v finite"]
    row: Count | None = field(default=None, metadata=OPTIONAL)

    def fit(self, scores: Array, labels: Array, weights: Array, *, again: bool) -> None:
        """Fit a and b to scores (rows, targets); ``again``: start from the previous fit."""
        targets = [1] if len(self.a) == 1 else range(len(self.a))
        for k, target in enumerate(targets):
            start = (float(self.a[k]), float(self.b[k])) if again else None
            positive = labels == target
            self.a[k], self.b[k] = platt(scores[:, k], positive, weights, start, windows_of(positive))


@dataclass(frozen=True)
class Calibration(Hook):
    """Fit log-odds to the newest scores, each time the stream has grown by an eighth.

    They are also fitted whenever a model replaces the scores of earlier rows. ``of_race``: fit only at rows at which a
    race is evaluated. Where the share of positives moves, the slope is that inside windows of 1,024 rows: between them
    a higher share of positives may coincide with lower scores, which would hide that the scores rank well.
    """

    name: ClassVar[str] = "calibration"

    of_race: bool = False

    def init(self, model: Model) -> Fit:
        return Fit(np.ones(model.n_vectors), np.zeros(model.n_vectors))

    def see(self, own: Fit, scored: Scored) -> None:
        """Fit to the scores if they replace those of earlier rows; new scores are kept by ``RecentScores``."""
        if scored.first is None:
            return
        there = scored.weights > 0
        own.fit(scored.scores[there], scored.labels[there], scored.weights[there], again=scored.end > 1)
        own.row = scored.end

    def next_row(self, t: int) -> int:
        return next_race_calibration(t) if self.of_race else next_calibration(t)

    def tick(self, own: Fit, state: StreamState, model: Model) -> None:
        if own.row != state.t:
            own.fit(*state.observed[RecentScores.name].in_order(), again=state.t > 1)

    def merge(self, base: Fit, parts: list[Fit], rows: RowCounts, state: StreamState, model: Model) -> Fit:
        """Fit to the merged scores."""
        own = copy(base)
        own.fit(*state.observed[RecentScores.name].in_order(), again=True)
        own.row = state.t
        return own

    def check(self, own: Fit, state: StreamState, model: Model) -> None:
        if (own.row or 0) > state.t:
            raise ValueError(f"must be fitted at one of {state.t} rows")


def platt(
    scores: Array, positive: Array, weight: Array, start: tuple[float, float] | None = None,
    windows: Array | None = None,
) -> tuple[float, float]:  # fmt: skip
    """Return (a, b), a > 0, such that a s + b is the log-odds of the positive class.

    Maximum likelihood with Platt's smoothed targets, (N+ + 1) / (N+ + 2) and 1 / (N- + 2), so that separable scores and
    single-class data give finite values. Scores are clipped far outside the interquartile range, so that a single
    outlier does not flatten the slope. ``start``: the previous fit, to save iterations. ``windows``: the first row of
    each window; a is then the slope of a model with an intercept for each, b the intercept for all rows.

    Reference: Lin, Lin and Weng, A note on Platt's probabilistic outputs for support vector machines, 2007.

    >>> platt(np.array([0.0, 0.0]), np.array([False, True]), np.ones(2))
    (1.0, 0.0)
    """
    if len(scores) == 0:
        return 1.0, 0.0
    n_pos = float(weight @ positive)
    n_neg = float(weight @ ~positive)
    target = np.where(positive, (n_pos + 1.0) / (n_pos + 2.0), 1.0 / (n_neg + 2.0))
    # Not 1 - target, which would round to 0 next to a very large weight.
    against = np.where(positive, 1.0 / (n_pos + 2.0), (n_neg + 1.0) / (n_neg + 2.0))
    prior = float(np.log(weight @ target) - np.log(weight @ against))
    low, center, high = quartiles(scores)
    spread = float(high - low) or float(np.ptp(scores))
    if not max(REL_ROUNDING * abs(center), ABS_ROUNDING) < spread < np.inf:
        return 1.0, prior - float(center) if np.isfinite(center) else prior
    x = np.clip((scores - center) / spread, -MAX_DEVIATION, MAX_DEVIATION)
    a, b = 0.0, prior
    if start is not None:  # use the previous fit, on the scale of x, if it is better than a slope of 0
        last_a, last_b = start[0] * spread, start[1] + start[0] * center
        better = cross_entropy(x, target, weight, last_a, last_b) < cross_entropy(x, target, weight, 0.0, prior)
        if better and abs(last_a) + abs(last_b) < MAX_START:
            a, b = last_a, last_b
    one = np.zeros(1, np.int64)
    a, b = fit_logistic(x, target, weight, one, a, b, True)
    if windows is not None and len(windows) > 1:
        within = fit_logistic(x, target, weight, windows, a, b, True)[0]
        a, b = fit_logistic(x, target, weight, one, max(within, MIN_SLOPE), b, False)
    elif a < MIN_SLOPE:
        a, b = fit_logistic(x, target, weight, one, MIN_SLOPE, prior, False)
    return a / spread, b - a * center / spread


def quartiles(scores: Array) -> tuple[float, float, float]:
    """Return ``np.quantile(scores, [0.25, 0.5, 0.75])``, bit for bit; for few scores in a fifth of the time.

    >>> quartiles(np.array([3.0, 1.0, 2.0, 5.0]))
    (1.75, 2.5, 3.5)
    """
    if scores.dtype != np.float64:
        low, center, high = np.quantile(scores, [0.25, 0.5, 0.75]).tolist()
        return low, center, high
    last = len(scores) - 1
    places = [share * last for share in (0.25, 0.5, 0.75)]
    below = [int(place) for place in places]
    ordered = np.partition(scores, [0, *below, *(min(k + 1, last) for k in below), last])
    if np.isnan(ordered[last]):
        return np.nan, np.nan, np.nan
    found = []
    for place, k in zip(places, below, strict=True):
        a, b, t = float(ordered[k]), float(ordered[min(k + 1, last)]), place - k if last else 1.0
        found.append(b - (b - a) * (1.0 - t) if t >= 0.5 else a + (b - a) * t)
    return found[0], found[1], found[2]


def windows_of(positive: Array) -> Array:
    """Return the first row of each window; rows are in order, and the newest window may be larger.

    >>> windows_of(np.arange(3000) % 20 == 0), windows_of(np.arange(3000) % 200 == 0)
    (array([   0, 1024]), array([0]))
    """
    starts, n = [0], len(positive)
    count = np.append(0, np.cumsum(positive))
    for start in range(WINDOW_ROWS, n - WINDOW_ROWS + 1, WINDOW_ROWS):
        before, after = count[start] - count[starts[-1]], count[n] - count[start]
        rare = min(before, after, start - starts[-1] - before, n - start - after)
        if rare >= WINDOW_CLASS_ROWS:
            starts.append(start)
    return np.array(starts)
