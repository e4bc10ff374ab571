"""Cross-validation, tuning and measurements."""

import pickle
import platform
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from contest.apart import Peak, apart
from contest.contestants import Contestant, Settings, Size
from contest.datasets import Data
from contest.records import Record, Records
from contest.tables import take
from contest.walk import scores, walk
from pairloom.stream import StabilityWarning

TUNING_ROWS = 20_000
"""For data sets above 50,000 rows."""
WARM_ROWS = {True: 2_000, False: 500}
"""Pairloom compiles some of its code when a stream has seen more than a thousand rows."""


@dataclass(frozen=True)
class Job:
    """The missing folds of a contestant on a data set."""

    data: Data
    contestant: Contestant
    folds: tuple[int, ...]


def jobs(data: list[Data], contestants: list[Contestant], records: Records, n_folds: int) -> list[Job]:
    """Return what is missing from the records: small data sets first, slow contestants last."""
    found = []
    for contestant in contestants:
        for one in data:
            missing = tuple(
                k for k in range(min(n_folds, one.folds)) if (one.name, contestant.name, k) not in records.all
            )
            if missing and contestant.takes(one):
                found.append(Job(one, contestant, missing))
    return sorted(found, key=lambda job: (job.contestant.slow, job.data.n_rows))


class Measured(NamedTuple):
    """The part of a record that is measured; ``rows``: that were learned, of ``available`` ones."""

    model: Any
    rows: int
    available: int
    auc: float
    precision: float
    seconds: float
    wall: float
    scoring: float
    peak: int | None


class Contest:
    """Runs jobs, each fit in a separate process; keeps the last data set in memory."""

    def __init__(self, records: Records, size: Size, n_folds: int, n_settings: int | None = None) -> None:
        self.records = records
        self.size = size
        self.n_folds = n_folds
        self.n_settings = n_settings  # of each grid; None is all
        self._name = ""

    def run(self, job: Job) -> Iterator[None]:
        """Run the folds of a job; yield after each."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StabilityWarning)  # grids include steps that are too long
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._load(job.data)
            settings, tuning = self.records.settings(job.data.name, job.contestant.name), 0.0
            if settings is None:
                settings, tuning = apart(self._tune, job)
            for fold in job.folds:
                self.records.add(apart(self._fold, job, fold, settings, tuning))
                tuning = 0.0
                yield

    def _warm(self, job: Job) -> None:
        """Load packages and compiled code by a small fit, so that neither time nor peak includes them."""
        rows = self._splits[0][0][: job.contestant.n_first(job.data, self.size)]
        rows = rows[: WARM_ROWS[job.contestant.package == "pairloom"]]
        X = take(self._X, rows)
        scores(self._make(job, job.contestant.grid[0]).fit(X, self._y[rows]), X)

    def _load(self, data: Data) -> None:
        if self._name != data.name:
            self._X, self._y = data.read()
            if data.window:
                self._splits = [(np.arange(len(self._y)), np.arange(0))]
            else:
                folds = StratifiedKFold(min(self.n_folds, data.folds), shuffle=True, random_state=0)
                self._splits = list(folds.split(self._X, self._y))
            self._name = data.name

    def _make(self, job: Job, settings: Settings) -> Any:
        return job.contestant.make(job.data, self.size, settings)

    def _tune(self, job: Job) -> tuple[Settings, float]:
        """Return the best of the grid on the last fifth of the first fold's training rows, and the seconds it took."""
        grid = job.contestant.grid[: self.n_settings]
        if len(grid) == 1:
            return grid[0], 0.0
        train = self._splits[0][0]
        if job.data.n_rows > 50_000:
            train = train[:TUNING_ROWS]
        self._warm(job)
        cut = len(train) * 4 // 5
        (X, y), (X_held, y_held) = [(take(self._X, rows), self._y[rows]) for rows in (train[:cut], train[cut:])]
        began = process_time()
        best = max(grid, key=lambda settings: auc(self._make(job, settings).fit(X, y), X_held, y_held))
        return best, process_time() - began

    def _fold(self, job: Job, fold: int, settings: Settings, tuning: float) -> Record:
        self._warm(job)
        made = self._along(job, settings) if job.data.window else self._held_out(job, fold, settings)
        return Record(
            data=job.data.name,
            contestant=job.contestant.name,
            fold=fold,
            rows=made.rows,
            auc=made.auc,
            seconds=made.seconds,
            wall=made.wall,
            size=pickled_bytes(made.model),
            settings=settings,
            tuning=tuning,
            package=f"{job.contestant.package} {version(job.contestant.package)}",
            machine=machine(),
            peak=made.peak,
            capped=made.rows < made.available,
            precision=made.precision,
            scoring=made.scoring,
        )

    def _held_out(self, job: Job, fold: int, settings: Settings) -> Measured:
        """Learn the rows of a fold for training, and score the others."""
        all_rows, test = self._splits[fold]
        train = all_rows[: job.contestant.n_first(job.data, self.size)]
        X, y, model = take(self._X, train), self._y[train], self._make(job, settings)
        before, began, clock = Peak(), process_time(), perf_counter()
        model.fit(X, y)
        scores(model, X[:1])  # some solve for their weights when they are first needed
        seconds, wall, peak = process_time() - began, perf_counter() - clock, before.bytes()
        X, y = take(self._X, test), self._y[test]
        began = process_time()
        found = scores(model, X)
        scoring = 1e6 * (process_time() - began) / len(y)
        ranks = roc_auc_score(y, found), average_precision_score(y, found)
        return Measured(model, len(train), len(all_rows), *map(float, ranks), seconds, wall, scoring, peak)

    def _along(self, job: Job, settings: Settings) -> Measured:
        """Score and learn all rows in their order."""
        assert job.data.window is not None
        before, clock, n = Peak(), perf_counter(), len(self._y)
        one_pass = job.contestant.passes == "one"
        made = walk(lambda: self._make(job, settings), one_pass, self._X, self._y, job.data.window)
        wall, scoring = perf_counter() - clock, 1e6 * made.scoring / (n - job.data.window)
        return Measured(made.model, n, n, made.auc, made.precision, made.learning, wall, scoring, before.bytes())


def auc(model: Any, X: Any, y: np.ndarray) -> float:
    return float(roc_auc_score(y, scores(model, X)))


def pickled_bytes(model: Any) -> int:
    """Return the bytes of the pickled model, without a second copy of it in memory."""
    count = Counter()
    pickle.Pickler(count).dump(model)
    return count.n_bytes


class Counter:
    """A file that only counts bytes."""

    n_bytes = 0

    def write(self, part: Any) -> int:
        size = memoryview(part).nbytes
        self.n_bytes += size
        return size


def machine() -> str:
    """Return the names of processor, Python and NumPy versions."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        cpu = names[0] if names else cpu
    return f"{cpu}, Python {platform.python_version()}, NumPy {np.__version__}"
