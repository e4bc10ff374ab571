"""The theory of the paper as functions: random features, strata, variance, smoothness and regret.

Reference: AlQuabeh, Mukhoty and Gu, Variance Reduced Online Gradient Descent for Kernelized Pairwise
Learning with Limited Memory, ACML 2023. Where a statement does not hold as printed, the docstring says so, and the
function computes a corrected one.
"""

from pairloom.theory.features import (
    degrees_of_freedom,
    features_for_error,
    features_needed,
    pairwise_failure,
    pointwise_failure,
    uniform_failure,
)
from pairloom.theory.regret import RegretBound, approximation_regret, partner_smoothness, smoothness
from pairloom.theory.strata import Partition, strata_bound

__all__ = [
    "Partition",
    "RegretBound",
    "approximation_regret",
    "degrees_of_freedom",
    "features_for_error",
    "features_needed",
    "pairwise_failure",
    "partner_smoothness",
    "pointwise_failure",
    "smoothness",
    "strata_bound",
    "uniform_failure",
]
