"""Who takes part: pairloom, and what people use today. Each makes a fresh model for a data set and settings."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from contest.datasets import Data
from pairloom import AUCClassifier
from pairloom.features import Gaussian, OrthogonalFourier
from pairloom.features.kernels import median_squared_distance
from pairloom.systems import FPOGD, ExactAUC

Settings = dict[str, Any]

WIDTHS = [2.0**k for k in range(-2, 6)]
"""gamma in units of 1 / median squared distance."""
BATCH = 512
AHEAD = 1024
"""Rows that the median distance is taken of, as in pairloom."""


def grid(**values: list[Any]) -> tuple[Settings, ...]:
    """All combinations."""
    return tuple(dict(zip(values, choice, strict=True)) for choice in product(*values.values()))


@dataclass(frozen=True)
class Size:
    """What the toy run makes smaller."""

    n_components: int = 1024
    n_trees: int = 500


@dataclass(frozen=True)
class Contestant:
    """``make`` builds an unfitted model; ``grid`` is what is tuned; ``max_rows``: the largest set it takes part in.

    ``passes``: "one" if it learns rows in order, each once; "batch" if it needs them all.
    """

    name: str
    title: str
    package: str
    passes: str
    how: str
    make: Callable[[Data, Size, Settings], Any]
    grid: tuple[Settings, ...] = ({},)
    max_rows: int | None = None
    slow: bool = False

    @property
    def absent(self) -> str:
        """Why it cannot take part here; empty if it can."""
        module = {"scikit-learn": "sklearn"}.get(self.package, self.package)
        return "" if find_spec(module) else f"{self.package} is not installed: pip install -e '.[bench]'"


class MedianWidth:
    """What learns from Gaussian features of width ``c`` over the median squared distance of the first scaled rows.

    ``build(gamma=...)`` makes it, ``scaler`` is fitted to all rows.
    """

    def __init__(self, scaler: Any, build: Callable[..., Any], c: float) -> None:
        self.scaler = scaler
        self.build = build
        self.c = c

    def fit(self, X: np.ndarray, y: np.ndarray) -> "MedianWidth":
        X = self.scaler.fit_transform(X)
        self.model = self.build(gamma=self.c / median_squared_distance(X[:AHEAD])).fit(X, y)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.decision_function(self.scaler.transform(X)))


class SamplerSGD:
    """RBFSampler + SGDClassifier, one pass in batches, averaged weights."""

    def __init__(self, gamma: float, n_components: int, **settings: Any) -> None:
        self.sampler = RBFSampler(gamma=gamma, n_components=n_components, random_state=0)
        self.sgd = SGDClassifier(average=True, random_state=0, **settings)

    def fit(self, X: np.ndarray, y: np.ndarray) -> "SamplerSGD":
        self.sampler.fit(X[:1])  # it looks at the number of columns only
        for start in range(0, len(y), BATCH):
            rows = slice(start, start + BATCH)
            self.sgd.partial_fit(self.sampler.transform(X[rows]), y[rows], classes=[0, 1])
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        parts = [X[start : start + BATCH] for start in range(0, len(X), BATCH)]
        return np.concatenate([self.sgd.decision_function(self.sampler.transform(part)) for part in parts])


class RiverLogistic:
    """river's logistic regression, row by row; its StandardScaler learns along the stream, pixels are divided."""

    def __init__(self, data: Data) -> None:
        from river.linear_model import LogisticRegression as Logistic
        from river.preprocessing import StandardScaler

        self.unit = data.unit or 1.0
        self.model = StandardScaler() | Logistic() if data.unit is None else Logistic()

    def fit(self, X: np.ndarray, y: np.ndarray) -> "RiverLogistic":
        for row, label in zip(X, y, strict=True):
            self.model.learn_one(self._named(row), bool(label))
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return np.array([self.model.predict_proba_one(self._named(row)).get(True, 0.5) for row in X])

    def _named(self, row: np.ndarray) -> dict[int, float]:
        return dict(enumerate((row / self.unit).tolist()))


def auc_classifier(data: Data, size: Size, settings: Settings) -> Any:
    return AUCClassifier(random_state=0)


def fpogd(data: Data, size: Size, settings: Settings) -> Any:
    return make_pipeline(data.scaler(), FPOGD(random_state=0))


def fpogd_tuned(data: Data, size: Size, settings: Settings) -> Any:
    build = partial(FPOGD, n_components=size.n_components, eta=settings["eta"], average="poly", random_state=0)
    return MedianWidth(data.scaler(), build, settings["c"])


def sgd_tuned(data: Data, size: Size, settings: Settings) -> Any:
    build = partial(SamplerSGD, n_components=size.n_components, alpha=settings["alpha"], loss=settings["loss"])
    return MedianWidth(data.scaler(), build, settings["c"])


def river_logistic(data: Data, size: Size, settings: Settings) -> Any:
    return RiverLogistic(data)


def exact_auc(data: Data, size: Size, settings: Settings) -> Any:
    features = OrthogonalFourier(size.n_components, Gaussian("median"))
    return make_pipeline(data.scaler(), ExactAUC(features=features, random_state=0))


def logistic(data: Data, size: Size, settings: Settings) -> Any:
    return make_pipeline(data.scaler(), LogisticRegression(max_iter=1000))


def lightgbm(data: Data, size: Size, settings: Settings) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=size.n_trees, learning_rate=0.1, n_jobs=1, random_state=0, verbose=-1)


def svc(data: Data, size: Size, settings: Settings) -> Any:
    return make_pipeline(data.scaler(), SVC(C=10.0, gamma="scale", cache_size=2000))


CONTESTANTS = (
    Contestant("AUCClassifier", "AUCClassifier", "pairloom", "one", "defaults, raw rows", auc_classifier),
    Contestant("FPOGD", "FPOGD, paper", "pairloom", "one", "the paper's defaults", fpogd),
    Contestant(
        "FPOGD-tuned", "FPOGD, tuned", "pairloom", "one", "D = 1024, average=\"poly\"; width and step tuned",
        fpogd_tuned, grid(c=WIDTHS, eta=[0.5, 0.25, 0.125, 0.03125]),
    ),
    Contestant("ExactAUC", "ExactAUC", "pairloom", "one", "OrthogonalFourier(1024), median width", exact_auc),
    Contestant(
        "SGD-tuned", "RBFSampler + SGD, tuned", "scikit-learn", "one",
        "RBFSampler(1024), SGDClassifier(average=True), batches of 512; width, alpha and loss (log, hinge) tuned",
        sgd_tuned, grid(c=WIDTHS, alpha=[1e-6, 1e-5, 1e-4], loss=["log_loss", "hinge"]),
    ),
    Contestant("river", "river logistic", "river", "one", "LogisticRegression defaults, learn_one", river_logistic),
    Contestant("logistic", "logistic", "scikit-learn", "batch", "LogisticRegression(max_iter=1000)", logistic),
    Contestant("LightGBM", "LightGBM", "lightgbm", "batch", "500 trees, learning rate 0.1, raw rows", lightgbm),
    Contestant(
        "SVC", "SVC", "scikit-learn", "batch", "RBF, gamma=\"scale\", C = 10; sets of at most 50,000 rows",
        svc, max_rows=50_000, slow=True,
    ),
)  # fmt: skip
