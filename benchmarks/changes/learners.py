"""The learners on streams that change, with and without change detection."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pairloom import AUCClassifier
from pairloom.features import Gaussian, OrthogonalFourier
from pairloom.systems import FPOGD, ExactAUC


class Estimator:
    """A pairloom estimator with ``score`` and ``learn``."""

    def __init__(self, model: Any, classes: tuple[int, int] = (-1, 1)) -> None:
        self.model, self.classes = model, classes

    def score(self, X: Any) -> np.ndarray:
        return np.asarray(self.model.decision_function(X))

    def learn(self, X: Any, y: np.ndarray) -> None:
        self.model.partial_fit(X, y, classes=self.classes)

    @property
    def alarms(self) -> list[int]:
        """The rows at which its detector raised an alarm."""
        found: list[int] = self.model.changes_
        return found


class River:
    """A river model with ``score`` and ``learn`` of numeric blocks, row by row."""

    alarms: tuple[int, ...] = ()
    """Its trees have detectors, which do not report alarms."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def score(self, X: np.ndarray) -> np.ndarray:
        rows = (dict(enumerate(row)) for row in X.tolist())
        return np.array([self.model.predict_proba_one(row).get(1, 0.0) for row in rows])

    def learn(self, X: np.ndarray, y: np.ndarray) -> None:
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            self.model.learn_one(dict(enumerate(row)), label)


def faced(model: Any) -> Any:
    """Return an object with ``score`` and ``learn``."""
    return Estimator(model) if hasattr(model, "partial_fit") else model


@dataclass(frozen=True)
class Learner:
    """``make(**how)`` builds a model; ``ways``: variants of change detection, the first of which defines the goal."""

    name: str
    make: Callable[..., Any]
    ways: tuple[dict[str, Any], ...] = ({"drift": None}, {"drift": "auto"})

    def title(self, how: dict[str, Any]) -> str:
        return ", ".join([self.name, *(f"{name}={value!r}" for name, value in how.items())])


def river_forest() -> River:
    from river.forest import ARFClassifier

    return River(ARFClassifier(seed=0))


OURS = Learner("AUCClassifier", partial(AUCClassifier, random_state=0))
FAST = (
    OURS,
    Learner("FPOGD", partial(FPOGD, gamma="median", scale="standard", eta=0.25, average="poly", random_state=0)),
    Learner("ExactAUC", partial(ExactAUC, features=OrthogonalFourier(256, Gaussian("median")), random_state=0)),
)
FOREST = Learner("river ARF, its own detectors", river_forest, ways=({},))
