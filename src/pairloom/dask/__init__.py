"""Learning from shards on Dask: the estimators of pairloom, with models that are merged in rounds.

Needs the extra ``dask``: ``pip install "pairloom[dask]"``.
"""

from pairloom.dask.estimators import FPOGD, AUCClassifier, ExactAUC, PairwiseRanker
from pairloom.dask.tasks import PartitionError

__all__ = ["FPOGD", "AUCClassifier", "ExactAUC", "PairwiseRanker", "PartitionError"]
