"""Evaluation on streams: prequential AUC, gradient variance and regret."""

from pairloom.evaluation.gradient_variance import GradientVariance, gradient_variance
from pairloom.evaluation.prequential import Prequential, prequential
from pairloom.evaluation.regret import Regret, regret
from pairloom.evaluation.rows import Rows

__all__ = ["GradientVariance", "Prequential", "Regret", "Rows", "gradient_variance", "prequential", "regret"]
