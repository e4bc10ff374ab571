"""Step sizes eta, penalties Omega, and averaging of iterates.

All three depend only on the row number t = 1, 2, ..., so every engine computes them for a whole block at once, with
NumPy, in float64. Only steps per coordinate (``AdaGrad``) depend on past gradients.
"""

from pairloom.steps.penalties import L2, Ball, ElasticNet, Penalty
from pairloom.steps.schedules import (
    AdaGrad,
    Average,
    Constant,
    Horizon,
    PassiveAggressive,
    Polynomial,
    Schedule,
    Sqrt,
)

__all__ = [
    "L2",
    "AdaGrad",
    "Average",
    "Ball",
    "Constant",
    "ElasticNet",
    "Horizon",
    "PassiveAggressive",
    "Penalty",
    "Polynomial",
    "Schedule",
    "Sqrt",
]
