"""`nbytes_` of models and the budget of a race, compared with the memory of the process.

python benchmarks/memory.py [--toy]

Linux only. Each case runs in a separate process. It compiles the code with a small fit of the same kind, releases free
memory and resets the peak of its resident memory; then it learns a stream in chunks of 256 rows and scores a few. The
rows are allocated before, so that the growth is due to the model and to learning. One core, float32. The end is
measured after malloc_trim; without it the allocator may keep more free memory. The last column is the peak divided by
budget or nbytes_, whichever is larger.
"""

import ctypes
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.progress import track
from scipy.linalg.blas import dgemm
from threadpoolctl import threadpool_limits

from common.script import make_parser, make_table, require_linux
from pairloom import AUCClassifier
from pairloom.features import Forest, Gaussian, RandomFourier
from pairloom.race import Budget, Portfolio
from pairloom.systems import FPOGD, ExactAUC, ProjectronPP

CHUNK = 256

SMALL = Portfolio(
    forests=(Forest(8, max_leaves=16, growth="renewed"), Forest(8, max_leaves=16, growth="boosted")), n_landmarks=16,
    large_landmarks=32,
)  # fmt: skip
"""A race that runs the same code as the default one, in little memory."""


@dataclass(frozen=True)
class Case:
    """A model, a small one that compiles the same code, and the shape of the stream."""

    make: Callable[[], Any]
    compiles: Callable[[], Any]
    columns: int
    rows: int
    sparse: bool = False

    def stream(self, rows: int, columns: int) -> tuple[Any, np.ndarray]:
        """Return rows of normal values, or CSR rows of 70 entries each, with noisy labels."""
        rng = np.random.default_rng(0)
        if self.sparse:
            X = sp.random_array((rows, columns), density=70 / columns, format="csr", rng=rng, dtype=np.float32)
        else:
            X = rng.normal(size=(rows, columns)).astype(np.float32)
        score = X @ rng.normal(size=columns) if self.sparse else np.square(X[:, :3]).sum(axis=1)
        score -= score.mean()
        return X, np.where(score + rng.normal(size=rows) * score.std() > 0, 1, -1)


def race(portfolio: Portfolio | None = SMALL) -> AUCClassifier:
    return AUCClassifier(portfolio=portfolio, random_state=0)


def fpogd(size: int = 64) -> FPOGD:
    return FPOGD(gamma="median", n_components=size, random_state=0)


def grid(size: int = 64) -> Any:
    return fpogd(size).grid(etas=list(np.geomspace(0.001, 1.0, 16)), alphas=[1e-6, 1e-5, 1e-4, 1e-3])


def exact(size: int = 64) -> ExactAUC:
    return ExactAUC(features=RandomFourier(size, Gaussian("median")), random_state=0)


def projectron(size: int = 64) -> ProjectronPP:
    return ProjectronPP(gamma="median", max_supports=size, random_state=0)


CASES = {
    "AUCClassifier, d = 20, 3,000 rows": Case(lambda: race(None), race, 20, 3000),
    "AUCClassifier, d = 20, 20,000 rows": Case(lambda: race(None), race, 20, 20_000),
    "AUCClassifier, CSR, d = 47,236": Case(lambda: race(None), race, 47_236, 1500, sparse=True),
    "FPOGD, D = 512": Case(lambda: fpogd(512), fpogd, 20, 20_000),
    "FPOGD, D = 2048, d = 784": Case(lambda: fpogd(2048), fpogd, 784, 5000),
    "Grid of 64, D = 1024": Case(lambda: grid(1024), grid, 20, 5000),
    "ExactAUC, D = 1024": Case(lambda: exact(1024), exact, 20, 5000),
    "ProjectronPP, 2,000 supports": Case(lambda: projectron(2000), projectron, 20, 5000),
}

TOY = {
    "AUCClassifier, d = 20": Case(race, race, 20, 1200),
    "Grid of 64, D = 64": Case(grid, grid, 20, 600),
}


def learn(model: Any, X: Any, y: np.ndarray) -> Any:
    """Learn rows in chunks, then score a few."""
    for start in range(0, len(y), CHUNK):
        model.partial_fit(X[start : start + CHUNK], y[start : start + CHUNK])
    (model.decision_function if hasattr(model, "decision_function") else model.score)(X[:CHUNK])
    return model


def resident(name: str) -> int:
    """Return resident bytes of the process: VmRSS now, VmHWM at the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])


def resident_after_release() -> int:
    """Release free memory, and return the resident bytes."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return resident("VmRSS")


def measure(case: Case) -> dict[str, int]:
    """Return the size reported by the model, and the growth of resident memory at the peak and at the end."""
    learn(case.compiles(), *case.stream(min(case.rows, 16_500), min(case.columns, 100)))
    X, y = case.stream(case.rows, case.columns)
    # BLAS, in NumPy and in SciPy, keeps the buffers of the first large product.
    for kind in (np.float32, np.float64):
        np.matmul(*np.ones((2, 2048, 2048), kind))
    dgemm(1.0, *np.ones((2, 2048, 2048)))
    before = resident_after_release()
    Path("/proc/self/clear_refs").write_text("5")
    model = learn(case.make(), X, y)
    peak = resident("VmHWM")
    reported = int(model.nbytes_ if hasattr(model, "nbytes_") else model.nbytes)
    return {"reported": reported, "peak": peak - before, "end": resident_after_release() - before}


def run(name: str) -> list[str]:
    """Return the row of a case, measured in a new process."""
    done = subprocess.run([sys.executable, __file__, "--case", name], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    budget = Budget().bytes if name.startswith("AUCClassifier") else 0
    size = [found["reported"], budget, found["end"], found["peak"]]
    ratios = [found["end"] / found["reported"], found["peak"] / max(found["reported"], budget)]
    return [name, *(f"{value / 1e6:,.1f}" if value else "" for value in size), *(f"{ratio:.2f}" for ratio in ratios)]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--case", help="measure one case in this process, and print it as JSON")
    options = parser.parse_args()
    require_linux()
    if options.case:
        with threadpool_limits(1):
            print(json.dumps(measure({**CASES, **TOY}[options.case])))
        return
    headings = ["nbytes_", "budget", "end", "peak", "end / nbytes_", "peak / larger"]
    table = make_table("MB", ["model"], headings)
    for name in track(TOY if options.toy else CASES, description="memory", console=Console(stderr=True)):
        table.add_row(*run(name))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
