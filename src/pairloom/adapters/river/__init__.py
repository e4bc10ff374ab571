"""pairloom in pipelines of river: classifiers, a metric and a calibrated wrapper; ``pip install "pairloom[river]"``."""

from pairloom.base.extras import import_extra

import_extra("river", "river", "pairloom.adapters.river")

from pairloom.adapters.river.calibration import CalibratedScores  # noqa: E402
from pairloom.adapters.river.classifier import RiverAUC, RiverClassifier, as_river  # noqa: E402
from pairloom.adapters.river.metric import StreamingROCAUC  # noqa: E402

__all__ = ["CalibratedScores", "RiverAUC", "RiverClassifier", "StreamingROCAUC", "as_river"]
