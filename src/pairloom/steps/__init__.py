"""eta, Omega: how long a step is, how the weights shrink, and which iterate is the model.

All three are functions of the row number t = 1, 2, ... alone, so every engine computes them for a whole block at
once, with NumPy, in float64.
"""

from pairloom.steps.averaging import Average, averaging_rate, constant
from pairloom.steps.penalties import L2, Ball, ElasticNet, Form, Penalty, l2_or_ball
from pairloom.steps.schedules import (
    SCHEDULES,
    Constant,
    Horizon,
    PassiveAggressive,
    Polynomial,
    Schedule,
    Simple,
    Sqrt,
    schedule_named,
    simple_schedule,
)

__all__ = [
    "L2",
    "SCHEDULES",
    "Average",
    "Ball",
    "Constant",
    "ElasticNet",
    "Form",
    "Horizon",
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
