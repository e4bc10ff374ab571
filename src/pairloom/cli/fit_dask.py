"""`pairloom fit --workers` and `--scheduler`: fit a model on the files of a folder, which Dask's workers read."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from pairloom.base.extras import import_extra
from pairloom.base.typing import Array
from pairloom.cli.console import AUC_WINDOW, Progress, print_result
from pairloom.cli.fit_options import FitOptions
from pairloom.cli.labels import normalize_label
from pairloom.cli.outputs import Outputs
from pairloom.cli.parameters import DEFAULT, make_estimator
from pairloom.data.readers.opening import FileError, list_files
from pairloom.estimators.saving import FileColumns
from pairloom.persist import save

ALONE = ("start", "checkpoint", "log", "monitor", "quarantine", "half_life", "width")
"""Options of a run in one process."""

NAMES = {"start": "--from", "half_life": "--half-life"}


@dataclass(frozen=True)
class ParquetPart:
    """A Parquet file as a partition: its features, labels and weights."""

    path: str
    label: str
    weight: str | None
    drop: tuple[str, ...]
    positive: Any

    def features(self) -> Any:
        """Return the columns besides label, weight and dropped ones."""
        given = {self.label, self.weight, *self.drop}
        parquet = import_extra("pyarrow.parquet", "io", "Reading Parquet")
        names = [name for name in parquet.read_schema(self.path).names if name not in given]
        return parquet.read_table(self.path, columns=names).to_pandas()

    def labels(self) -> Array:
        """Return the labels; with a positive one, all others have the class "not ..."."""
        values = self._column(self.label)
        if self.positive is None:
            return values
        own = np.array([normalize_label(str(value)) == self.positive for value in values.tolist()], dtype=bool)
        return np.where(own, self.positive, f"not {self.positive}")

    def weights(self) -> Array:
        """Return the weights of the rows."""
        assert self.weight is not None
        return self._column(self.weight).astype(float)

    def _column(self, name: str) -> Array:
        parquet = import_extra("pyarrow.parquet", "io", "Reading Parquet")
        if name not in parquet.read_schema(self.path).names:
            raise FileError(f"{self.path}: no column {name!r}; it has {parquet.read_schema(self.path).names}")
        return np.asarray(parquet.read_table(self.path, columns=[name]).column(0).to_numpy())


def check_options(options: FitOptions) -> None:
    """Raise ValueError for options that a run on several workers does not have."""
    for name in ALONE:
        if getattr(options, name) is not None:
            flag = NAMES.get(name, f"--{name}")
            raise ValueError(f"{flag} is for a run in one process: leave out --workers and --scheduler, or {flag}")
    if options.label is None:
        raise ValueError("--workers and --scheduler need --label, the name of the label column")


@contextmanager
def client_of(workers: int | None, scheduler: str | None, progress: Progress) -> Iterator[Any]:
    """Yield a client of a local cluster, or of an existing one; say where its dashboard is."""
    distributed = import_extra("distributed", "dask", "--workers")
    if scheduler is not None:
        with distributed.Client(scheduler) as client:
            progress.note(f"Dashboard: {client.dashboard_link}")
            yield client
        return
    made = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(**made) as cluster, distributed.Client(cluster) as client:
        progress.note(f"{workers} workers. Dashboard: {client.dashboard_link}")
        yield client


def parts_of(options: FitOptions, positive: Any) -> list[ParquetPart]:
    """Return the files of the run, each a partition."""
    paths = list_files(options.files)
    for path in paths:
        if not path.endswith((".parquet", ".parq", ".pq")):
            raise FileError(f"{path}: workers read Parquet files only; leave out --workers for other formats")
    assert options.label is not None
    return [ParquetPart(path, options.label, options.weight, tuple(options.drop), positive) for path in paths]


def run(options: FitOptions, workers: int | None, scheduler: str | None) -> None:
    """Fit a model on several workers, save it, and print the result."""
    check_options(options)
    dask = import_extra("dask", "dask", "--workers")
    from pairloom import dask as on_dask
    from pairloom.dask.graph import Partition, fit

    name = options.system or DEFAULT
    if not hasattr(on_dask, name) or name == "PairwiseRanker":
        raise ValueError(f"--system {name} cannot learn on several workers: use AUCClassifier, FPOGD or ExactAUC")
    positive = None if options.positive is None else normalize_label(options.positive)
    given = {} if positive is None else {"pos_label": positive}
    local, progress, began = make_estimator(name, options.settings, **given), Progress(options.quiet), monotonic()
    model = getattr(on_dask, name)(**local.get_params(deep=False))
    files = parts_of(options, positive)
    partitions = []
    for one in files:
        extra = {} if options.weight is None else {"sample_weight": dask.delayed(one.weights)()}
        partitions.append(Partition(dask.delayed(one.features)(), dask.delayed(one.labels)(), extra))

    def report(done: int, rounds: int, rows: int) -> None:
        progress.update(f"{rows:,} rows  merge {done} of {rounds}  {rows / (monotonic() - began):,.0f} rows/s")

    with Outputs() as outputs, client_of(workers, scheduler, progress) as client:
        out = outputs.add(options.model)
        fitted = fit(model.task(), partitions, model.rounds, model.shards, client, report)
        progress.clear()
        fitted._file_columns = FileColumns(files[0].label, options.weight, sorted(options.drop))
        out.save(lambda path: save(fitted, path))
        outputs.commit()
    print_fitted(fitted, options, len(files), monotonic() - began)


def print_fitted(fitted: Any, options: FitOptions, n_files: int, seconds: float) -> None:
    """Print the result of a run."""
    rows, auc, size = fitted.n_seen_, fitted.auc_, options.model.stat().st_size
    values = {
        "rows": rows, "files": n_files, "classes": [one.item() for one in fitted.classes_],
        "auc": {"value": auc.value, "low": auc.low, "high": auc.high}, "rows_per_second": round(rows / seconds),
        "model": str(options.model), "bytes": size,
    }  # fmt: skip
    lines = [
        ("rows", f"{rows:,} of {n_files} files; {rows / seconds:,.0f} per second"),
        ("AUC", f"{auc} {AUC_WINDOW}"),
        ("model", f"{options.model}, {size / 1e6:.3g} MB"),
    ]
    print_result(lines, values, options.json)
