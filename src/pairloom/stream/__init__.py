"""Streams: one pass over rows in order, with hooks."""

from pairloom.stream.alerts import AlertBudget
from pairloom.stream.drift import Detector, DriftWatch
from pairloom.stream.forgetting import Forgetting
from pairloom.stream.hooks import ArrivalScores, Hook, RecentScores
from pairloom.stream.stream import StabilityWarning, Stream

__all__ = [
    "AlertBudget",
    "ArrivalScores",
    "Detector",
    "DriftWatch",
    "Forgetting",
    "Hook",
    "RecentScores",
    "StabilityWarning",
    "Stream",
]
