"""Learning from pairs on a stream: one pass, bounded memory, kernels."""

from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.learner import Learner, StabilityWarning
from pairloom.losses import Hinge, Logistic, Square, SquaredHinge
from pairloom.memory import Latest, Strata
from pairloom.pairs import OppositeClass
from pairloom.steps import L2, Constant, Polynomial, Sqrt

__version__ = "0.1.0"

__all__ = [
    "L2",
    "Constant",
    "Gaussian",
    "Hinge",
    "Identity",
    "Latest",
    "Learner",
    "Logistic",
    "OppositeClass",
    "Polynomial",
    "RandomFourier",
    "Sqrt",
    "Square",
    "SquaredHinge",
    "StabilityWarning",
    "Strata",
]
