"""Learning from pairs on a stream: one pass, bounded memory, kernels and trees."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairloom.estimators import AUCClassifier as AUCClassifier
    from pairloom.estimators import PairwiseRanker as PairwiseRanker
    from pairloom.estimators import PairwiseRegressor as PairwiseRegressor
    from pairloom.models import Grid as Grid
    from pairloom.models import Learner as Learner
    from pairloom.persist import Checkpointer as Checkpointer
    from pairloom.persist import load as load
    from pairloom.persist import save as save
    from pairloom.stream import Stream as Stream
    from pairloom.systems import FPOGD as FPOGD

__version__ = "0.1.0"

MODULES = {
    "AUCClassifier": "estimators",
    "Checkpointer": "persist",
    "FPOGD": "systems",
    "Grid": "models",
    "Learner": "models",
    "PairwiseRanker": "estimators",
    "PairwiseRegressor": "estimators",
    "Stream": "stream",
    "load": "persist",
    "save": "persist",
}
"""Where the public names of the top-level package are; all others are in subpackages."""

__all__ = sorted(MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name or a subpackage on first use: most take long to import."""
    if name in MODULES:
        return getattr(import_module(f"pairloom.{MODULES[name]}"), name)
    if not name.startswith("_") and find_spec(f"pairloom.{name}") is not None:
        return import_module(f"pairloom.{name}")
    raise AttributeError(f"module 'pairloom' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return [*__all__, "__version__"]
