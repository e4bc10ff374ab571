"""The paper's quantities as functions: smoothness, variance, bounds of regret, features, strata and kernels.

Reference for all of them: AlQuabeh, Mukhoty and Gu, Variance Reduced Online Gradient Descent for Kernelized Pairwise
Learning with Limited Memory, ACML 2023. Where a statement does not hold as it is printed, the function says so, and
gives one that does.
"""

from pairloom.theory.features import degrees_of_freedom, features_needed
from pairloom.theory.kernel import features_for_error, pairwise_failure, pointwise_failure, uniform_failure
from pairloom.theory.regret import RegretBound, approximation_regret
from pairloom.theory.smoothness import partner_smoothness, smoothness
from pairloom.theory.strata import most_strata
from pairloom.theory.variance import Partition

__all__ = [
    "Partition",
    "RegretBound",
    "approximation_regret",
    "degrees_of_freedom",
    "features_for_error",
    "features_needed",
    "most_strata",
    "pairwise_failure",
    "partner_smoothness",
    "pointwise_failure",
    "smoothness",
    "uniform_failure",
]
