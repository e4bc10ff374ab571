"""What users import first: AUC that tunes itself, ranking, and regression on differences."""

from pairloom.estimators.auc import AUCClassifier
from pairloom.estimators.ranker import PairwiseRanker
from pairloom.estimators.regressor import PairwiseRegressor
from pairloom.estimators.transformer import FeatureTransformer
from pairloom.metrics.concordance import concordance

__all__ = ["AUCClassifier", "FeatureTransformer", "PairwiseRanker", "PairwiseRegressor", "concordance"]
