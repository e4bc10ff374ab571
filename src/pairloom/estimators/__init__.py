"""Estimators: a self-tuning classifier for AUC, a ranker, a regressor and a transformer."""

from pairloom.estimators.auc import AUCClassifier
from pairloom.estimators.boosting import BoostingClassifier
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.estimators.order import OrderWarning
from pairloom.estimators.ranker import PairwiseRanker
from pairloom.estimators.regressor import PairwiseRegressor
from pairloom.estimators.transformer import FeatureTransformer
from pairloom.metrics.concordance import concordance

__all__ = [
    "AUCClassifier",
    "BoostingClassifier",
    "FeatureTransformer",
    "OrderWarning",
    "PairwiseClassifier",
    "PairwiseRanker",
    "PairwiseRegressor",
    "concordance",
]
