"""How good a model is on a stream, and how good its gradients are."""

from pairloom.evaluation.gradient_variance import GradientVariance, gradient_variance
from pairloom.evaluation.prequential import Prequential, prequential
from pairloom.evaluation.rows import Rows

__all__ = ["GradientVariance", "Prequential", "Rows", "gradient_variance", "prequential"]
