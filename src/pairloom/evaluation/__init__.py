"""How good a model is on a stream."""

from pairloom.evaluation.prequential import Prequential, prequential
from pairloom.evaluation.rows import Rows

__all__ = ["Prequential", "Rows", "prequential"]
