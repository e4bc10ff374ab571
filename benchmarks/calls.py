"""Cost of calls of AUCClassifier: batches of 512 rows, learn_one, score_one, and the example of the readme.

PAIRLOOM_DATA=folder python benchmarks/calls.py [--data NAME ...] [--rows N] [--toy]

CPU time, one thread, in one run. The table also shows the nominal cost of the candidates, and the time of
scikit-learn's RBFSampler(1024) + SGDClassifier at 22 columns, measured before and after each data set, so that other
load on the machine affects both.
"""

import time

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

from common.script import make_parser, make_table, require_data
from contest.datasets import DATASETS, TOY, Data
from pairloom import AUCClassifier

BATCH = 512
COLUMNS = 80


def sklearn_micros(n: int = 10_000) -> float:
    """Return the microseconds per row of RBFSampler(1024) + SGDClassifier at 22 columns, the better of two passes."""
    X = np.random.default_rng(0).normal(size=(n, 22)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    sampler, sgd = RBFSampler(n_components=1024, random_state=0).fit(X[:1]), SGDClassifier(random_state=0)
    best = np.inf
    for _ in range(2):
        start = time.process_time()
        for at in range(0, n, BATCH):
            sgd.partial_fit(sampler.transform(X[at : at + BATCH]), y[at : at + BATCH], classes=[0, 1])
        best = min(best, 1e6 * (time.process_time() - start) / n)
    return best


def time_batches(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the microseconds per row of each batch of 512 rows."""
    model, found = AUCClassifier(random_state=0), []
    for at in range(0, len(y) - BATCH + 1, BATCH):
        start = time.process_time()
        model.partial_fit(X[at : at + BATCH], y[at : at + BATCH], classes=[0, 1])
        found.append(1e6 * (time.process_time() - start) / BATCH)
    return np.array(found)


def nominal(n_features: int) -> float:
    """Return the nominal microseconds of all candidates."""
    race = AUCClassifier(random_state=0)._make_model(2, 0)
    return sum(one.microseconds(n_features) for one in race.admitted(n_features))


def table_of_batches(sets: list[Data], n_rows: int) -> Table:
    headings = ["rows", "columns", "nominal", "mean", "slowest batch", "times sklearn", "its µs"]
    table = make_table("AUCClassifier, batches of 512 rows: microseconds per row", ["data"], headings)
    for one in sets:
        X, y = one.read()
        X, y = X[:n_rows].astype(np.float32), y[:n_rows]
        time_batches(X[: 9 * BATCH], y[: 9 * BATCH])  # loads the compiled code
        theirs, ours = sklearn_micros(), time_batches(X, y)
        theirs = (theirs + sklearn_micros()) / 2
        cells = [nominal(X.shape[1]), ours.mean(), ours.max(), ours.mean() / theirs, theirs]
        table.add_row(one.name, f"{len(y):,}", f"{X.shape[1]}", *(f"{cell:,.1f}" for cell in cells))
    return table


def table_of_calls(n_rows: int) -> Table:
    """Time single rows of 80 columns from the first row of a model on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows + 2_000, COLUMNS))
    y = np.square(X[:, :5]).sum(axis=1) + 2 * X[:, 6] + rng.normal(size=len(X)) > 9
    AUCClassifier(random_state=0).fit(X[:4_500], y[:4_500])
    model, times = AUCClassifier(random_state=0), np.empty(n_rows)
    for i in range(n_rows):
        start = time.process_time()
        model.learn_one(X[i], y[i])
        times[i] = time.process_time() - start
    title = f"Single rows of {COLUMNS} columns, {n_rows:,} rows learned"
    table = make_table(title, ["call"], ["median, µs", "99th percentile, µs", "longest, ms"])
    scores = {"score_one": model.score_one, "score_one, frozen": model.frozen().score_one}
    found = {"learn_one": times} | {name: timed(score, X[n_rows:]) for name, score in scores.items()}
    for name, taken in found.items():
        median, rare = np.percentile(1e6 * taken, [50, 99])
        table.add_row(name, f"{median:,.0f}", f"{rare:,.0f}", f"{1e3 * taken.max():,.1f}")
    sizes = [one.nbytes_ / 1e6 for one in (model, model.frozen())]
    table.caption = f"{sizes[0]:.1f} MB, frozen {sizes[1]:.1f} MB; mixture: {'; '.join(model.mixture_)}"
    return table


def timed(score: object, X: np.ndarray) -> np.ndarray:
    """Return the wall-clock seconds of each call: the CPU clock is too coarse for these."""
    found = []
    for x in X:
        start = time.perf_counter()
        score(x)  # type: ignore[operator]
        found.append(time.perf_counter() - start)
    return np.array(found[100:])


def readme_example() -> float:
    """Return the wall-clock seconds of the example of the readme, with default threads."""
    X, y = load_digits(return_X_y=True)
    start = time.perf_counter()
    model = AUCClassifier(random_state=0)
    for at in range(0, 1200, 100):
        model.partial_fit(X[at : at + 100], y[at : at + 100] == 8)
    model.score_many(X[1200:])
    return time.perf_counter() - start


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", nargs="+", choices=[one.name for one in DATASETS], help="these sets only")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of each set")
    options = parser.parse_args()
    if not options.toy:
        require_data()
    sets = [one for one in DATASETS if not options.data or one.name in options.data]
    console = Console(width=140)
    readme_example()
    console.print(f"the example of the readme: {readme_example():.2f} s")
    with threadpool_limits(1):
        console.print(table_of_batches(list(TOY) if options.toy else sets, options.rows))
        console.print(table_of_calls(600 if options.toy else options.rows))


if __name__ == "__main__":
    main()
