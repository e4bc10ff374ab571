"""The columns of the AUC table: for every system, its constructor, its grid, and the number of rows it learns."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from typing import Any, Literal

from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from pairloom.estimators import AUCClassifier
from pairloom.features import Gaussian, RandomFourier
from pairloom.systems import (
    FPOGD,
    KOIL,
    OAM,
    OGD,
    OLP,
    OPAUC,
    OPERA,
    SOLAM,
    SPAM,
    AdaDSG,
    ExactAUC,
    FourierSGD,
    ProjectronPP,
    SparseKernelAUC,
)
from pairloom.theory import features_needed
from reproduction.cells import Settings
from reproduction.problems import Protocol, Shape, View

OPERA_ROWS = 4096
"""Maximum number of rows for OPERA: its model grows with each row."""
SQUARED_FEATURES = 1024
"""Maximum number of features of ExactAUC in a kernel space: it keeps D^2 numbers."""
SQUARED_COLUMNS = 2000
"""Systems that keep D^2 numbers are left out if there are more columns than this."""
SLOW_COLUMNS = 200
"""OPAUC, with a cost of D^2 per row, is tuned as a slow system if there are more columns than this."""
SVC_ROWS = 50_000
"""SVC is left out if a data set has more rows than this."""


def n_features_of(shape: Shape) -> int:
    """Return the paper's number of random features, sqrt(T) ln T for T training rows, rounded up."""
    return features_needed(shape.n_rows)


def unit_width(shape: Shape) -> float:
    """Return 1 / (2 d), the paper's width; for rows of norm 1, 1 / (4 median squared distance)."""
    return 1 / 8 if shape.sparse else 1 / (2 * shape.n_features)


Make = Callable[[Shape, Settings, int], Any]


def combined(**values: Any) -> list[Settings]:
    """Return all combinations."""
    return [dict(zip(values, choice, strict=True)) for choice in product(*values.values())]


def _nothing(shape: Shape, protocol: Protocol) -> list[Settings]:
    return []


def _always(shape: Shape) -> bool:
    return True


def _never(shape: Shape) -> bool:
    return False


def _takes_part(shape: Shape) -> str:
    return ""


def _linear_micros(shape: Shape) -> float:
    return 1.0 + shape.n_features * (1e-3 if shape.sparse else 6e-3)


def _fourier_micros(shape: Shape) -> float:
    """Return the time to map d columns to D features, and to read D numbers of 16 strata twice."""
    return 1.0 + n_features_of(shape) * (0.009 + 2e-5 * shape.n_features)


@dataclass(frozen=True)
class Column:
    """A system in the table.

    Parameters
    ----------
    make : an unfitted model, from the shape of a training part, settings and a seed
    grid : the settings to choose from; an empty list if there is nothing to tune
    view : the scaling of the rows
    most : maximum number of rows to learn; "capped" for the protocol's ``most_rows``
    slow : whether it is tuned on few rows
    left_out : the reason why it is skipped on a data set, or ""
    micros : estimated time per row
    one_pass : whether settings that differ only in steps and penalties are learned in one pass
    """

    name: str
    make: Make
    grid: Callable[[Shape, Protocol], list[Settings]] = _nothing
    view: View = "scaled"
    most: int | Literal["capped"] | None = None
    slow: Callable[[Shape], bool] = _never
    left_out: Callable[[Shape], str] = _takes_part
    micros: Callable[[Shape], float] = _linear_micros
    one_pass: bool = False

    def n_learned(self, shape: Shape, protocol: Protocol) -> int:
        """Return the number of training rows to learn."""
        most = protocol.most_rows if self.most == "capped" else self.most or shape.n_rows
        return min(shape.n_rows, most)

    def n_tuned(self, shape: Shape, protocol: Protocol) -> int:
        """Return the number of training rows for selecting settings."""
        return min(shape.n_rows, protocol.slow_selection_rows if self.slow(shape) else protocol.selection_rows)


def of(kind: Callable[..., Any], **fixed: Any) -> Make:
    """Return a function that creates a classifier from fixed parameters, settings and a seed."""

    def make(shape: Shape, settings: Settings, seed: int) -> Any:
        return kind(random_state=seed, **{**fixed, **settings})

    return make


def fpogd(**fixed: Any) -> Make:
    """FPOGD with the paper's number of features."""

    def make(shape: Shape, settings: Settings, seed: int) -> FPOGD:
        return FPOGD(n_components="auto", horizon=shape.n_rows, random_state=seed, **{**fixed, **settings})

    return make


def double_width(shape: Shape, settings: Settings, seed: int) -> Any:
    """FPOGD with the other interpretation of the paper's width, 1 / d."""
    return fpogd(gamma=1 / shape.n_features)(shape, settings, seed)


def kernel_exact(shape: Shape, settings: Settings, seed: int) -> ExactAUC:
    """ExactAUC in the space of "FPOGD, kernel", or in a smaller one."""
    features = RandomFourier(min(n_features_of(shape), SQUARED_FEATURES), Gaussian("paper"))
    return ExactAUC(features=features, random_state=seed, **settings)


def fourier_sgd(shape: Shape, settings: Settings, seed: int) -> FourierSGD:
    """FourierSGD in the space of "FPOGD, kernel"."""
    return FourierSGD(n_components=n_features_of(shape), random_state=seed, **settings)


def logistic(shape: Shape, settings: Settings, seed: int) -> Any:
    """Logistic regression of scikit-learn, with its default penalty."""
    return LogisticRegression(max_iter=1000)


def svc(shape: Shape, settings: Settings, seed: int) -> Any:
    """SVC of scikit-learn, with the Gaussian kernel."""
    return SVC(C=10.0, gamma="scale", cache_size=2000)


def lightgbm(shape: Shape, settings: Settings, seed: int) -> Any:
    """LightGBM with 500 trees of 31 leaves."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=500, learning_rate=0.1, n_jobs=1, random_state=seed, verbose=-1)


def steps_and_penalties(shape: Shape, protocol: Protocol) -> list[Settings]:
    """Return the paper's 64 settings."""
    return combined(alpha=protocol.lambdas, eta=protocol.etas)


def or_eight(shape: Shape, protocol: Protocol) -> list[Settings]:
    """Return the paper's settings, or only its steps if there are many columns."""
    return combined(eta=protocol.etas) if many_columns(shape) else steps_and_penalties(shape, protocol)


def many_columns(shape: Shape) -> bool:
    """Return whether a cost of D^2 per row is slow."""
    return shape.n_features > SLOW_COLUMNS


def too_wide(shape: Shape) -> str:
    """Return why systems that keep D^2 numbers are skipped."""
    n = shape.n_features
    return f"keeps the squares of {n:,} columns: {n * n / 1e6:,.0f} million numbers" if n > SQUARED_COLUMNS else ""


def too_long(shape: Shape) -> str:
    """Return why SVC is skipped."""
    return f"more than {SVC_ROWS:,} rows" if shape.n_rows > SVC_ROWS * 4 // 5 else ""


def no_lightgbm(shape: Shape) -> str:
    """Return why LightGBM is skipped."""
    return "" if find_spec("lightgbm") else "LightGBM is not installed: pip install -e '.[reproduce]'"


_COLUMNS = (
    Column(
        "FPOGD, kernel", fpogd(gamma="paper"), steps_and_penalties, micros=_fourier_micros, one_pass=True,
    ),
    Column("FPOGD, linear", fpogd(kernel="linear"), steps_and_penalties, view="unit", one_pass=True),
    Column(
        "SPAM-NET", of(SPAM, schedule="constant"),
        lambda shape, p: combined(alpha=p.net_lambdas, l1=p.net_lambdas, eta=p.etas), view="unit",
    ),
    Column("OGD", of(OGD, loss="square", schedule="constant"), steps_and_penalties, view="unit", one_pass=True),
    Column(
        "SparseKernelAUC", of(SparseKernelAUC), lambda shape, p: combined(alpha=p.lambdas), most="capped", slow=_always,
        micros=lambda shape: 1000.0,
    ),
    Column(
        "ProjectronPP", of(ProjectronPP), lambda shape, p: combined(theta=p.etas), most="capped", slow=_always,
        micros=lambda shape: 20.0 + 0.3 * shape.n_features,
    ),
    Column("Kar", of(OLP, loss="square", schedule="constant"), steps_and_penalties, view="unit", one_pass=True),
    Column("AUCClassifier", of(AUCClassifier), view="raw", micros=lambda shape: 150.0 + 0.5 * shape.n_features),
    Column(
        "FPOGD, 1/d", double_width, steps_and_penalties, micros=_fourier_micros,
        one_pass=True,
    ),
    Column(
        "FPOGD, tuned width", fpogd(),
        lambda shape, p: combined(
            gamma=[c * unit_width(shape) for c in p.widths], alpha=p.lambdas, eta=p.etas
        ),
        micros=_fourier_micros, one_pass=True,
    ),
    Column(
        "KOIL++", of(KOIL), lambda shape, p: combined(C=[1.0, 10.0], eta=p.etas[::2]), most="capped", slow=_always,
        micros=lambda shape: 10.0 + 0.3 * shape.n_features,
    ),
    Column(
        "OAM", of(OAM),
        lambda shape, p: combined(update=["sequential", "gradient"], C=p.lambdas), view="unit",
        micros=lambda shape: 3.0 + 0.02 * shape.n_features,
    ),
    Column(
        "OPAUC", of(OPAUC), or_eight, view="unit", slow=many_columns, left_out=too_wide,
        micros=lambda shape: 1.0 + 1e-3 * shape.n_features**2,
    ),
    Column(
        "SOLAM", of(SOLAM, schedule="constant"),
        lambda shape, p: combined(radius=[1.0, 10.0, 100.0], eta=p.etas), view="unit",
    ),
    Column("SPAM", of(SPAM, schedule="constant"), steps_and_penalties, view="unit"),
    Column(
        "OPERA", of(OPERA, pairs="opposite", max_rows=OPERA_ROWS), lambda shape, p: combined(eta=p.etas),
        most=OPERA_ROWS, slow=_always, micros=lambda shape: 500.0,
    ),
    Column("AdaDSG", of(AdaDSG), steps_and_penalties, view="unit", most="capped"),
    Column("FourierSGD", fourier_sgd, steps_and_penalties, micros=_fourier_micros),
    Column(
        "ExactAUC", of(ExactAUC), lambda shape, p: combined(alpha=p.lambdas), view="unit", left_out=too_wide,
        micros=lambda shape: 1.0 + 1e-4 * shape.n_features**2,
    ),
    Column(
        "ExactAUC, kernel", kernel_exact, lambda shape, p: combined(alpha=p.net_lambdas), slow=_always,
        micros=lambda shape: _fourier_micros(shape) + 70.0,
    ),
    Column("logistic", logistic, micros=lambda shape: 1.0 + 0.2 * shape.n_features),
    Column(
        "SVC", svc, left_out=too_long,
        micros=lambda shape: shape.n_rows * 2e-4 * (1.0 + 0.5 * min(shape.n_features, 500)),
    ),
    Column(
        "LightGBM", lightgbm, view="raw", left_out=no_lightgbm, micros=lambda shape: 20.0 + 1.2 * shape.n_features
    ),
)  # fmt: skip

COLUMNS = {column.name: column for column in _COLUMNS}
"""The paper's systems first, then ours and those beyond the paper, then the batch references."""
