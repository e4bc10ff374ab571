"""One pass over a stream of rows: whatever learns, this is what drives it."""

from pairloom.stream.drift import Detector, DriftWatch, Watched
from pairloom.stream.forgetting import Faded, Forgetting
from pairloom.stream.observers import Arrivals, ArrivalScores, Observer, Recent, RecentScores
from pairloom.stream.state import Kept, StreamState
from pairloom.stream.stream import StabilityWarning, Stream

__all__ = [
    "ArrivalScores",
    "Arrivals",
    "Detector",
    "DriftWatch",
    "Faded",
    "Forgetting",
    "Kept",
    "Observer",
    "Recent",
    "RecentScores",
    "StabilityWarning",
    "Stream",
    "StreamState",
    "Watched",
]
