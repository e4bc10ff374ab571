"""Public names of the top-level package. All others are in subpackages."""

from pairloom.estimators import AUCClassifier, PairwiseRanker, PairwiseRegressor
from pairloom.models import Grid, Learner
from pairloom.persist import Checkpointer, load, save
from pairloom.stream import Stream
from pairloom.systems import FPOGD
