"""The columns of the AUC table: for every system, its constructor, its grid, and the number of rows it learns."""

from importlib.util import find_spec
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from pairloom import Learner
from pairloom.estimators import AUCClassifier
from pairloom.features import Gaussian, RandomFourier
from pairloom.memory import Latest
from pairloom.steps import L2, Constant
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
    AdaOAM,
    ExactAUC,
    FourierSGD,
    ProjectronPP,
    SparseKernelAUC,
)
from reproduction.cells import Settings
from reproduction.column import Column, Make, combined, n_features_of, of, own_column, unit_width
from reproduction.problems import Protocol, Shape
from reproduction.released import ROWS, ReleasedCode

SLOTS = 16
"""Examples kept for each class by every system that keeps some to pair with: FPOGD, the queue, Kar and OAM."""
SQUARED_FEATURES = 1024
"""Maximum number of features of ExactAUC in a kernel space: it keeps D^2 numbers."""
SQUARED_COLUMNS = 2000
"""Systems that keep D^2 numbers are left out if there are more columns than this."""
SLOW_COLUMNS = 400
"""OPAUC and AdaOAM, with a cost of D^2 per row, are tuned as slow systems if there are more columns than this."""
SVC_ROWS = 20_000
"""SVC is left out if it would learn more rows than this."""


def fourier_micros(shape: Shape) -> float:
    """Return the time to map d columns to D features, and to read D numbers of 16 strata twice."""
    return 1.0 + n_features_of(shape) * (0.009 + 2e-5 * shape.n_features)


def fpogd(**fixed: Any) -> Make:
    """FPOGD with the paper's number of features."""

    def make(shape: Shape, settings: Settings, seed: int) -> FPOGD:
        given = {"max_strata": SLOTS, **fixed, **settings}
        return FPOGD(n_components="auto", horizon=shape.n_rows, random_state=seed, **given)

    return make


def double_width(shape: Shape, settings: Settings, seed: int) -> Any:
    """FPOGD with the other interpretation of the paper's width, 1 / d."""
    return fpogd(gamma=1 / shape.n_features)(shape, settings, seed)


def newest_rows(shape: Shape, settings: Settings, seed: int) -> Learner:
    """The control without strata: "FPOGD, kernel" with a queue of the newest rows of each class."""
    features = RandomFourier(n_features_of(shape), Gaussian(settings.get("gamma", "paper")))
    step, penalty = Constant(settings.get("eta", 0.125)), L2(settings.get("alpha", 1e-6))
    return Learner(features=features, memory=Latest("opposite", SLOTS), step=step, penalty=penalty, seed=seed)


def kernel_exact(shape: Shape, settings: Settings, seed: int) -> ExactAUC:
    """ExactAUC in the space of "FPOGD, kernel", or in a smaller one."""
    features = RandomFourier(min(n_features_of(shape), SQUARED_FEATURES), Gaussian("paper"))
    return ExactAUC(features=features, random_state=seed, **settings)


def fourier_sgd(shape: Shape, settings: Settings, seed: int) -> FourierSGD:
    """FourierSGD in the space of "FPOGD, kernel"."""
    return FourierSGD(n_components=n_features_of(shape), random_state=seed, **settings)


def lightgbm(shape: Shape, settings: Settings, seed: int) -> Any:
    """LightGBM with 500 trees of 31 leaves."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=500, learning_rate=0.1, n_jobs=1, random_state=seed, verbose=-1)


def steps(shape: Shape, protocol: Protocol) -> list[float]:
    """Return the steps; longer ones too for text, whose kernel of the paper's width hardly differs between rows."""
    return [*protocol.etas, *(2.0**k for k in range(7, 13) if shape.sparse)]


def coarse_steps(shape: Shape, protocol: Protocol) -> list[float]:
    """Return every second step, for systems that cannot share passes."""
    return [*protocol.coarse_etas, *(2.0**k for k in range(8, 13, 2) if shape.sparse)]


def stable(grid: list[Settings]) -> list[Settings]:
    """Return the settings whose explicit step of the penalty does not change the sign of the weights."""
    return [one for one in grid if one["eta"] * one["alpha"] < 1]


def steps_and_penalties(shape: Shape, protocol: Protocol) -> list[Settings]:
    """Return all steps with all penalties, for systems that share a pass."""
    return stable(combined(alpha=protocol.lambdas, eta=steps(shape, protocol)))


def coarse(shape: Shape, protocol: Protocol) -> list[Settings]:
    """Return every second step with every penalty."""
    return stable(combined(alpha=protocol.lambdas, eta=coarse_steps(shape, protocol)))


def steps_widths_and_penalties(shape: Shape, protocol: Protocol) -> list[Settings]:
    """Return all steps with all widths and some penalties."""
    return stable(combined(gamma=widths(shape, protocol), alpha=protocol.lambdas[::2], eta=steps(shape, protocol)))


def long_steps(shape: Shape, protocol: Protocol) -> list[Settings]:
    """Return the steps of OPERA: they are divided by a power of the row number."""
    return combined(eta=[8.0**k for k in range(-1, 6)])


def widths(shape: Shape, protocol: Protocol) -> list[float]:
    """Return the widths to choose from."""
    return [c * unit_width(shape) for c in protocol.widths]


def koil(shape: Shape, protocol: Protocol) -> list[Settings]:
    """Return steps, at most 1 for KOIL, and weights of its loss."""
    return combined(C=[0.1, 1.0, 10.0, 100.0, 1e3, 1e5, 1e7], eta=[1e-4, 1e-3, 0.01, 0.1, 0.5])


def thetas(shape: Shape, protocol: Protocol) -> list[Settings]:
    """Return squared distances up to which Projectron++ projects; a kernel of a row with itself is 1."""
    return combined(theta=[0.0, 1e-6, 1e-5, 1e-4, 1e-3, 0.004, 0.016, 0.0625, 0.25, 0.5])


def too_wide(shape: Shape) -> str:
    """Return why systems that keep D^2 numbers are skipped."""
    n = shape.n_features
    return f"keeps the squares of {n:,} columns: {n * n / 1e6:,.0f} million numbers" if n > SQUARED_COLUMNS else ""


def too_long(shape: Shape) -> str:
    """Return why SVC is skipped."""
    return f"more than {SVC_ROWS:,} rows" if shape.n_rows > SVC_ROWS else ""


def no_lightgbm(shape: Shape) -> str:
    """Return why LightGBM is skipped."""
    return "" if find_spec("lightgbm") else "LightGBM is not installed: pip install -e '.[reproduce]'"


def _always(shape: Shape) -> bool:
    return True


def _text(shape: Shape) -> bool:
    return shape.sparse


def _wide(shape: Shape) -> bool:
    return shape.n_features > SLOW_COLUMNS


KOIL_COST: dict[str, Any] = {
    "limited": True, "slow": _text, "micros": lambda shape: 12.0 + 0.25 * shape.n_features,
}  # fmt: skip
# In float32, Projectron++ takes all rows of text for copies of the first: at the paper's width they are too similar.
projectron = of(ProjectronPP, dtype="float64")
PROJECTRON_COST: dict[str, Any] = {
    "limited": True, "micros": lambda shape: 500.0 if shape.sparse else 20.0 + 0.1 * shape.n_features,
}  # fmt: skip
# Controls for the released code, which stops early. Tuned on few rows, of which two thirds are ROWS too.
EARLY: dict[str, Any] = {"most": lambda shape: ROWS, "slow": _always}
SHARED: dict[str, Any] = {"micros": fourier_micros, "one_pass": True}

_COLUMNS = (
    Column("FPOGD, kernel", fpogd(gamma="paper"), steps_and_penalties, **SHARED),
    Column("FPOGD, linear", fpogd(kernel="linear"), steps_and_penalties, view="unit", one_pass=True),
    Column(
        "SPAM-NET", of(SPAM, schedule="constant"),
        lambda shape, p: combined(alpha=p.lambdas[1::2], l1=p.lambdas, eta=coarse_steps(shape, p)),
        view="unit",
    ),
    Column("OGD", of(OGD, loss="square", schedule="constant"), steps_and_penalties, view="unit", one_pass=True),
    Column(
        "SparseKernelAUC", of(SparseKernelAUC), lambda shape, p: combined(alpha=p.lambdas), limited=True,
        micros=lambda shape: 100.0 if shape.sparse else 60.0 + 0.7 * shape.n_features,
    ),
    Column("ProjectronPP", projectron, thetas, **PROJECTRON_COST),
    Column(
        "Kar", of(OLP, size=2 * SLOTS, loss="square", schedule="constant"), steps_and_penalties, view="unit",
        one_pass=True,
    ),
    Column("newest rows, kernel", newest_rows, steps_and_penalties, **SHARED),
    Column("newest rows, tuned width", newest_rows, steps_widths_and_penalties, **SHARED),
    Column("FPOGD, centroid", fpogd(gamma="paper", representative="centroid"), steps_and_penalties, **SHARED),
    Column(
        "FPOGD, as printed", fpogd(gamma="paper", strata="joint", normalization="history", max_strata=2 * SLOTS),
        steps_and_penalties, **SHARED,
    ),
    Column("released code", of(ReleasedCode), lambda shape, p: combined(eta=p.etas), most=lambda shape: ROWS),
    Column("FPOGD, kernel, 1,000 rows", fpogd(gamma="paper"), steps_and_penalties, **EARLY, **SHARED),
    Column(
        "FPOGD, linear, 1,000 rows", fpogd(kernel="linear"), steps_and_penalties, view="unit", one_pass=True, **EARLY
    ),
    Column("FPOGD, 1/d", double_width, steps_and_penalties, **SHARED),
    Column(
        "FPOGD, tuned width", fpogd(), steps_widths_and_penalties, **SHARED,
    ),
    Column("AUCClassifier", of(AUCClassifier), view="raw", micros=lambda shape: 150.0 + 0.5 * shape.n_features),
    Column("KOIL++", of(KOIL), koil, **KOIL_COST),
    Column(
        "KOIL++, tuned width", of(KOIL),
        lambda shape, p: [{"gamma": g, **one} for g in widths(shape, p)[::2] for one in koil(shape, p)[::2]],
        left_out=lambda shape: too_wide(shape).replace("keeps the squares of", "slow to tune with"), **KOIL_COST,
    ),
    Column(
        "ProjectronPP, tuned width", projectron,
        lambda shape, p: [{"gamma": g, **one} for g in widths(shape, p) for one in thetas(shape, p)[::2]],
        slow=_text, **PROJECTRON_COST,
    ),
    Column(
        "OAM", of(OAM, size=SLOTS),
        lambda shape, p: combined(update=["sequential", "gradient"], C=[10.0**k for k in range(-8, 3)]), view="unit",
        micros=lambda shape: 3.0 + 0.02 * shape.n_features,
    ),
    Column(
        "OPAUC", of(OPAUC), coarse, view="unit", slow=_wide,
        left_out=too_wide, micros=lambda shape: 1.0 + 1e-3 * shape.n_features**2,
    ),
    Column(
        "AdaOAM", of(AdaOAM), coarse, view="unit", slow=_wide,
        left_out=too_wide, micros=lambda shape: 1.0 + 1e-3 * shape.n_features**2,
    ),
    Column(
        "SOLAM", of(SOLAM, schedule="constant"),
        lambda shape, p: combined(radius=[0.1, 1.0, 10.0, 100.0, 1000.0], eta=coarse_steps(shape, p)),
        view="unit",
    ),
    Column("SPAM", of(SPAM, schedule="constant"), coarse, view="unit"),
    Column(
        "OPERA", of(OPERA, pairs="opposite", max_rows=4096), long_steps, slow=_always, micros=lambda shape: 800.0,
        most=lambda shape: 1024 if shape.sparse else 4096,
    ),
    Column("AdaDSG", of(AdaDSG), coarse, view="unit"),
    Column("FourierSGD", fourier_sgd, coarse, micros=fourier_micros),
    Column(
        "ExactAUC", of(ExactAUC), lambda shape, p: combined(alpha=p.lambdas), view="unit", left_out=too_wide,
        slow=_wide, micros=lambda shape: 1.0 + 1e-4 * shape.n_features**2,
    ),
    Column(
        "ExactAUC, kernel", kernel_exact, lambda shape, p: combined(alpha=[1e-6, 1e-4, 1e-2]), slow=_always,
        micros=lambda shape: fourier_micros(shape) + 70.0,
    ),
    Column(
        "logistic", lambda shape, settings, seed: LogisticRegression(max_iter=1000), seeded=False,
        micros=lambda shape: 1.0 + 0.2 * shape.n_features,
    ),
    Column(
        "SVC", lambda shape, settings, seed: SVC(C=10.0, gamma="scale", cache_size=2000), left_out=too_long,
        seeded=False, micros=lambda shape: shape.n_rows * 2e-4 * (1.0 + 0.5 * min(shape.n_features, 500)),
    ),
    Column(
        "LightGBM", lightgbm, view="raw", left_out=no_lightgbm, seeded=False,
        micros=lambda shape: 20.0 + 1.2 * shape.n_features,
    ),
)  # fmt: skip

COLUMNS = {column.name: column for column in _COLUMNS}
"""The paper's systems first, then controls, then ours and those beyond the paper, then the batch references."""


def column_of(name: str, grid: dict[str, list[Any]] | None = None) -> Column:
    """Return a column by its name, or that of a class of yours, ``module:Class``."""
    if ":" in name:
        return own_column(name, grid or {})
    if name not in COLUMNS:
        raise ValueError(f"no system {name!r}; there are {'; '.join(COLUMNS)}; or MODULE:CLASS for a class of yours")
    return COLUMNS[name]
