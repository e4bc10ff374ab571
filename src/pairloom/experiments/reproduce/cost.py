"""Cost: CPU time per example against the sizes s, D, d and T, beside the paper's O(.) and the true one.

Each cell times one system at one value of one size, the others as its sweep in ``configs/cost.toml`` holds them; its
fold is the number of the repetition. A record has

- ``micros``: microseconds of CPU time (``time.process_time``) per example,
- ``rows``: examples that were timed.

Sizes: d columns, D features, s examples kept (strata per class for FPOGD), T rows of the stream. Against s, D and d,
the clock starts once the memory is full; against T, each stream is learned from its first row, so that ``micros`` is
the mean over T rows. In both cases everything is compiled before, and what is timed is the algorithm without the
calibration of probabilities (:mod:`.streams`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from time import process_time
from typing import Any, Literal

import numpy as np

from pairloom import systems
from pairloom.base.typing import Array
from pairloom.data import imbalanced
from pairloom.experiments.reproduce.cells import Cell, Record, Task
from pairloom.experiments.reproduce.columns import Protocol
from pairloom.experiments.reproduce.config import read
from pairloom.experiments.reproduce.fits import Slope, slope
from pairloom.experiments.reproduce.streams import core, learn
from pairloom.stream import Stream

NAME = "cost"

Size = Literal["s", "D", "d", "T"]


@dataclass(frozen=True)
class System:
    """How a system of the library is made of sizes: the parameter that each one is, and parameters that are fixed."""

    kind: str
    sizes: Mapping[str, str]
    fixed: Mapping[str, Any]

    def made(self, sizes: Mapping[str, int], seed: int) -> Any:
        """The estimator."""
        named = {parameter: sizes[size] for size, parameter in self.sizes.items()}
        return getattr(systems, self.kind)(**named, **self.fixed, random_state=seed)


WIDTH = {"gamma": 0.5}
"""Rows have norm 1 in the mean, so k(x, x') is about 1 / e."""

SYSTEMS = {
    "FPOGD, kernel": System("FPOGD", {"s": "max_strata", "D": "n_components"}, {"eps": 0.0, **WIDTH}),
    "FPOGD, linear": System("FPOGD", {"s": "max_strata"}, {"eps": 0.0, "kernel": "linear"}),
    "AdaDSG": System("AdaDSG", {}, {}),
    "SPAM": System("SPAM", {}, {}),
    "SOLAM": System("SOLAM", {}, {}),
    "OAM": System("OAM", {"s": "size"}, {}),
    "OPAUC": System("OPAUC", {}, {}),
    "OGD": System("OGD", {}, {}),
    "Kar": System("OLP", {"s": "size"}, {}),
    "OPERA": System("OPERA", {"T": "max_rows"}, WIDTH),
    "SparseKernelAUC": System("SparseKernelAUC", {"s": "max_support"}, {"tol": 0.0, **WIDTH}),
    "AllPairs": System("AllPairs", {"T": "max_rows"}, {"form": "history"}),
    "AllPairs, moments": System("AllPairs", {}, {"form": "moments"}),
    "ProjectronPP": System("ProjectronPP", {"s": "max_supports"}, WIDTH),
    "KOIL": System("KOIL", {"s": "budget"}, WIDTH),
}
"""eps = 0: every row founds a stratum until there are s. tol = 0: rows are added until there are s."""


@dataclass(frozen=True)
class Sweep:
    """One system against one size.

    Parameters
    ----------
    system, axis, values : what is varied, and over what
    quick : the values of a quick run
    sizes : the sizes that are held
    fit_from : the value from which on the varied term is most of the cost; the exponent is fitted from there
    true, true_cost : the exponent that the system's true cost per example has in this size, and that cost
    paper, paper_cost : the same by the paper, if it says
    slowest : a guess of the CPU seconds that the last value takes, besides what every timing does
    """

    system: str
    axis: Size
    values: tuple[int, ...]
    quick: tuple[int, ...]
    sizes: dict[str, int]
    fit_from: int
    true: float
    true_cost: str
    paper: float | None = None
    paper_cost: str = ""
    slowest: float = 0.0


@dataclass(frozen=True)
class Config:
    """``configs/cost.toml``. ``seconds``: the least CPU time of a timing; ``positive``: share of positive rows."""

    repetitions: int
    seconds: float
    positive: float
    sweeps: tuple[Sweep, ...]


class Cost:
    """Time per example of FPOGD against all sizes, and of every system of the paper's Table 1 against T."""

    name = NAME

    def tasks(self, quick: bool, datasets: tuple[str, ...] | None) -> list[Task]:
        """Streams are synthetic: ``datasets`` has no meaning here."""
        config, seed = read(NAME, Config, quick), read("protocol", Protocol, quick).seed
        return [
            _task(config, sweep, value, repetition, seed)
            for sweep in config.sweeps
            for value in (sweep.quick if quick else sweep.values)
            for repetition in range(config.repetitions)
        ]


def _task(config: Config, sweep: Sweep, value: int, repetition: int, seed: int) -> Task:
    arguments = {
        "system": sweep.system, "axis": sweep.axis, "sizes": {**sweep.sizes, sweep.axis: value},
        "seconds": config.seconds, "positive": config.positive, "seed": seed + repetition,
    }  # fmt: skip
    guess = 3 * config.seconds + sweep.slowest * (value / sweep.values[-1]) ** (1 + sweep.true)
    return Task(Cell(NAME, "", sweep.system, sweep.axis, value, repetition), measure, arguments, guess)


def measure(system: str, axis: Size, sizes: dict[str, int], seconds: float, positive: float, seed: int) -> list[Record]:
    """Time one system at given sizes."""
    X, y = rows_of(sizes["T"], sizes["d"], positive, seed)
    timed = whole_streams if axis == "T" else steady_state
    rows, passed = timed(SYSTEMS[system].made(sizes, seed), X, y, seconds)
    return [{"micros": 1e6 * passed / rows, "rows": rows}]


def rows_of(n: int, d: int, positive: float, seed: int) -> tuple[Array, Array]:
    """Rows of norm 1 in the mean, float32 as the systems are."""
    X, y = imbalanced(n, d, positive=positive, seed=seed)
    return (X / np.sqrt(d)).astype(np.float32), y


def steady_state(system: Any, X: Array, y: Array, seconds: float) -> tuple[int, float]:
    """Rows and CPU seconds once T rows are learned: the same rows again and again, as long as it takes."""
    stream = core(system, X, y)
    learn(stream, X, y)
    rows, passed = 0, 0.0
    while passed < seconds:
        began = process_time()
        learn(stream, X, y)
        passed += process_time() - began
        rows += len(y)
    return rows, passed


def whole_streams(system: Any, X: Array, y: Array, seconds: float) -> tuple[int, float]:
    """Rows and CPU seconds of learning T rows from the first on, as often as it takes."""
    model = core(system, X, y).model
    rows, passed = 0, 0.0
    while passed < seconds:
        began = process_time()
        learn(Stream(model), X, y, whole=system.needs_all_rows)
        passed += process_time() - began
        rows += len(y)
    return rows, passed


def sweeps() -> dict[tuple[str, str], Sweep]:
    """What is run, by system and axis."""
    return {(sweep.system, sweep.axis): sweep for sweep in read(NAME, Config, quick=False).sweeps}


def exponent(records: Iterable[Record], sweep: Sweep) -> Slope | None:
    """The fitted exponent of a sweep, of the records of this experiment; None from fewer than two values."""
    points = [
        (float(one["value"]), float(one["micros"]))
        for one in records
        if one["system"] == sweep.system and one["axis"] == sweep.axis and one["value"] >= sweep.fit_from
    ]
    return slope([value for value, _ in points], [micros for _, micros in points])
