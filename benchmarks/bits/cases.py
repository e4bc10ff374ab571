"""The cases of ``same_bits.py``: models of the public interface, and the streams that they learn.

Names of cases do not depend on the layout of the package: they contain no reprs and no modules.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import pairloom as pl
from pairloom import systems
from pairloom.features import (
    Cauchy,
    Gaussian,
    Growing,
    Identity,
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
from pairloom.pairs import ClassDifference, Difference, OppositeClass, Order
from pairloom.steps import L2, Ball, Constant, ElasticNet, Horizon, PassiveAggressive, Polynomial, Sqrt

try:
    from pairloom.estimators.transformer import FeatureTransformer
except ImportError:
    from pairloom.transformer import FeatureTransformer
try:
    from pairloom.estimators import BoostingClassifier

    BOOSTING: tuple[Any, ...] = (BoostingClassifier,)
except ImportError:
    BOOSTING = ()

CALIBRATED = " (calibrated)"
CUTS = [1, 3, 70, 71, 256, 300, 690, 1000, 1030, 1400]
RULES = {"gamma": "median", "scale": "standard"}


@dataclass(frozen=True)
class Setting:
    """A stream, how it is divided into calls, and changes to the parameters of a model."""

    n: int
    rows: str = "float64"
    cut: str = "whole"
    weighted: bool = False
    classes: int = 2
    changes: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        words = [f"{self.n} rows", self.rows, self.cut]
        words += ["weights"] * self.weighted + ["three classes"] * (self.classes == 3)
        return ", ".join(words + [f"{name}={text_of(value)}" for name, value in self.changes.items()])


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else type(value).__name__


SETTINGS = [
    Setting(700),
    Setting(700, "csr", "chunks", weighted=True),
    Setting(700, "float32", "chunks", weighted=True, classes=3, changes=RULES),
    Setting(1500, "float32", "chunks", changes=RULES),
    Setting(1500, "csr", weighted=True, classes=3),
    Setting(1500, weighted=True, changes={"features": RandomFourier(64, Gaussian("median"))}),
    Setting(150, cut="rows", weighted=True),
    Setting(700, "csr", changes={"dtype": "float64", **RULES}),
    Setting(700, weighted=True, classes=3, changes={"dtype": "float64"}),
    Setting(150, "csr", weighted=True, classes=3, changes={"engine": "reference"}),
    Setting(150, cut="chunks", weighted=True, changes={"engine": "reference", **RULES}),
]
RACES = [
    Setting(300),
    Setting(300, "csr", "chunks", weighted=True, classes=3),
    Setting(60, cut="rows", weighted=True),
    Setting(4300, "float32", "chunks"),
]
PARTS = [
    Setting(700, "float32", "chunks", weighted=True),
    Setting(1500, "csr"),
    Setting(700, changes={"dtype": "float64"}),
    Setting(150, weighted=True, changes={"engine": "reference"}),
]
COLUMNS = 64
NARROW = 10


class Stream(NamedTuple):
    """Rows to learn and rows to score; labels as classes and as real numbers."""

    X: Any
    classes: np.ndarray
    real: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray | None
    new: Any


@cache
def stream(n: int, rows: str, n_classes: int, weighted: bool) -> Stream:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n + 200, COLUMNS if rows == "csr" else NARROW))
    X[np.abs(X) < (1.2 if rows == "csr" else 0.3)] = 0.0
    X[n // 2 : n // 2 + 40] = X[:40]  # exact ties
    score = np.square(X[:, :6]).sum(axis=1) + 2 * X[:, 0] + 0.5 * rng.normal(size=len(X))
    classes = np.digitize(score, np.quantile(score, [0.5, 0.8] if n_classes == 3 else [0.75]))
    weight = rng.choice([0.0, 0.5, 1.0, 2.5, 7.0], n) if weighted else None
    groups = np.arange(n) // 20 if weighted else None
    made = sp.csr_array(X) if rows == "csr" else X.astype(rows)
    return Stream(made[:n], classes[:n], score[:n] / 10, weight, groups, made[n:])


@dataclass(frozen=True)
class Case:
    """A model, and what it learns."""

    kind: str
    name: str
    make: Callable[[], Any]
    setting: Setting
    real: bool = False

    def run(self) -> dict[str, np.ndarray]:
        """Arrays of float64 by name."""
        s, model = self.setting, self.make()
        if hasattr(model, "init"):
            model = pl.Stream(model)
        data = stream(s.n, s.rows, s.classes, s.weighted)
        if hasattr(model, "transform"):
            made = {"": model.fit(data.X).transform(data.new)}
        else:
            made = outputs(self.teach(model, data), data.new)
        dense = {suffix: a.toarray() if sp.issparse(a) else a for suffix, a in made.items()}
        return {f"{self.name}: {s}{suffix}": np.ascontiguousarray(a, dtype=float) for suffix, a in dense.items()}

    def teach(self, model: Any, data: Stream) -> Any:
        y = data.real if self.real else data.classes
        online = hasattr(model, "partial_fit")
        if self.setting.cut == "rows" and hasattr(model, "learn_one"):
            for i, x in enumerate(data.X):
                model.learn_one(x, y[i].item(), sample_weight=1.0 if data.weight is None else data.weight[i])
            return model
        whole = hasattr(model, "fit") and (self.setting.cut == "whole" or not online)
        call = model.fit if whole else model.partial_fit
        known = inspect.signature(call).parameters
        more = {"classes": np.unique(y)} if "classes" in known else {}
        cuts = [cut for cut in CUTS if cut < len(y)] if self.setting.cut == "chunks" and not whole else []
        for part in np.split(np.arange(len(y)), cuts):
            each = {"sample_weight": data.weight, "groups": data.groups}
            named = {name: values[part] for name, values in each.items() if name in known and values is not None}
            call(data.X[part], y[part], **named, **more)
        return model


def outputs(model: Any, X: Any) -> dict[str, np.ndarray]:
    """Raw scores and, of an estimator, what it makes of them."""
    learner = getattr(model, "stream_", getattr(model, "learner_", model))
    made = {}
    for name in ("score", "score_rows"):
        # An estimator without a learner has another ``score``, of rows and labels.
        with suppress(AttributeError, TypeError):
            made[""] = getattr(learner, name)(X)
            break
    decide = getattr(model, "decision_function", getattr(model, "predict", None))
    if decide is not None:
        made[CALIBRATED] = decide(X)
    return made


def forms() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Every published form of every estimator: name, class, parameters."""
    kinds = [getattr(systems, name) for name in sorted(systems.__all__)]
    for kind in [*kinds, *BOOSTING, pl.AUCClassifier, pl.PairwiseRanker, pl.PairwiseRegressor]:
        for suffix, parameters in getattr(kind, "variants", {"": {}}).items():
            yield kind.__name__ + suffix, kind, parameters


def estimators() -> Iterator[Case]:
    sizes = {"random_state": 0, "n_components": 64, "max_support": 20}
    for name, kind, parameters in forms():
        race, real = kind is pl.AUCClassifier, kind in (pl.PairwiseRanker, pl.PairwiseRegressor)
        for setting in RACES if race else SETTINGS:
            known = inspect.signature(kind).parameters
            changes = {"random_state": 0} if race else sizes | setting.changes
            if "features" in setting.changes and "features" not in known:
                continue
            changes = {key: value for key, value in changes.items() if key in known} | parameters
            yield Case("estimators", name, partial(kind, **changes), setting, real)


FOURIER = RandomFourier(64, Gaussian("median"))
BY_INPUT = Strata(cluster_in="input")
JOINT = Strata(by="joint", normalization="history")

MAPS = {
    "Identity": Identity(),
    "Identity, standard": Identity(scale="standard"),
    "Laplace, odd, minmax": RandomFourier(63, Laplace("median"), scale="minmax"),
    "Cauchy, maxabs": RandomFourier(64, Cauchy(0.3), scale="maxabs"),
    "Matern52": RandomFourier(64, Matern52("median")),
    "OrthogonalFourier": OrthogonalFourier(64, Matern32("median")),
    "Nystroem": Nystroem(40, Gaussian("median"), scale="standard"),
    "Nystroem, rank": Nystroem(30, Matern32(0.1), rank=12),
    "Whitened": Whitened(FOURIER, 8),
    "Whitened Identity": Whitened(Identity(), 3),
    "Whitened Nystroem": Whitened(Nystroem(40, Gaussian("median")), 6),
}
MEMORIES = {
    "Latest, previous": Latest("previous", size=5),
    "Latest, opposite": Latest("opposite", size=3),
    "Reservoir": Reservoir(6),
    "Reservoir, joint": Reservoir(9, by="joint"),
    "RSx": RSx(7),
    "RSx, class": RSx(5, by="class"),
    "RSx, sum": RSx(5, by="class", normalization="sum"),
    "Window": Window(16),
    "WholeHistory": WholeHistory(1500),
    "WholeHistory, joint": WholeHistory(1500, by="joint"),
    "Strata, reservoir": Strata(eps=0.3, max_strata=7, representative="reservoir"),
    "Strata, centroid": Strata(representative="centroid", centroid_step="mean"),
    "Strata, input": BY_INPUT,
    "Strata, joint": JOINT,
    "Strata, neyman": Strata(allocation="neyman"),
}
STEPS = {
    "Sqrt": Sqrt(0.5),
    "Polynomial": Polynomial(0.5),
    "Horizon": Horizon(2.0, horizon=700),
}
LOSSES = {"Hinge": Hinge(), "SquaredHinge": SquaredHinge(), "Logistic": Logistic()}
PAIRS = {"Order": Order(), "Difference": Difference(), "ClassDifference": ClassDifference()}
PENALTIES = {
    "L2": L2(0.5),
    "L2, proximal": L2(0.5, "proximal"),
    "ElasticNet": ElasticNet(1e-3, l1=0.05),
    "Ball": Ball(0.3),
}
LEARNERS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "Growing": {"features": Growing(64, kernel=Gaussian("median"), block=16), "memory": BY_INPUT},
    "PassiveAggressive": {"step": PassiveAggressive(0.1), "loss": Hinge()},
    "mean": {"average": "mean"},
    "poly": {"average": "poly", "loss": Logistic()},
    **{name: {"features": part} for name, part in MAPS.items()},
    **{name: {"memory": part} for name, part in MEMORIES.items()},
    **{f"linear, {name}": {"features": Identity(), "memory": part} for name, part in MEMORIES.items()},
    **{name: {"step": part} for name, part in STEPS.items()},
    **{name: {"loss": part} for name, part in LOSSES.items()},
    **{name: {"pairs": part, "memory": JOINT} for name, part in PAIRS.items()},
    **{name: {"penalty": part} for name, part in PENALTIES.items()},
    **{f"linear, mean, {name}": {"features": Identity(), "penalty": part, "average": "mean"}
       for name, part in PENALTIES.items()},
}  # fmt: skip


def learners() -> Iterator[Case]:
    """Mostly one part changed at a time."""
    base = pl.Learner(features=FOURIER, step=Constant(0.1), penalty=L2(1e-4), seed=0)
    for name, change in LEARNERS.items():
        real = isinstance(change.get("pairs"), (Order, Difference))
        for setting in PARTS:
            make = partial(replace, base, **change, **setting.changes)
            yield Case("learners", f"Learner, {name}", make, setting, real)


def grids() -> Iterator[Case]:
    tried = [(0.01, Square(), "last"), (0.1, Hinge(), "mean"), (0.3, Logistic(), "poly")]
    for name, features, n_classes in (("Fourier", FOURIER, 2), ("Identity", Identity(), 3)):
        one = pl.Learner(features=features, pairs=OppositeClass(n_classes), seed=0)
        models = [replace(one, step=Constant(eta), loss=loss, average=average) for eta, loss, average in tried]
        for setting in PARTS[:2]:
            yield Case("grids", f"Grid, {name}", partial(pl.Grid, models), replace(setting, classes=n_classes))


def transformers() -> Iterator[Case]:
    for name, features in {"Fourier": FOURIER, **MAPS}.items():
        for setting in (Setting(700), Setting(700, "csr")):
            make = partial(FeatureTransformer, features, random_state=0)
            yield Case("maps", f"FeatureTransformer, {name}", make, setting)


def cases(toy: bool) -> list[Case]:
    """All, or for a toy run a few of those that compile fast."""
    made = [*estimators(), *learners(), *grids(), *transformers()]
    few = [case for case in made if case.name in ("SPAM-L2", "Learner, Identity", "FeatureTransformer, Identity")]
    return few[:4] + few[-4:] if toy else made
