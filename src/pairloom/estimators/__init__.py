"""Estimators for graded and real labels: ranking, and regression on differences."""

from pairloom.estimators.metric import concordance
from pairloom.estimators.ranker import PairwiseRanker
from pairloom.estimators.regressor import PairwiseRegressor

__all__ = ["PairwiseRanker", "PairwiseRegressor", "concordance"]
