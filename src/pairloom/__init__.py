"""Learning from pairs on a stream: one pass, bounded memory, kernels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairloom.estimators import AUCClassifier, PairwiseRanker, PairwiseRegressor
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
    from pairloom.persist import Checkpointer, ModelFileError, load, save
    from pairloom.steps import L2, AdaGrad, Ball, Constant, ElasticNet, Horizon, PassiveAggressive, Polynomial, Sqrt
    from pairloom.stream import StabilityWarning, Stream

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


PLACES = {
    "features": (
        "Cauchy", "Forest", "Gaussian", "Growing", "Identity", "Landmarks", "Laplace", "Matern32", "Matern52",
        "Nystroem", "OrthogonalFourier", "RandomFourier", "Whitened",
    ),
    "losses": ("Hinge", "Logistic", "Square", "SquaredHinge"),
    "memory": ("Latest", "RSx", "Reservoir", "Strata", "WholeHistory", "Window"),
    "models.grid": ("Grid",),
    "models.learner": ("Learner",),
    "models.path": ("StepPath",),
    "pairs": ("ClassDifference", "Difference", "OppositeClass", "Order"),
    "steps": (
        "AdaGrad", "Ball", "Constant", "ElasticNet", "Horizon", "L2", "PassiveAggressive", "Polynomial", "Sqrt",
    ),
    "stream": ("StabilityWarning", "Stream"),
    "estimators": ("AUCClassifier", "PairwiseRanker", "PairwiseRegressor"),
    "persist": ("Checkpointer", "ModelFileError", "load", "save"),
}  # fmt: skip
"""Where each name lives. Imported on first use: the help of the command is not to wait for compilers."""

FOLDERS = (
    "base", "columns", "data", "engines", "estimators", "evaluation", "features", "losses", "memory", "metrics",
    "models", "pairs", "persist", "race", "steps", "stream", "systems", "theory",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """A name, from where it lives."""
    if name in FOLDERS:
        return import_module(f"pairloom.{name}")
    for place, names in PLACES.items():
        if name in names:
            found = getattr(import_module(f"pairloom.{place}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module 'pairloom' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What users may import."""
    return sorted([*__all__, *FOLDERS, "__version__", "__doc__", "__path__", "__file__"])
