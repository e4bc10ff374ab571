"""The learners of the demo: AUCClassifier, every online system of the library, and the usual scikit-learn answer."""

from typing import Any, Protocol

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from pairloom.base.typing import Array
from pairloom.estimators import AUCClassifier
from pairloom.experiments.systems import lines
from pairloom.features.kernels import median_squared_distance
from pairloom.systems import FPOGD

RACE, KERNEL, LINEAR, BASELINE = "AUCClassifier", "FPOGD, kernel", "FPOGD, linear", "RBFSampler + SGD"

N_COMPONENTS = 512
AHEAD = 256
"""Rows whose x the baseline may see ahead of the stream."""

STEPS: dict[str, dict[str, float]] = {
    "AllPairs": {"eta": 3.0},
    "OAM": {"C": 0.03},
    "OGD": {"eta": 10.0},
    "OLP": {"eta": 10.0},
    "OPAUC": {"eta": 0.3},
    "SOLAM": {"eta": 10.0},
    "SPAM": {"eta": 3.0},
}
"""Steps of the linear systems, in units of 1 / columns: the best of a coarse grid on these data, one for both."""


class Classifier(Protocol):
    """What the demo asks of a learner."""

    def partial_fit(self, X: Array, y: Array, classes: Any) -> Any: ...
    def decision_function(self, X: Array) -> Array: ...
    @property
    def nbytes_(self) -> int: ...


class ScikitLearn:
    """The usual scikit-learn answer: RBFSampler + SGDClassifier, log loss, averaged weights.

    Scale and width (one over the median squared distance) are fixed on ``ahead``, rows of the start of the stream.
    """

    def __init__(self, ahead: Array, seed: int) -> None:
        scaler = MinMaxScaler((-1, 1)).fit(ahead)
        gamma = 1.0 / median_squared_distance(scaler.transform(ahead))
        sampler = RBFSampler(gamma=gamma, n_components=N_COMPONENTS, random_state=seed)
        self._map = make_pipeline(scaler, sampler).fit(ahead)
        self._sgd = SGDClassifier(loss="log_loss", average=True, random_state=seed)

    def partial_fit(self, X: Array, y: Array, classes: Any) -> "ScikitLearn":
        """Learn rows in order."""
        self._sgd.partial_fit(self._map.transform(X), y, classes=classes)
        return self

    def decision_function(self, X: Array) -> Array:
        """Log-odds of the second class."""
        return np.asarray(self._sgd.decision_function(self._map.transform(X)))

    @property
    def nbytes_(self) -> int:
        """Bytes of all arrays that the model holds."""
        parts = [*self._map.named_steps.values(), self._sgd]
        return sum(value.nbytes for part in parts for value in vars(part).values() if isinstance(value, np.ndarray))


def contestants(ahead: Array, linear_eta: float, seed: int) -> dict[str, Classifier]:
    """Fresh learners, the product first; only the baseline looks at rows ahead of the stream, at x.

    ``linear_eta``: the step of linear FPOGD.
    """
    kernel: dict[str, Any] = {"gamma": "median", "n_components": N_COMPONENTS, "scale": "minmax"}
    linear: dict[str, Any] = {
        "kernel": "linear",
        "loss": "logistic",
        "eta": linear_eta,
        "scale": "standard",
        "average": "poly",
    }
    made: dict[str, Classifier] = {
        RACE: AUCClassifier(random_state=seed),
        KERNEL: FPOGD(**kernel, average="poly", random_state=seed),
        LINEAR: FPOGD(**linear, random_state=seed),
        BASELINE: ScikitLearn(ahead, seed),
    }
    for line in lines():
        name = type(line.model).__name__
        if line.model.card.scheme == "online" and name != "FPOGD":
            steps = {key: value / ahead.shape[1] for key, value in STEPS.get(name, {}).items()}
            own = set(line.model.get_params()) - set(line.model.variants[line.name.removeprefix(name)])
            wanted = {**kernel, **steps, "random_state": seed}
            made[line.name] = line.model.set_params(**{key: value for key, value in wanted.items() if key in own})
    return made
