"""Streaming calibration of any classifier or scorer of river."""

from collections.abc import Iterator
from math import log
from typing import Any

import numpy as np
from river import base, linear_model
from scipy.special import expit

from pairloom.base.clock import next_calibration
from pairloom.stream.calibration import platt, windows_of
from pairloom.stream.hooks import N_RECENT

MIN_PROBABILITY = 1e-300
"""Smaller probabilities have the log-odds of this one."""


class CalibratedScores(base.Wrapper[Any], base.Classifier):
    r"""Probabilities for any binary classifier or scorer of river, from its own test-then-train scores.

    .. math:: p(x) = 1 / (1 + e^{-(a s(x) + b)})

    The score s is ``score_one`` of a scorer, such as an anomaly detector, and the log-odds of ``predict_proba_one`` of
    a classifier. Each row is scored before it is learned; a and b are fitted to the newest 4,096 scores
    (:func:`~pairloom.stream.calibration.platt`), each time the stream has grown by an eighth. As a > 0, the order of
    the rows, and so their AUC, does not change while a and b are the same.

    Parameters
    ----------
    model : a classifier, an anomaly detector or any other estimator with ``score_one``.
    labels : the negative and the positive label.

    Attributes
    ----------
    calibration : (a, b).

    Cost: one more score for each row learned, since the row is scored again before it is learned; the fits cost about
    ten microseconds for a row of the first 10,000, and less later.

    Reference: Lin, Lin and Weng, A note on Platt's probabilistic outputs for support vector machines, 2007.

    >>> from river import anomaly
    >>> model = CalibratedScores(anomaly.HalfSpaceTrees(seed=0))
    >>> for k in range(300):
    ...     model.learn_one({"x": 0.9 if k % 10 == 0 else 0.1 + 0.001 * k}, k % 10 == 0)
    >>> round(model.predict_proba_one({"x": 0.2})[True], 1)
    0.1
    """

    def __init__(self, model: Any, labels: tuple[Any, Any] = (False, True)) -> None:
        self.model = model
        self.labels = labels
        self.calibration = (1.0, 0.0)
        self._scores, self._weights = np.zeros(N_RECENT), np.zeros(N_RECENT)
        self._positive = np.zeros(N_RECENT, dtype=bool)
        self._seen, self._next = 0, next_calibration(0)

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @property
    def _multiclass(self) -> bool:
        return False

    @property
    def _supervised(self) -> bool:
        return True

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": linear_model.LogisticRegression()}

    def learn_one(self, x: dict[Any, Any], y: Any, **kwargs: Any) -> None:
        """Learn one row: its score, then the row."""
        if y not in self.labels:
            raise ValueError(f"y must be one of labels={self.labels}; got {y!r}")
        score = self._score(x)
        if self.model._supervised:
            self.model.learn_one(x, y, **kwargs)
        else:
            self.model.learn_one(x, **kwargs)
        place = self._seen % N_RECENT
        self._scores[place], self._weights[place] = score, kwargs.get("w", 1.0)
        self._positive[place] = y == self.labels[1]
        self._seen += 1
        if self._seen == self._next:
            self._fit()
            self._next = next_calibration(self._seen)

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the probability of both labels."""
        a, b = self.calibration
        p = float(expit(a * self._score(x, **kwargs) + b)) if self._seen else 0.5
        return {self.labels[0]: 1.0 - p, self.labels[1]: p}

    def _score(self, x: dict[Any, Any], **kwargs: Any) -> float:
        if hasattr(self.model, "score_one"):
            return float(self.model.score_one(x, **kwargs))
        negative, positive = (self.model.predict_proba_one(x, **kwargs).get(label, 0.0) for label in self.labels)
        if negative == positive:
            return 0.0
        return log(max(positive, MIN_PROBABILITY)) - log(max(negative, MIN_PROBABILITY))

    def _fit(self) -> None:
        n = min(self._seen, N_RECENT)
        order = np.arange(self._seen - n, self._seen) % N_RECENT
        order = order[self._weights[order] > 0]
        positive = self._positive[order]
        start = self.calibration if self._seen > 1 else None
        self.calibration = platt(self._scores[order], positive, self._weights[order], start, windows_of(positive))
