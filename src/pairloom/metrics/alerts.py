"""Where to cut scores, so that what is above is worth an alert."""

from typing import Any

import numpy as np

from pairloom.base.checks import check_count, check_number
from pairloom.base.typing import Array
from pairloom.metrics.curve import mass_above, precision_at
from pairloom.metrics.estimate import Estimate, share
from pairloom.metrics.inputs import checked

SAME = 1e-12
"""Sums of weights that differ by less, relative to their size, are equal but for rounding."""

AIMS = {
    "alert_rate": (0.0, 1.0),
    "per_thousand": (0.0, 1000.0),
    "precision": (0.0, 1.0),
    "cost_ratio": (0.0, np.inf),
}
"""What a threshold may be asked for, with the bounds of each number, of which the lower one is not one."""


class Threshold(float):
    """A cut of scores, ``score >= threshold``: a float, with what the rows it was chosen by say of it.

    It is a plain number wherever one is wanted; it can be copied, pickled, and be a parameter in scikit-learn.

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
        """The share of positives among the rows it alerts on, with its 95 % interval; NaN if there are none."""
        return self._precision

    @property
    def recall(self) -> Estimate:
        """The share of the positives that it alerts on, with its 95 % interval."""
        return self._recall

    @property
    def alert_rate(self) -> Estimate:
        """The share of all rows that it alerts on, with its 95 % interval."""
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
    r"""The threshold on scores that meets one aim on these rows, and its precision, recall and rate of alerts.

    All is by weight: TP, FP and FN are the weights of the rows of each kind, n that of all rows. Rows with equal
    scores are all alerted on, or none of them.

    Parameters
    ----------
    y, scores, sample_weight, pos_label
        As in :class:`WindowAUC`; both classes must be there.
    alert_rate
        The lowest threshold with (TP + FP) / n at most this, in (0, 1].
    per_thousand
        The same, in alerts per 1,000 rows.
    precision
        The lowest threshold with TP / (TP + FP) at least this; ValueError with the best there is if none has.
    cost_ratio
        The threshold with the least cost_ratio FN + FP: what a missed positive costs, in false alerts.

    Where no row may be alerted on, the threshold is the next number above all scores, and the precision is NaN.

    The 95 % intervals are Wilson's (``share``), for scores that one fixed rule gives to rows like these. That the
    threshold was chosen by the same rows does them little harm: with ``alert_rate`` and ``precision`` they hold in 94
    to 98 % of windows of 1,000 and 4,096 rows (``benchmarks/alerts.py``), with ``cost_ratio`` in 90 to 95 %.

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
    name, value = one_aim(alert_rate=alert_rate, per_thousand=per_thousand, precision=precision, cost_ratio=cost_ratio)
    positive, scores, weights = checked(y, scores, sample_weight, pos_label)
    if not np.isfinite(scores).all():
        raise ValueError("a threshold needs finite scores: there is no number above infinity")
    if positive.all() or not positive.any():
        n = int(positive.sum())
        raise ValueError(
            f"a threshold needs scored rows of both classes: there are {n} positives and {len(positive) - n} negatives"
        )
    cuts = np.append(np.nextafter(scores.max(), np.inf), np.unique(scores)[::-1])
    own, other = mass_above(scores, positive, weights)
    return threshold_at(cuts[_place(name, value, own, other)], positive, scores, weights)


def threshold_at(cut: float, positive: Array, scores: Array, weights: Array) -> Threshold:
    """A threshold that is known, with what rows say of it.

    >>> threshold_at(0.5, np.array([True, False]), np.array([0.9, 0.1]), np.ones(2))
    Threshold(0.5, precision=1, recall=1, alert_rate=0.5)
    """
    alerted = scores >= cut
    return Threshold(
        float(cut), share(positive[alerted], weights[alerted]), share(alerted[positive], weights[positive]),
        share(alerted, weights),
    )  # fmt: skip


def budget_cut(scores: Array, rate: float) -> float:
    """The lowest threshold that alerts on at most this share of the rows: ``choose_threshold`` without labels.

    The next number above all scores where no row may be alerted on. Cost: O(n).

    >>> budget_cut(np.array([0.9, 0.8, 0.8, 0.4, 0.2, 0.1]), 0.5), budget_cut(np.array([0.9, 0.8, 0.8, 0.4]), 0.5)
    (0.8, 0.9)
    """
    n = len(scores)
    most = int(rate * n * (1.0 + SAME))
    if most >= n:
        return float(scores.min())
    top = np.partition(scores, n - most - 1)[n - most - 1 :]  # the first of these is the best that gets no alert
    alerted = top[top > top[0]]
    return float(alerted.min() if len(alerted) else np.nextafter(top.max(), np.inf))


def one_aim(**aims: Any) -> tuple[str, float]:
    """The one aim that is given, and its value; ValueError for none, several, unknown ones, and what is no value."""
    given = {name: value for name, value in aims.items() if value is not None}
    if len(given) != 1 or not given.keys() <= AIMS.keys():
        names = ", ".join(f"{name}=" for name in AIMS)
        raise ValueError(f"threshold takes exactly one of {names}; got {', '.join(given) or 'none'}")
    [(name, value)] = given.items()
    low, high = AIMS[name]
    check_number(name, value, low, high, open_low=True)
    return name, float(value)


def precision_at_k(y: Any, scores: Any, k: int, sample_weight: Any = None, *, pos_label: Any = None) -> float:
    r"""The share of positives, by weight, among the k rows with the highest scores: expected, where rows tie.

    .. math:: \frac{\sum_i c_i w_i y_i}{\sum_i c_i w_i}, \quad c_i = 1 \text{ above the k-th score}, \quad
        c_i = \frac{k - \#\text{above}}{\#\text{tied}} \text{ at it}, \quad 0 \text{ below}

    Parameters
    ----------
    y, scores, sample_weight, pos_label
        As in :class:`WindowAUC`. Rows of weight 0 are not there.
    k
        Rows; all of them if there are fewer.

    NaN without rows. Cost: O(n).

    >>> precision_at_k([1, 1, 0, 0], [0.9, 0.5, 0.5, 0.1], k=2)
    0.75
    """
    check_count("k", k)
    positive, scores, weights = checked(y, scores, sample_weight, pos_label)
    return precision_at(scores, positive, weights, k) if len(scores) else float("nan")


def _place(name: str, value: float, own: Array, other: Array) -> int:
    """How many of the distinct scores, from the top, are alerted on."""
    alerts, misses = own + other, own[-1] - own
    if name == "cost_ratio":
        return int(np.argmin(value * misses + other))
    if name == "precision":
        found = np.append(0.0, own[1:] / alerts[1:])
        if found.max() < value * (1.0 - SAME):
            best = int(found.argmax())
            raise ValueError(
                f"no threshold has a precision of {value:g} on these rows: the best is {found[best]:.4g}, with a "
                f"recall of {own[best] / own[-1]:.4g}"
            )
        return int(np.flatnonzero(found >= value * (1.0 - SAME))[-1])
    rate = value / 1000.0 if name == "per_thousand" else value
    return int(np.flatnonzero(alerts <= rate * alerts[-1] * (1.0 + SAME))[-1])
