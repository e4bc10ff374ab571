"""Cost: CPU time per example against the sizes s, D, d and T.

Each cell times one system at one value of one size; its sweep in ``configs/cost.toml`` gives the other sizes. The fold
is the number of the repetition. Columns of a record:

- ``micros``: microseconds of CPU time (``time.process_time``) per example,
- ``rows``: number of timed examples.

Sizes: d columns, D features, s kept examples (strata per class for FPOGD), T rows of the stream. Against s, D and d,
the clock starts once the memory is full. Against T, each stream is learned from its first row, so that ``micros`` is
the mean over T rows. In both cases all code is compiled before, and the algorithm is timed without the calibration of
probabilities.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from time import process_time
from typing import Any, Literal

import numpy as np

from pairloom import Stream, systems
from pairloom.data import imbalanced
from pairloom.estimators import PairwiseClassifier
from reproduction.cells import Array, Cell, Record, Task
from reproduction.config import read
from reproduction.problems import Protocol

NAME = "cost"

WARM_ROWS = 2_048
"""Number of rows to learn in order to compile all code."""

Size = Literal["s", "D", "d", "T"]


@dataclass(frozen=True)
class System:
    """A system of the library: its class, the parameter for each size, and fixed parameters."""

    kind: str
    sizes: Mapping[str, str]
    fixed: Mapping[str, Any]

    def made(self, sizes: Mapping[str, int], seed: int) -> Any:
        """Return the estimator."""
        named = {parameter: sizes[size] for size, parameter in self.sizes.items()}
        return getattr(systems, self.kind)(**named, **self.fixed, random_state=seed)


WIDTH = {"gamma": 0.5}
"""Rows have norm 1 on average, so k(x, x') is about 1 / e."""

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
"""With eps = 0 every row starts a stratum until there are s; with tol = 0 rows are added until there are s."""


@dataclass(frozen=True)
class Sweep:
    """One system against one size.

    Parameters
    ----------
    system, axis, values : the system, the size that varies, and its values
    quick : the values of a quick run
    sizes : the other sizes
    fit_from : the value from which the varied term dominates the cost; the exponent is fitted from this value
    true, true_cost : the exponent of the true cost per example in this size, and that cost
    paper, paper_cost : the same according to the paper, if it states a cost
    slowest : estimated CPU seconds of the last value, in addition to those of every timing
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
    """``configs/cost.toml``. ``seconds``: minimum CPU time of a timing; ``positive``: share of positive rows."""

    repetitions: int
    seconds: float
    positive: float
    sweeps: tuple[Sweep, ...]


def tasks(quick: bool, datasets: tuple[str, ...] | None) -> list[Task]:
    """Return the tasks: FPOGD against all sizes, and every system of the paper's Table 1 against T.

    ``datasets`` has no effect: the streams are synthetic.
    """
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
    """Return rows of norm 1 on average, in float32 as in the systems."""
    X, y = imbalanced(n, d, positive=positive, seed=seed)
    return (X / np.sqrt(d)).astype(np.float32), y


def steady_state(system: Any, X: Array, y: Array, seconds: float) -> tuple[int, float]:
    """Return rows and CPU seconds after T rows: the same rows are learned again until the time is long enough."""
    stream = compiled_stream(system, X, y)
    learn(stream, X, y)
    rows, passed = 0, 0.0
    while passed < seconds:
        began = process_time()
        learn(stream, X, y)
        passed += process_time() - began
        rows += len(y)
    return rows, passed


def whole_streams(system: Any, X: Array, y: Array, seconds: float) -> tuple[int, float]:
    """Return rows and CPU seconds of learning T rows from the first row, repeated until the time is long enough."""
    model = compiled_stream(system, X, y).model
    rows, passed = 0, 0.0
    while passed < seconds:
        began = process_time()
        learn(Stream(model), X, y, whole=system.needs_all_rows)
        passed += process_time() - began
        rows += len(y)
    return rows, passed


def compiled_stream(system: PairwiseClassifier, X: Array, y: Array) -> Stream:
    """Return a new stream with the model of a system, with all code compiled.

    The estimator itself also calibrates probabilities, about eight times in every doubling of the stream. This is not
    part of a published system, and on a short stream it is more work than most of them. To compile, another stream
    learns the first rows.
    """
    model = system.to_model()
    learn(Stream(model), X[:WARM_ROWS], y[:WARM_ROWS], whole=system.needs_all_rows)
    return Stream(model)


def learn(stream: Stream, X: Any, y: Array, *, whole: bool = False) -> None:
    """Learn rows with labels -1 and +1; ``whole`` if the model needs all of them before the first."""
    batch = stream.check(X, y)
    if whole:
        stream.start_with(batch)
    stream.start(X.shape[1])
    stream.learn(batch)
