"""eta, Omega: how long a step is, how the weights shrink, and which iterate is the model.

All three are functions of the row number t = 1, 2, ... alone, so every engine computes them for a whole block at
once, with NumPy, in float64. Only steps per coordinate (``AdaGrad``) depend on the gradients so far.
"""

from pairloom.steps.adagrad import AdaGrad
from pairloom.steps.averaging import Average, averaging_rate, constant
from pairloom.steps.choice import SCHEDULES, Simple, schedule_named, simple_schedule
from pairloom.steps.penalties import L2, Ball, ElasticNet, Form, Numbers, Penalty, l2_or_ball
from pairloom.steps.schedules import Constant, Horizon, PassiveAggressive, Polynomial, Schedule, Sqrt

__all__ = [
    "L2",
    "SCHEDULES",
    "AdaGrad",
    "Average",
    "Ball",
    "Constant",
    "ElasticNet",
    "Form",
    "Horizon",
    "Numbers",
    "PassiveAggressive",
    "Penalty",
    "Polynomial",
    "Schedule",
    "Simple",
    "Sqrt",
    "averaging_rate",
    "constant",
    "l2_or_ball",
    "schedule_named",
    "simple_schedule",
]
