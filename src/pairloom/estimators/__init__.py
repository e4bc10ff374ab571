"""Estimators for graded and real labels: ranking, and regression on differences."""

from pairloom.estimators.metric import concordance
from pairloom.estimators.ranker import PairwiseRanker
from pairloom.estimators.regressor import PairwiseRegressor
from pairloom.estimators.window import Window

__all__ = ["PairwiseRanker", "PairwiseRegressor", "Window", "concordance"]
