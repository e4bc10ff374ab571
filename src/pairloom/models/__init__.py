"""Models: learners composed of parts, rules, exact minimisers, kernel expansions, and several models at once."""

from pairloom.models.base import Many, Model
from pairloom.models.boosting import Boosting
from pairloom.models.exact import ExactLearner, ExactPath
from pairloom.models.expansion import Expansion
from pairloom.models.grid import Grid
from pairloom.models.learner import Learner
from pairloom.models.rule import Rule, RuleLearner
from pairloom.models.step_path import StepPath

__all__ = [
    "Boosting",
    "ExactLearner",
    "ExactPath",
    "Expansion",
    "Grid",
    "Learner",
    "Many",
    "Model",
    "Rule",
    "RuleLearner",
    "StepPath",
]
