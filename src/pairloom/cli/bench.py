"""`pairloom bench`: how fast this machine learns, from arrays and from a CSV, and how fast it scores."""

import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from pairloom.base.extras import needed
from pairloom.base.typing import Array
from pairloom.cli.fit import Asked, run
from pairloom.cli.parameters import estimator
from pairloom.cli.saying import result

CHUNK = 10_000
CASES = {"AUCClassifier": ("AUCClassifier", []), "FPOGD, D = 1024": ("FPOGD", ["n_components=1024"])}


def stream(n: int, d: int) -> tuple[Array, Array]:
    """Normal rows, of which those far from the middle in their first columns are positive: about one in six."""
    X = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    far = np.square(X[:, :5]).sum(axis=1)
    return X, (far > 1.6 * min(d, 5)).astype(int)


def write_csv(path: Path, X: Array, y: Array) -> None:
    """Rows with as many digits as they have."""
    pyarrow, csv = (needed(name, "io", "Writing CSV") for name in ("pyarrow", "pyarrow.csv"))
    csv.write_csv(pyarrow.table({**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "label": y}), path)


def measure(system: str, settings: list[str], X: Array, y: Array, folder: Path) -> dict[str, float]:
    """Rows per second, after a few that load the machine code."""
    estimator(system, settings).fit(X[:2100], y[:2100]).score_many(X[:100])
    model, began = estimator(system, settings), perf_counter()
    for start in range(0, len(y), CHUNK):
        model.partial_fit(X[start : start + CHUNK], y[start : start + CHUNK])
    arrays = perf_counter() - began
    asked = Asked(
        files=[str(folder / "rows.csv")], model=folder / "model", system=system, settings=settings, label="label",
        positive=None, weight=None, drop=[], format="csv", width=None, chunk=CHUNK, checkpoint=None, every=1,
        resume=False, half_life=None, log=None, skip=False, quarantine=None, json=True, quiet=True,
    )  # fmt: skip
    began = perf_counter()
    with redirect_stdout(StringIO()):
        run(asked)
    csv = perf_counter() - began
    began = perf_counter()
    model.score_many(X)
    scoring = perf_counter() - began
    return {"arrays": len(y) / arrays, "csv": len(y) / csv, "ratio": csv / arrays, "scored": len(y) / scoring}


def bench(rows: int, columns: int, as_json: bool) -> None:
    """Measure and print."""
    X, y = stream(rows, columns)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_csv(Path(folder) / "rows.csv", X, y)
        for name, (system, settings) in CASES.items():
            found[name] = measure(system, settings, X, y, Path(folder))
    if as_json:
        return result([], {"rows": rows, "columns": columns, "rows_per_second": found}, as_json)
    table = Table(title=f"Rows per second: {rows:,} rows of {columns} columns, in chunks of {CHUNK:,}")
    for heading in ("system", "learned, arrays", "learned, CSV", "times", "scored"):
        table.add_column(heading, justify="left" if heading == "system" else "right")
    for name, one in found.items():
        table.add_row(
            name, f"{one['arrays']:,.0f}", f"{one['csv']:,.0f}", f"{one['ratio']:.2f}", f"{one['scored']:,.0f}"
        )
    return Console().print(table, highlight=False)
