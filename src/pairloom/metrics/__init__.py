"""Ranking metrics for streams, and alert thresholds."""

from pairloom.metrics.alerts import Threshold, choose_threshold, precision_at_k
from pairloom.metrics.intervals import Estimate, delong
from pairloom.metrics.streaming import StreamingAUC
from pairloom.metrics.window import WindowAUC

__all__ = ["Estimate", "StreamingAUC", "Threshold", "WindowAUC", "choose_threshold", "delong", "precision_at_k"]
