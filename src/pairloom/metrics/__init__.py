"""How well scores rank, and where to cut them."""

from pairloom.metrics.alerts import Threshold, choose_threshold, precision_at_k
from pairloom.metrics.delong import delong
from pairloom.metrics.estimate import Estimate
from pairloom.metrics.streaming import StreamingAUC
from pairloom.metrics.window import WindowAUC

__all__ = ["Estimate", "StreamingAUC", "Threshold", "WindowAUC", "choose_threshold", "delong", "precision_at_k"]
