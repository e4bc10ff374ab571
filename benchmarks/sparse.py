"""CSR rows: one pass of FPOGD over documents, linear and kernel, compared with SGDClassifier; one core.

PAIRLOOM_DATA=folder python benchmarks/sparse.py [--toy]

One shuffled 80/20 split, rows in batches of 512, float32. Step sizes are fixed, not tuned. The first pass learns its
first 1,024 rows several times, while data-dependent settings are not final; a second pass over the same rows shows the
speed after that. Memory is the peak of Python allocations in another, untimed first pass, without the rows.
"""

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from common.script import make_parser, make_table, require_data
from pairloom.data import load_dataset
from pairloom.systems import FPOGD

BATCH = 512


def linear(**parameters: object) -> FPOGD:
    return FPOGD(kernel="linear", random_state=0, **parameters)


def kernel(**parameters: object) -> FPOGD:
    return FPOGD(gamma="median", n_components=512, random_state=0, **parameters)


LEARNERS: dict[str, Callable[[], Any]] = {
    "SGDClassifier, log loss": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "SGDClassifier, hinge": lambda: SGDClassifier(loss="hinge", random_state=0),
    "FPOGD linear, square": lambda: linear(eta=0.125),
    "FPOGD linear, logistic": lambda: linear(loss="logistic", eta=1.0),
    "FPOGD linear, hinge, averaged": lambda: linear(loss="hinge", eta=0.5, average="poly"),
    "FPOGD linear, logistic, maxabs": lambda: linear(loss="logistic", eta=0.02, scale="maxabs"),
    "FPOGD linear, centroids": lambda: linear(eta=0.125, representative="centroid"),
    "FPOGD kernel, D = 512": lambda: kernel(),
    "FPOGD kernel, strata of inputs": lambda: kernel(cluster_in="input"),
    "FPOGD kernel, maxabs": lambda: kernel(scale="maxabs"),
}


def toy() -> tuple[Any, np.ndarray]:
    """Return a few short documents as rows of norm 1."""
    rng = np.random.default_rng(0)
    X = sp.random_array((800, 3000), density=0.01, format="csr", rng=rng, dtype=np.float32)
    X = normalize(X > 0, copy=False)
    score = X @ rng.normal(size=3000)
    return X, np.where(score > np.quantile(score, 0.8), 1, -1)


def read(name: str) -> tuple[Any, np.ndarray]:
    """Return shuffled rows and labels."""
    data = load_dataset(name)
    order = np.random.default_rng(0).permutation(len(data.y))
    return data.X[order].astype(np.float32), data.y[order]


def one_pass(model: Any, X: Any, y: np.ndarray) -> Any:
    for i in range(0, len(y), BATCH):
        model.partial_fit(X[i : i + BATCH], y[i : i + BATCH], classes=np.array([-1, 1]))
    return model


def measure(make: Callable[[], Any], X: Any, y: np.ndarray) -> tuple[float, float, float, float]:
    """Return examples per second in the first and second pass, peak memory in MB, and AUC on the last fifth."""
    cut = int(0.8 * len(y))
    one_pass(make(), X[:50], y[:50])  # compiles
    model, clock = make(), [time.perf_counter()]
    one_pass(model, X[:cut], y[:cut])
    clock.append(time.perf_counter())
    auc = roc_auc_score(y[cut:], model.decision_function(X[cut:]))
    clock.append(time.perf_counter())
    one_pass(model, X[:cut], y[:cut])
    clock.append(time.perf_counter())
    tracemalloc.start()
    one_pass(make(), X[:cut], y[:cut])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return cut / (clock[1] - clock[0]), cut / (clock[3] - clock[2]), peak / 1e6, auc


def compare(name: str, X: Any, y: np.ndarray) -> Table:
    n, d = X.shape
    stored = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e6
    title = f"{name}: {n:,} x {d:,}, {X.nnz / n:.0f} entries per row, {np.mean(y > 0):.1%} positive, "
    title += f"{stored:.0f} MB as CSR, {n * d * 4 / 1e6:,.0f} MB dense"
    headings = ["examples/s, first pass", "examples/s, then", "peak memory (MB)", "test AUC"]
    table = make_table(title, ["learner"], headings)
    for learner, make in track(LEARNERS.items(), description=name, console=Console(stderr=True)):
        first, then, peak, auc = measure(make, X, y)
        table.add_row(learner, f"{first:,.0f}", f"{then:,.0f}", f"{peak:,.0f}", f"{auc:.4f}")
    return table


def main() -> None:
    small = make_parser(__doc__).parse_args().toy
    if not small:
        require_data()
    console = Console(width=110)
    with threadpool_limits(1):
        for name in ("toy",) if small else ("reuters.moneyfx", "rcv1.subset"):
            console.print(compare(name, *(toy() if small else read(name))))


if __name__ == "__main__":
    main()
