"""Alert thresholds: chosen by alert rate, precision or cost, and precision at k."""

from typing import Any

import numpy as np

from pairloom.base.checks import check_count, check_number
from pairloom.base.typing import Array
from pairloom.metrics.curve import mass_above, precision_at
from pairloom.metrics.inputs import check_metric_inputs
from pairloom.metrics.intervals import Estimate, wilson

ROUNDING = 1e-12
"""Relative tolerance when sums of weights are compared."""

CRITERIA = {
    "alert_rate": (0.0, 1.0),
    "per_thousand": (0.0, 1000.0),
    "precision": (0.0, 1.0),
    "cost_ratio": (0.0, np.inf),
}
"""Criteria for a threshold, with the bounds of their values; the lower bound is exclusive."""


class Threshold(float):
    """A threshold on scores, ``score >= threshold``: a float with its precision, recall and alert rate on given rows.

    It can be used as a plain number, copied, pickled, and passed as a parameter in scikit-learn.

    >>> made = Threshold(1.5, Estimate(0.5, 0.2, 0.8), Estimate(0.25, 0.1, 0.5), Estimate(0.01, 0.0, 0.02))
    >>> made > 1.0, made.precision.value
    (True, 0.5)
    >>> print(made)
    1.5: precision 0.5000 (0.2000 to 0.8000), recall 0.2500 (0.1000 to 0.5000), alert rate 0.0100 (0.0000 to 0.0200)
    """

    __slots__ = ("_alert_rate", "_precision", "_recall")
    _precision: Estimate
    _recall: Estimate
    _alert_rate: Estimate

    def __new__(cls, value: float, precision: Estimate, recall: Estimate, alert_rate: Estimate) -> "Threshold":
        made = super().__new__(cls, value)
        made._precision, made._recall, made._alert_rate = precision, recall, alert_rate
        return made

    @property
    def precision(self) -> Estimate:
        """Share of positives among the alerts, with its 95 % interval; NaN without alerts."""
        return self._precision

    @property
    def recall(self) -> Estimate:
        """Share of the positives with an alert, with its 95 % interval."""
        return self._recall

    @property
    def alert_rate(self) -> Estimate:
        """Share of all rows with an alert, with its 95 % interval."""
        return self._alert_rate

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (float(self), self.precision, self.recall, self.alert_rate)

    def __str__(self) -> str:
        return f"{float(self):.6g}: precision {self.precision}, recall {self.recall}, alert rate {self.alert_rate}"

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name).value:.4g}" for name in ("precision", "recall", "alert_rate"))
        return f"Threshold({float(self)!r}, {shown})"


def choose_threshold(
    y: Any,
    scores: Any,
    sample_weight: Any = None,
    *,
    alert_rate: float | None = None,
    per_thousand: float | None = None,
    precision: float | None = None,
    cost_ratio: float | None = None,
    pos_label: Any = None,
) -> Threshold:
    r"""Choose the threshold that meets one criterion on these rows, with its precision, recall and alert rate.

    TP, FP and FN are total weights of true positives, false positives and false negatives, and n is that of all rows.
    Either all rows with the same score raise an alert, or none of them does.

    Parameters
    ----------
    y, scores, sample_weight, pos_label
        As in :class:`WindowAUC`; there must be rows of both classes.
    alert_rate
        The lowest threshold with (TP + FP) / n at most this, in (0, 1].
    per_thousand
        The same, in alerts per 1,000 rows.
    precision
        The lowest threshold with TP / (TP + FP) at least this. If there is none, ValueError reports the best precision.
    cost_ratio
        The threshold with the smallest cost_ratio FN + FP: the cost of a missed positive, in false alerts.

    If no alert is allowed, the threshold is the next number above all scores, and the precision is NaN.

    The 95 % intervals are Wilson intervals for the scores of a fixed model. Choosing the threshold on the same rows has
    a small effect: measured coverage is 94 to 98 % with ``alert_rate`` and ``precision`` in windows of 1,000 and 4,096
    rows (``benchmarks/alerts.py``), and 90 to 95 % with ``cost_ratio``.

    Cost: O(n log n).

    >>> scores = np.array([0.9, 0.8, 0.8, 0.4, 0.2, 0.1])
    >>> y = [1, 1, 0, 0, 1, 0]
    >>> found = choose_threshold(y, scores, alert_rate=0.5)
    >>> float(found), found.precision.value, found.recall.value
    (0.8, 0.6666666666666666, 0.6666666666666666)
    >>> choose_threshold(y, scores, alert_rate=0.4)  # not 0.8, which two rows share
    Threshold(0.9, precision=1, recall=0.3333, alert_rate=0.1667)
    >>> float(choose_threshold(y, scores, cost_ratio=4)), float(choose_threshold(y, scores, precision=0.6))
    (0.2, 0.2)
    """
    name, value = one_criterion(
        alert_rate=alert_rate, per_thousand=per_thousand, precision=precision, cost_ratio=cost_ratio
    )
    positive, scores, weights = check_metric_inputs(y, scores, sample_weight, pos_label)
    if not np.isfinite(scores).all():
        raise ValueError("a threshold needs finite scores; got an infinite one")
    if positive.all() or not positive.any():
        n = int(positive.sum())
        raise ValueError(
            f"a threshold needs scored rows of both classes: there are {n} positives and {len(positive) - n} negatives"
        )
    cuts = np.append(np.nextafter(scores.max(), np.inf), np.unique(scores)[::-1])
    own, other = mass_above(scores, positive, weights)
    return threshold_at(cuts[_n_alerted(name, value, own, other)], positive, scores, weights)


def threshold_at(cut: float, positive: Array, scores: Array, weights: Array) -> Threshold:
    """Return a given threshold with its precision, recall and alert rate on these rows.

    >>> threshold_at(0.5, np.array([True, False]), np.array([0.9, 0.1]), np.ones(2))
    Threshold(0.5, precision=1, recall=1, alert_rate=0.5)
    """
    alerted = scores >= cut
    return Threshold(
        float(cut), wilson(positive[alerted], weights[alerted]), wilson(alerted[positive], weights[positive]),
        wilson(alerted, weights),
    )  # fmt: skip


def alert_threshold(scores: Array, rate: float) -> float:
    """Return the lowest threshold that at most this share of the rows reaches: ``choose_threshold`` without labels.

    If no alert is allowed, it is the next number above all scores. Cost: O(n).

    >>> scores = np.array([0.9, 0.8, 0.8, 0.4, 0.2, 0.1])
    >>> alert_threshold(scores, 0.5), alert_threshold(scores[:4], 0.5)
    (0.8, 0.9)
    """
    n = len(scores)
    most = int(rate * n * (1.0 + ROUNDING))
    if most >= n:
        return float(scores.min())
    top = np.partition(scores, n - most - 1)[n - most - 1 :]  # top[0] gets no alert
    alerted = top[top > top[0]]
    return float(alerted.min() if len(alerted) else np.nextafter(top.max(), np.inf))


def one_criterion(**criteria: Any) -> tuple[str, float]:
    """Return the only criterion that is not None, and its value; raise ValueError otherwise, or if it is invalid."""
    given = {name: value for name, value in criteria.items() if value is not None}
    if len(given) != 1 or not given.keys() <= CRITERIA.keys():
        names = ", ".join(f"{name}=" for name in CRITERIA)
        raise ValueError(f"threshold takes exactly one of {names}; got {', '.join(given) or 'none'}")
    [(name, value)] = given.items()
    low, high = CRITERIA[name]
    check_number(name, value, low, high, open_low=True)
    return name, float(value)


def precision_at_k(y: Any, scores: Any, k: int, sample_weight: Any = None, *, pos_label: Any = None) -> float:
    r"""Return the weighted share of positives among the k rows with the highest scores; its expectation under ties.

    .. math:: \frac{\sum_i c_i w_i y_i}{\sum_i c_i w_i}, \quad c_i = 1 \text{ above the k-th score}, \quad
        c_i = \frac{k - \#\text{above}}{\#\text{tied}} \text{ at it}, \quad 0 \text{ below}

    Parameters
    ----------
    y, scores, sample_weight, pos_label
        As in :class:`WindowAUC`. Rows of weight 0 are ignored.
    k
        Number of rows; all rows if there are fewer.

    NaN without rows. Cost: O(n).

    >>> precision_at_k([1, 1, 0, 0], [0.9, 0.5, 0.5, 0.1], k=2)
    0.75
    """
    check_count("k", k)
    positive, scores, weights = check_metric_inputs(y, scores, sample_weight, pos_label)
    return precision_at(scores, positive, weights, k) if len(scores) else float("nan")


def _n_alerted(name: str, value: float, own: Array, other: Array) -> int:
    """Return how many of the distinct scores, from the top, raise an alert."""
    alerts, misses = own + other, own[-1] - own
    if name == "cost_ratio":
        return int(np.argmin(value * misses + other))
    if name == "precision":
        found = np.append(0.0, own[1:] / alerts[1:])
        if found.max() < value * (1.0 - ROUNDING):
            best = int(found.argmax())
            raise ValueError(
                f"no threshold has a precision of {value:g} on these rows: the best is {found[best]:.4g}, with a "
                f"recall of {own[best] / own[-1]:.4g}"
            )
        return int(np.flatnonzero(found >= value * (1.0 - ROUNDING))[-1])
    rate = value / 1000.0 if name == "per_thousand" else value
    return int(np.flatnonzero(alerts <= rate * alerts[-1] * (1.0 + ROUNDING))[-1])
