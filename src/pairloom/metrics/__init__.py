"""How well scores rank."""

from pairloom.metrics.delong import delong
from pairloom.metrics.streaming import StreamingAUC
from pairloom.metrics.window import WindowAUC

__all__ = ["StreamingAUC", "WindowAUC", "delong"]
