"""Compare the speed of two checkouts of the project, in one run on one machine.

python benchmarks/same_speed.py OLD_CHECKOUT NEW_CHECKOUT [--rounds 5] [--toy]

Each checkout learns the same streams in a separate process, on one core; the two take turns, and the best of all rounds
counts. The last column is the new time over the old one. Without checkouts, this one is compared with itself, which
shows the noise of the ratios.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from common.script import ONE_CORE, ROOT, make_parser, make_table


def cases(n: int) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """Yield name, rows and the timed call of each case; models are warm."""
    import scipy.sparse as sp

    import pairloom as pl
    from pairloom import systems

    rng = np.random.default_rng(0)
    X = rng.normal(size=(8 * n, 22)).astype(np.float32)
    y = (np.square(X[:, :6]).sum(axis=1) > 9).astype(int)
    thin = sp.random(4 * n, 2000, 0.01, format="csr", random_state=0, dtype=np.float32)
    signs = np.asarray(thin.sum(axis=1)).ravel() > 9.5

    def chunks(model: Any, rows: Any = X, labels: Any = y, size: int = 1000) -> Callable[[], Any]:
        model.partial_fit(rows[:2000], labels[:2000], classes=[0, 1])
        return lambda: [model.partial_fit(rows[i : i + size], labels[i : i + size]) for i in range(0, n, size)]

    def one_by_one(model: Any) -> Callable[[], Any]:
        model.partial_fit(X[:2000], y[:2000])
        few, labels = [list(map(float, x)) for x in X[: n // 4]], y.tolist()
        return lambda: [model.learn_one(x, label) for x, label in zip(few, labels, strict=False)]

    def scored(model: Any) -> Callable[[], Any]:
        model.partial_fit(X[:2000], y[:2000])
        few = [list(map(float, x)) for x in X[: n // 4]]
        return lambda: [model.score_one(x) for x in few]

    kernel = {"gamma": "median", "scale": "standard", "random_state": 0}
    yield "FPOGD, D = 1024, chunks", n, chunks(systems.FPOGD(n_components=1024, **kernel))
    yield "FPOGD, D = 128, chunks of 100", n, chunks(systems.FPOGD(n_components=128, **kernel), size=100)
    yield "FPOGD, D = 128, learn_one", n // 4, one_by_one(systems.FPOGD(n_components=128, **kernel))
    yield "FPOGD, D = 128, score_one", n // 4, scored(systems.FPOGD(n_components=128, **kernel))
    yield "FPOGD, linear, CSR", n, chunks(systems.FPOGD(kernel="linear", eta=0.01, random_state=0), thin, signs)
    yield "SPAM, CSR", n, chunks(systems.SPAM(eta=0.01), thin, signs)
    yield "SPAM, learn_one", n // 4, one_by_one(systems.SPAM(eta=0.01))
    yield "OPAUC", n, chunks(systems.OPAUC())
    yield "ExactAUC", n, chunks(systems.ExactAUC())
    yield "KOIL", n, chunks(systems.KOIL(random_state=0))
    etas = np.geomspace(0.001, 1, 16).tolist()
    grid = systems.FPOGD(n_components=512, **kernel).grid(etas=etas, alphas=[1e-6, 1e-3])
    grid.partial_fit(X[:2000], y[:2000])
    yield "grid of 32, D = 512", n, lambda: grid.partial_fit(X[:n], y[:n])
    small = pl.AUCClassifier(random_state=0, n_components=512)
    few = min(n, 2500)
    yield f"AUCClassifier, first {few:,} rows", few, lambda: small.fit(X[:few], y[:few])


def collect(n: int, toy: bool) -> None:
    """Time all cases with the package that this process imports, and print the microseconds per row."""
    warnings.simplefilter("ignore")
    times = {}
    for name, rows, call in islice(cases(n), 3 if toy else None):
        start = time.process_time()
        call()
        times[name] = 1e6 * (time.process_time() - start) / rows
    print(json.dumps(times))


def timed(checkout: Path, n: int, toy: bool) -> dict[str, float]:
    """Run ``collect`` in a process that imports the package of a checkout."""
    env = {**os.environ, **ONE_CORE, "PYTHONPATH": str(checkout.resolve() / "src")}
    command = [sys.executable, __file__, "--collect", str(n), *["--toy"] * toy]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("old", nargs="?", type=Path, default=ROOT, help="a checkout")
    parser.add_argument("new", nargs="?", type=Path, default=ROOT, help="another checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--collect", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.collect:
        collect(options.collect, options.toy)
        return
    n, rounds = (200, 1) if options.toy else (8000, options.rounds)
    sides: list[tuple[Path, dict[str, float]]] = [(options.old, {}), (options.new, {})]
    if not options.toy:  # so that nothing is compiled during measurements
        for checkout, _ in sides:
            timed(checkout, 200, options.toy)
    for _ in track(range(rounds), description="rounds", console=Console(stderr=True)):
        for checkout, best in sides:
            for name, spent in timed(checkout, n, options.toy).items():
                best[name] = min(spent, best.get(name, np.inf))
    table = make_table(f"µs of CPU time per row, best of {rounds}", ["case"], ["old", "new", "new / old"])
    (_, old_best), (_, new_best) = sides
    for name, spent in old_best.items():
        new = new_best[name]
        table.add_row(name, f"{spent:.1f}", f"{new:.1f}", f"{new / spent:.2f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
