"""Learning from pairs on a stream: one pass, bounded memory, kernels."""

from typing import TYPE_CHECKING, Any

from pairloom.features import (
    Cauchy,
    Forest,
    Gaussian,
    Growing,
    Identity,
    Landmarks,
    Laplace,
    Matern32,
    Matern52,
    Nystroem,
    OrthogonalFourier,
    RandomFourier,
    Whitened,
)
from pairloom.losses import Hinge, Logistic, Square, SquaredHinge
from pairloom.memory import Latest, Reservoir, RSx, Strata, WholeHistory, Window
from pairloom.models.grid import Grid
from pairloom.models.learner import Learner
from pairloom.models.path import StepPath
from pairloom.pairs import ClassDifference, Difference, OppositeClass, Order
from pairloom.steps import L2, AdaGrad, Ball, Constant, ElasticNet, Horizon, PassiveAggressive, Polynomial, Sqrt
from pairloom.stream import StabilityWarning, Stream

if TYPE_CHECKING:
    from pairloom.estimators import AUCClassifier, PairwiseRanker, PairwiseRegressor
    from pairloom.persist import Checkpointer, ModelFileError, load, save

__version__ = "0.1.0"

__all__ = [
    "L2",
    "AUCClassifier",
    "AdaGrad",
    "Ball",
    "Cauchy",
    "Checkpointer",
    "ClassDifference",
    "Constant",
    "Difference",
    "ElasticNet",
    "Forest",
    "Gaussian",
    "Grid",
    "Growing",
    "Hinge",
    "Horizon",
    "Identity",
    "Landmarks",
    "Laplace",
    "Latest",
    "Learner",
    "Logistic",
    "Matern32",
    "Matern52",
    "ModelFileError",
    "Nystroem",
    "OppositeClass",
    "Order",
    "OrthogonalFourier",
    "PairwiseRanker",
    "PairwiseRegressor",
    "PassiveAggressive",
    "Polynomial",
    "RSx",
    "RandomFourier",
    "Reservoir",
    "Sqrt",
    "Square",
    "SquaredHinge",
    "StabilityWarning",
    "StepPath",
    "Strata",
    "Stream",
    "Whitened",
    "WholeHistory",
    "Window",
    "load",
    "save",
]


def __getattr__(name: str) -> Any:
    """On first use what imports scikit-learn, which takes three times as long as all the rest: estimators, files."""
    if name in ("AUCClassifier", "PairwiseRanker", "PairwiseRegressor"):
        from pairloom import estimators

        return getattr(estimators, name)
    if name in ("Checkpointer", "ModelFileError", "load", "save"):
        from pairloom import persist

        return getattr(persist, name)
    raise AttributeError(f"module 'pairloom' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What users may import: also the estimators, which are not loaded yet."""
    return sorted(
        [*__all__, "data", "estimators", "persist", "race", "systems", "__version__", "__doc__", "__path__", "__file__"]
    )
