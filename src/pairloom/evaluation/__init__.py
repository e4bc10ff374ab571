"""How good a model is on a stream, how good its gradients are, and what it has lost."""

from pairloom.evaluation.gradient_variance import GradientVariance, gradient_variance
from pairloom.evaluation.prequential import Prequential, prequential
from pairloom.evaluation.regret import Exponent, Regret, regret
from pairloom.evaluation.rows import Rows

__all__ = [
    "Exponent",
    "GradientVariance",
    "Prequential",
    "Regret",
    "Rows",
    "gradient_variance",
    "prequential",
    "regret",
]
