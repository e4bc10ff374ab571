"""The contestants: pairloom and widely used learners. Each makes a new model for a data set and settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any

from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from contest.datasets import GROUPS, Data
from contest.models import MedianWidth, OwnCategories, RowByRow, SamplerSGD, as_category, as_text
from pairloom import AUCClassifier
from pairloom.estimators import BoostingClassifier
from pairloom.features import Gaussian, OrthogonalFourier
from pairloom.systems import FPOGD, ExactAUC

Settings = dict[str, Any]

WIDTHS = [2.0**k for k in range(-2, 6)]
"""gamma in units of 1 / median squared distance."""
EVERYWHERE = tuple(GROUPS)
RAW = ("choosing", "reporting")
NUMBERS = tuple(name for name in GROUPS if name not in RAW)
FOREST_ROWS = 20_000
"""Maximum rows for river's forests, so that a fold takes about two minutes."""


def grid(**values: list[Any]) -> tuple[Settings, ...]:
    """Return all combinations."""
    return tuple(dict(zip(values, choice, strict=True)) for choice in product(*values.values()))


@dataclass(frozen=True)
class Size:
    """Sizes that the toy run reduces; ``first_rows``: of contestants that do not learn all rows.

    ``n_boosted``: trees of the boosted contestants on raw columns; None for those of their settings.
    """

    n_components: int = 1024
    n_trees: int = 500
    n_bagged: int = 100
    n_boosted: int | None = None
    first_rows: int | None = None


@dataclass(frozen=True)
class Contestant:
    """``make`` builds an unfitted model; ``grid``: its settings; ``max_rows``: the largest data set it takes part in.

    ``passes``: "one" if it learns rows in order, each once; "batch" if it needs them all. ``groups``: of data sets.
    ``first_rows``: the maximum number of training rows, if not all; ``fewer``: the same by data set.
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
    groups: tuple[str, ...] = ("sets",)
    first_rows: int | None = None
    fewer: Mapping[str, int] = field(default_factory=dict)

    def takes(self, data: Data) -> bool:
        return data.group in self.groups and data.n_rows <= (self.max_rows or data.n_rows)

    def n_first(self, data: Data, size: Size) -> int | None:
        """Return the maximum number of training rows on this data set; None for all."""
        own = self.fewer.get(data.name, self.first_rows)
        return own if own is None or size.first_rows is None else min(own, size.first_rows)

    @property
    def absent(self) -> str:
        """Why it is not available here; empty if it is."""
        module = {"scikit-learn": "sklearn"}.get(self.package, self.package)
        return "" if find_spec(module) else f"{self.package} is not installed: pip install -e '.[bench]'"


def auc_classifier(data: Data, size: Size, settings: Settings) -> Any:
    return AUCClassifier(random_state=0)


def boosting(data: Data, size: Size, settings: Settings) -> Any:
    return BoostingClassifier(random_state=0)


def fpogd(data: Data, size: Size, settings: Settings) -> Any:
    return make_pipeline(data.scaler(), FPOGD(random_state=0))


def fpogd_tuned(data: Data, size: Size, settings: Settings) -> Any:
    build = partial(FPOGD, n_components=size.n_components, eta=settings["eta"], average="poly", random_state=0)
    return MedianWidth(data.scaler(), build, settings["c"])


def sgd_tuned(data: Data, size: Size, settings: Settings) -> Any:
    build = partial(SamplerSGD, n_components=size.n_components, alpha=settings["alpha"], loss=settings["loss"])
    return MedianWidth(data.scaler(), build, settings["c"])


def river_logistic(data: Data, size: Size, settings: Settings) -> Any:
    from river.linear_model import LogisticRegression as Logistic
    from river.preprocessing import StandardScaler as Running

    return RowByRow(Running() | Logistic()) if data.unit is None else RowByRow(Logistic(), data.unit)


def arf(data: Data, size: Size, settings: Settings) -> Any:
    from river.forest import ARFClassifier

    return RowByRow(ARFClassifier(seed=0))


def amf(data: Data, size: Size, settings: Settings) -> Any:
    from river.forest import AMFClassifier

    return RowByRow(AMFClassifier(seed=0))


def exact_auc(data: Data, size: Size, settings: Settings) -> Any:
    features = OrthogonalFourier(size.n_components, Gaussian("median"))
    return make_pipeline(data.scaler(), ExactAUC(features=features, random_state=0))


def exact_auc_linear(data: Data, size: Size, settings: Settings) -> Any:
    return make_pipeline(StandardScaler(), ExactAUC())


def logistic(data: Data, size: Size, settings: Settings) -> Any:
    return make_pipeline(data.scaler(), LogisticRegression(max_iter=1000))


def lightgbm(n_leaves: int, data: Data, size: Size, settings: Settings) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=size.n_trees, num_leaves=n_leaves, learning_rate=0.1, n_jobs=1, random_state=0, verbose=-1
    )


def lightgbm_raw(settings_of: Settings, data: Data, size: Size, settings: Settings) -> Any:
    from lightgbm import LGBMClassifier

    fewer = {"n_estimators": size.n_boosted} if size.n_boosted else {}
    return OwnCategories(LGBMClassifier(**settings_of | fewer, n_jobs=1, random_state=0, verbose=-1), as_category)


def catboost(data: Data, size: Size, settings: Settings) -> Any:
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(
        iterations=size.n_boosted, thread_count=1, random_seed=0, verbose=0, allow_writing_files=False
    )
    return OwnCategories(model, as_text, "cat_features")


def hist_gradient_boosting(data: Data, size: Size, settings: Settings) -> Any:
    return HistGradientBoostingClassifier(max_iter=size.n_trees, early_stopping=False, random_state=0)


def extra_trees(data: Data, size: Size, settings: Settings) -> Any:
    return ExtraTreesClassifier(size.n_bagged, random_state=0)


def svc(data: Data, size: Size, settings: Settings) -> Any:
    return make_pipeline(data.scaler(), SVC(C=10.0, gamma="scale", cache_size=2000))


CONTESTANTS = (
    Contestant(
        "AUCClassifier", "AUCClassifier", "pairloom", "one", "defaults, raw rows", auc_classifier, groups=EVERYWHERE
    ),
    Contestant("Boosting", "BoostingClassifier", "pairloom", "one", "defaults, raw columns", boosting, groups=RAW),
    Contestant("FPOGD", "FPOGD, paper", "pairloom", "one", "the paper's defaults", fpogd),
    Contestant(
        "FPOGD-tuned", "FPOGD, tuned", "pairloom", "one", "D = 1024, average=\"poly\"; width and step tuned",
        fpogd_tuned, grid(c=WIDTHS, eta=[0.5, 0.25, 0.125, 0.03125]),
    ),
    Contestant("ExactAUC", "ExactAUC", "pairloom", "one", "OrthogonalFourier(1024), median width", exact_auc),
    Contestant(
        "ExactAUC-linear", "ExactAUC, linear", "pairloom", "one", "defaults: the columns themselves, alpha = 1e-4",
        exact_auc_linear, groups=NUMBERS,
    ),
    Contestant(
        "SGD-tuned", "RBFSampler + SGD, tuned", "scikit-learn", "one",
        "RBFSampler(1024), SGDClassifier(average=True), batches of 512; width, alpha and loss (log, hinge) tuned",
        sgd_tuned, grid(c=WIDTHS, alpha=[1e-6, 1e-5, 1e-4], loss=["log_loss", "hinge"]),
    ),
    Contestant("river", "river logistic", "river", "one", "LogisticRegression defaults, learn_one", river_logistic),
    Contestant(
        "ARF", "river ARF", "river", "one", "ARFClassifier defaults (10 trees), raw rows, the first 20,000 at most",
        arf, slow=True, first_rows=FOREST_ROWS,
    ),
    Contestant(
        "AMF", "river AMF", "river", "one",
        "AMFClassifier defaults (10 trees), raw rows, the first 20,000 at most, 4,000 on mnist",
        amf, slow=True, first_rows=FOREST_ROWS, fewer={"mnist": 4_000},
    ),
    Contestant(
        "logistic", "logistic", "scikit-learn", "batch", "LogisticRegression(max_iter=1000)", logistic,
        groups=EVERYWHERE,
    ),
    Contestant(
        "LightGBM", "LightGBM 31", "lightgbm", "batch", "500 trees of 31 leaves, learning rate 0.1, raw rows",
        partial(lightgbm, 31), groups=NUMBERS,
    ),
    Contestant(
        "LightGBM-255", "LightGBM 255", "lightgbm", "batch", "500 trees of 255 leaves, learning rate 0.1, raw rows",
        partial(lightgbm, 255), groups=NUMBERS,
    ),
    Contestant(
        "HistGradientBoosting", "HistGradientBoosting", "scikit-learn", "batch",
        "defaults, max_iter=500, no early stopping, raw rows", hist_gradient_boosting, groups=NUMBERS,
    ),
    Contestant(
        "ExtraTrees", "ExtraTrees", "scikit-learn", "batch", "100 trees of full depth, raw rows", extra_trees,
        groups=NUMBERS,
    ),
    Contestant(
        "LightGBM-7", "LightGBM 7", "lightgbm", "batch", "300 trees of 7 leaves, learning rate 0.05, raw columns",
        partial(lightgbm_raw, {"n_estimators": 300, "num_leaves": 7, "learning_rate": 0.05}), groups=RAW,
    ),
    Contestant(
        "LightGBM-defaults", "LightGBM defaults", "lightgbm", "batch", "defaults, raw columns",
        partial(lightgbm_raw, {}), groups=RAW,
    ),
    Contestant(
        "CatBoost", "CatBoost", "catboost", "batch", "defaults, raw columns", catboost, groups=RAW, slow=True,
    ),
    Contestant(
        "SVC", "SVC", "scikit-learn", "batch", "RBF, gamma=\"scale\", C = 10; sets of at most 50,000 rows",
        svc, max_rows=50_000, slow=True,
    ),
)  # fmt: skip
