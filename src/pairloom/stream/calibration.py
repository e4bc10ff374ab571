"""From scores to log-odds: pairwise scores have no natural zero."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from pairloom.base.batch import Scored
from pairloom.base.clock import next_calibration, next_race_calibration
from pairloom.base.tree import OPTIONAL, node
from pairloom.base.typing import Array
from pairloom.models.base import Model
from pairloom.stream.observers import RECENT, RecentScores
from pairloom.stream.state import StreamState

FLATTEST = 1e-3
"""Least slope per spread of the scores: a score that predicts nothing still keeps its order."""

CUT_OFF = 5.0
"""Scores further from the median than this, in widths of the middle half, count as this far."""

SAME = 1e-9
"""Scores that differ by less, relative to their size, are equal but for rounding."""

LEAST = 1e-100
"""So are scores that differ by less than this: the slope that tells them apart may be no number."""

STEEPEST = 1e6
"""A last fit beyond this belongs to other scores."""

NEWTON_STEPS = 50
HALVINGS = [0.5**k for k in range(12)]


@node
class Fit:
    """a and b of each target: a s + b is the log-odds of its class. ``row``: at which they were fitted out of turn."""

    a: Array
    b: Array
    row: int | None = field(default=None, metadata=OPTIONAL)

    def fit(self, scores: Array, labels: Array, weights: Array, *, again: bool) -> None:
        """Fit them to scores (rows, targets); ``again``: from where they are."""
        targets = [1] if len(self.a) == 1 else range(len(self.a))
        for k, target in enumerate(targets):
            start = (float(self.a[k]), float(self.b[k])) if again else None
            self.a[k], self.b[k] = platt(scores[:, k], labels == target, weights, start)


@dataclass(frozen=True)
class Calibration:
    """Fits log-odds to the newest scores of classes, at rows that are an eighth of the stream so far apart.

    And whenever a model gives rows other scores than they came with: what was fitted to those says nothing then.
    ``of_race``: only at those of them at which a race looks at scores.
    """

    name: ClassVar[str] = "calibration"
    on_arrival: ClassVar[bool] = False

    of_race: bool = False

    def init(self, model: Model) -> Fit:
        return Fit(np.ones(model.n_vectors), np.zeros(model.n_vectors))

    def see(self, own: Fit, scored: Scored) -> None:
        """The newest scores are kept anyway; if they were given anew, the log-odds are those of these."""
        if scored.first is None:
            return
        n = len(scored.labels)
        # In the order of the ring, so that a fit in its turn has the same bits.
        order = np.argsort(np.arange(scored.end - n, scored.end) % RECENT)
        order = order[scored.weights[order] > 0]
        own.fit(scored.scores[order], scored.labels[order], scored.weights[order], again=scored.end > 1)
        own.row = scored.end

    def next_row(self, t: int) -> int:
        return next_race_calibration(t) if self.of_race else next_calibration(t)

    def tick(self, own: Fit, state: StreamState, model: Model) -> None:
        if own.row != state.t:
            own.fit(*state.observed[RecentScores.name].taught(), again=state.t > 1)


# A trial step may overflow: then it is no better, and a shorter one is tried.
@np.errstate(over="ignore", invalid="ignore")
def platt(
    scores: Array, positive: Array, weight: Array, start: tuple[float, float] | None = None
) -> tuple[float, float]:
    """(a, b), a > 0, such that a s + b is the log-odds of a positive.

    Maximum likelihood with Platt's smoothed targets, (N+ + 1) / (N+ + 2) and 1 / (N- + 2), so that separable scores and
    single-class data give finite numbers. Scores are first cut off far outside the middle half of them: one wild
    score among thousands must not flatten the slope for all. ``start``, the last fit, saves steps to the next.

    Reference: Lin, Lin and Weng, A note on Platt's probabilistic outputs for support vector machines, 2007.

    >>> platt(np.array([0.0, 0.0]), np.array([False, True]), np.ones(2))
    (1.0, 0.0)
    """
    if len(scores) == 0:
        return 1.0, 0.0
    n_pos = float(weight @ positive)
    n_neg = float(weight @ ~positive)
    target = np.where(positive, (n_pos + 1.0) / (n_pos + 2.0), 1.0 / (n_neg + 2.0))
    # Not from the share of positives: beside a very heavy row it is 1 to the last digit, and 1 less it is 0.
    against = np.where(positive, 1.0 / (n_pos + 2.0), (n_neg + 1.0) / (n_neg + 2.0))
    prior = float(np.log(weight @ target) - np.log(weight @ against))
    low, center, high = np.quantile(scores, [0.25, 0.5, 0.75])
    spread = float(high - low) or float(np.ptp(scores))
    if not max(SAME * abs(center), LEAST) < spread < np.inf:
        return 1.0, prior - float(center) if np.isfinite(center) else prior
    x = np.clip((scores - center) / spread, -CUT_OFF, CUT_OFF)
    first = _better_start(x, target, weight, prior, start, float(center), spread)
    a, b = _newton(x, target, weight, *first, slope_is_free=True)
    if a < FLATTEST:
        a, b = _newton(x, target, weight, FLATTEST, prior, slope_is_free=False)
    return a / spread, b - a * float(center) / spread


def _better_start(
    x: Array,
    target: Array,
    weight: Array,
    prior: float,
    start: tuple[float, float] | None,
    center: float,
    spread: float,
) -> tuple[float, float]:
    """The last fit, on the scale of x, if it suits these scores better than no slope at all."""
    if start is not None:
        a, b = start[0] * spread, start[1] + start[0] * center
        if (
            abs(a) + abs(b) < STEEPEST
            and _cross_entropy(a * x + b, target, weight)[0]
            < (_cross_entropy(np.full(len(x), prior), target, weight)[0])
        ):
            return a, b
    return 0.0, prior


def _newton(x: Array, target: Array, weight: Array, a: float, b: float, *, slope_is_free: bool) -> tuple[float, float]:
    """Minimise the cross-entropy of sigmoid(a x + b) by Newton's method with halved steps."""
    value, p = _cross_entropy(a * x + b, target, weight)
    for _ in range(NEWTON_STEPS):
        gap, curvature = weight * (p - target), weight * p * (1.0 - p)
        bent = curvature * x
        g_a, g_b = float(gap @ x) * slope_is_free, float(gap.sum())
        h_aa, h_ab, h_bb = float(bent @ x), float(bent.sum()) * slope_is_free, float(curvature.sum())
        det = h_aa * h_bb - h_ab * h_ab
        if not det > 0:
            break
        d_a, d_b = (h_bb * g_a - h_ab * g_b) / det, (h_aa * g_b - h_ab * g_a) / det
        if d_a * g_a + d_b * g_b < 1e-12 * len(x):  # what a further step could gain
            break
        for length in HALVINGS:
            trial, p = _cross_entropy((a - length * d_a) * x + (b - length * d_b), target, weight)
            if trial < value:
                break
        else:
            break
        a, b, value = a - length * d_a, b - length * d_b, trial
    return a, b


def _cross_entropy(f: Array, target: Array, weight: Array) -> tuple[float, Array]:
    """The cross-entropy of sigmoid(f), and sigmoid(f); nothing overflows."""
    e = np.exp(-np.abs(f))
    value = np.maximum(f, 0.0) - target * f + np.log(1.0 + e)
    return float(weight @ value), np.where(f > 0, 1.0, e) / (1.0 + e)
