"""StreamingAUC as a metric of river."""

from typing import Any

from river import base
from river.metrics.base import BinaryMetric

from pairloom.metrics import StreamingAUC


class StreamingROCAUC(BinaryMetric):
    """:class:`~pairloom.metrics.StreamingAUC` in river: AUC of all rows so far in bounded memory, with bounds.

    Scores may have any scale: an anomaly detector needs no thresholds. Rows cannot be taken back, so there is no
    rolling version: ``river.metrics.RollingROCAUC`` has a window.

    Parameters
    ----------
    max_bytes : maximum bytes of its arrays, at least 168.
    pos_val : the positive label; all others are negative.

    Cost: some microseconds for a row; O(m log m) for ``get`` and ``bounds``, m = ``max_bytes`` / 17.

    >>> metric = StreamingROCAUC()
    >>> for label, score in zip([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]):
    ...     metric.update(label, score)
    >>> metric, metric.bounds
    (StreamingROCAUC: 75.00%, (0.75, 0.75))
    """

    def __init__(self, max_bytes: int = 1_000_000, pos_val: Any = True) -> None:
        self.max_bytes = max_bytes
        self.pos_val = pos_val
        self._auc = StreamingAUC(max_bytes)

    def update(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Add a row: its label, and its score or the probabilities of the labels."""
        score = y_pred.get(self.pos_val, 0.0) if isinstance(y_pred, dict) else y_pred
        self._auc.update([bool(y_true == self.pos_val)], [float(score)], [w])

    def revert(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Raise NotImplementedError: rows are merged, and cannot be taken back."""
        raise NotImplementedError("StreamingROCAUC cannot take back rows: use river.metrics.RollingROCAUC for a window")

    def get(self) -> float:
        """Return the AUC; NaN until there are rows of both classes."""
        return self._auc.value

    @property
    def bounds(self) -> tuple[float, float]:
        """(lo, hi) around the exact AUC."""
        return self._auc.bounds

    @property
    def requires_labels(self) -> bool:
        """False: it requires scores, or probabilities."""
        return False

    def works_with(self, model: base.Estimator) -> bool:
        """Return whether a model has scores."""
        return isinstance(model, base.Classifier | base.AnomalyDetector | base.AnomalyFilter)
