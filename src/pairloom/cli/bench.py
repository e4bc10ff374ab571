"""`pairloom bench`: speed of learning, from arrays and from CSV, and of scoring."""

import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from pairloom.base.extras import import_extra
from pairloom.base.typing import Array
from pairloom.cli import fit
from pairloom.cli.console import print_result
from pairloom.cli.fit_options import FitOptions
from pairloom.cli.parameters import make_estimator

CHUNK_ROWS = 10_000
CASES = {"AUCClassifier": ("AUCClassifier", []), "FPOGD, D = 1024": ("FPOGD", ["n_components=1024"])}


def stream(n: int, d: int) -> tuple[Array, Array]:
    """Generate normal rows; those far from 0 in their first columns, about one in six, are positive."""
    X = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    far = np.square(X[:, :5]).sum(axis=1)
    return X, (far > 1.6 * min(d, 5)).astype(int)


def write_csv(path: Path, X: Array, y: Array) -> None:
    """Write rows at full precision."""
    pyarrow, csv = (import_extra(name, "io", "Writing CSV") for name in ("pyarrow", "pyarrow.csv"))
    csv.write_csv(pyarrow.table({**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "label": y}), path)


def measure(system: str, settings: list[str], X: Array, y: Array, folder: Path) -> dict[str, float]:
    """Return rows per second, after a few rows that load the compiled code."""
    make_estimator(system, settings).fit(X[:2100], y[:2100]).score_many(X[:100])
    model, began = make_estimator(system, settings), perf_counter()
    for start in range(0, len(y), CHUNK_ROWS):
        model.partial_fit(X[start : start + CHUNK_ROWS], y[start : start + CHUNK_ROWS])
    arrays = perf_counter() - began
    options = FitOptions(
        files=[str(folder / "rows.csv")], model=folder / "model", start=None, system=system, settings=settings,
        label="label", positive=None, weight=None, drop=[], format="csv", width=None, chunk=CHUNK_ROWS, checkpoint=None,
        every=1, resume=False, half_life=None, log=None, monitor=None, on_bad_row="stop", quarantine=None, json=True,
        quiet=True,
    )  # fmt: skip
    began = perf_counter()
    with redirect_stdout(StringIO()):
        fit.run(options)
    csv = perf_counter() - began
    began = perf_counter()
    model.score_many(X)
    scoring = perf_counter() - began
    return {"arrays": len(y) / arrays, "csv": len(y) / csv, "ratio": csv / arrays, "scored": len(y) / scoring}


def run(rows: int, columns: int, as_json: bool) -> None:
    """Measure and print rows per second."""
    X, y = stream(rows, columns)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_csv(Path(folder) / "rows.csv", X, y)
        for name, (system, settings) in CASES.items():
            found[name] = measure(system, settings, X, y, Path(folder))
    if as_json:
        return print_result([], {"rows": rows, "columns": columns, "rows_per_second": found}, as_json)
    table = Table(title=f"Rows per second: {rows:,} rows of {columns} columns, in chunks of {CHUNK_ROWS:,}")
    for heading in ("system", "fit, arrays", "fit, CSV", "slowdown", "predict"):
        table.add_column(heading, justify="left" if heading == "system" else "right")
    for name, one in found.items():
        table.add_row(
            name, f"{one['arrays']:,.0f}", f"{one['csv']:,.0f}", f"{one['ratio']:.2f}", f"{one['scored']:,.0f}"
        )
    return Console().print(table, highlight=False)
