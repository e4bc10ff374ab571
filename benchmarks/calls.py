"""Cost of calls of AUCClassifier: single rows, mappings, batches, and several threads.

PAIRLOOM_DATA=folder python benchmarks/calls.py [--data NAME ...] [--rows N] [--toy]

Everything in one run, on one thread except for the last table. river's logistic regression on standardised rows, and
scikit-learn's RBFSampler(1024) + SGDClassifier at 22 columns, are timed next to it: other load on the machine affects
both.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from common.script import make_parser, make_table, require_data
from common.yardstick import BATCH, microseconds, mixed_frame, scikit_learn, stream
from contest.datasets import DATASETS, TOY, Data
from contest.tables import read_table, take, text_columns
from mixed.speed import dicts
from pairloom import AUCClassifier

COLUMNS, MANY_COLUMNS, MIXED_COLUMNS = 22, 80, 30
SETTLED_ROW = 5_000
"""Row after which single rows are timed."""


def rows_of(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with a non-linear rare class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.square(X[:, :5]).sum(axis=1) + 2 * X[:, 6] + rng.normal(size=n) > 9


def timed(call: Callable[[int], object], n: int) -> np.ndarray:
    """Return the microseconds of each of n calls, which get their number; the first tenth is not counted."""
    found = np.empty(n)
    for i in range(n):
        start = time.perf_counter()
        call(i)
        found[i] = time.perf_counter() - start
    return 1e6 * found[n // 10 :]


def table_of_single_rows(n: int) -> Table:
    """Time single rows of 22 columns."""
    X, y = rows_of(SETTLED_ROW + 3 * n, COLUMNS)
    model = AUCClassifier(random_state=0).fit(X[:SETTLED_ROW], y[:SETTLED_ROW])
    row, frozen = count(SETTLED_ROW), model.frozen()

    def learn(_: int) -> None:
        i = next(row)
        model.learn_one(X[i], y[i])

    def test_then_train(i: int) -> None:
        model.score_one(X[SETTLED_ROW + n + i])
        learn(i)

    calls = {
        "learn_one": learn,
        "score_one": lambda i: model.score_one(X[i]),
        "score_one, then learn_one": test_then_train,
        "score_one of model.frozen()": lambda i: frozen.score_one(X[i]),
        **river_calls(X, y),
    }
    headings = ["median, µs", "99th percentile, µs", "rows per second"]
    table = make_table(f"Single rows of {COLUMNS} columns, after {SETTLED_ROW:,} rows", ["call"], headings)
    for name, call in calls.items():
        taken = timed(call, n)
        cells = [*np.percentile(taken, [50, 99]), 1e6 / taken.mean()]
        table.add_row(name, *(f"{cell:,.0f}" for cell in cells))
    return table


def river_calls(X: np.ndarray, y: np.ndarray) -> dict[str, Callable[[int], object]]:
    """Return the calls of river's logistic regression on standardised rows; without river, none."""
    try:
        from river import linear_model, preprocessing
    except ImportError:
        return {}
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    rows = [dict(enumerate(x)) for x in X.tolist()]
    return {
        "river, StandardScaler | LogisticRegression, learn_one": lambda i: model.learn_one(rows[i], y[i]),
        "river, predict_proba_one": lambda i: model.predict_proba_one(rows[i]),
    }


def table_of_long_calls(n: int) -> Table:
    """Time single rows of 80 columns from the first row of a model on."""
    X, y = rows_of(n, MANY_COLUMNS)
    AUCClassifier(random_state=0).fit(X, y)  # loads the compiled code
    model = AUCClassifier(random_state=0)
    taken = timed(lambda i: model.learn_one(X[i], y[i]), n)
    title = f"learn_one of {MANY_COLUMNS} columns, rows {n // 10:,} to {n:,}"
    table = make_table(title, [], ["median, µs", "99th percentile, µs", "longest, ms"])
    table.add_row(*(f"{cell:,.0f}" for cell in np.percentile(taken, [50, 99])), f"{1e-3 * taken.max():.1f}")
    sizes = [one.nbytes_ / 1e6 for one in (model, model.frozen())]
    table.caption = f"{sizes[0]:.1f} MB, frozen {sizes[1]:.1f} MB; mixture: {'; '.join(model.mixture_)}"
    return table


def as_numbers(frame: pd.DataFrame) -> np.ndarray:
    """Return the same columns as numbers: text as codes, dates as days."""
    numbers = frame.copy()
    for name in text_columns(frame.drop(columns="time")):
        numbers[name] = frame[name].astype("category").cat.codes
    numbers["time"] = (frame["time"] - frame["time"].iloc[0]) / pd.Timedelta(days=1)
    return numbers.to_numpy(float)


def table_of_mappings(n: int) -> Table:
    """Time rows with mixed columns, next to the same numbers in an array."""
    frame, y = mixed_frame(SETTLED_ROW + 5 * n)
    rows, X = dicts(frame), as_numbers(frame)
    table = make_table(f"Rows of {MIXED_COLUMNS} mixed columns", ["call"], ["mixed, µs", "numbers, µs", "ratio"])
    models = [AUCClassifier(random_state=0).fit(one[:SETTLED_ROW], y[:SETTLED_ROW]) for one in (frame, X)]
    first = SETTLED_ROW

    def learn(model: AUCClassifier, source: Sequence[Any], i: int) -> None:
        model.learn_one(source[first + i], y[first + i])

    def score(model: AUCClassifier, source: Sequence[Any], i: int) -> None:
        model.score_one(source[i])

    for name, call in (("learn_one", learn), ("score_one", score)):
        pairs = zip(models, (rows, X), strict=True)
        add_ratio(table, f"{name}, a mapping, median", [np.median(timed(partial(call, *one), n)) for one in pairs])
    found = np.array([[part_of(model, one, y, first + k * n, n) for model, one in zip(models, (frame, X), strict=True)]
                      for k in range(1, 5)])  # fmt: skip
    add_ratio(table, f"partial_fit, a frame of {n:,} rows, per row", found.min(axis=0))
    return table


def part_of(model: AUCClassifier, X: Any, y: np.ndarray, start: int, n: int) -> float:
    """Return the microseconds per row of one call with n rows."""
    rows = take(X, slice(start, start + n))
    begin = time.perf_counter()
    model.partial_fit(rows, y[start : start + n])
    return 1e6 * (time.perf_counter() - begin) / n


def add_ratio(table: Table, name: str, taken: Sequence[float]) -> None:
    table.add_row(name, f"{taken[0]:,.0f}", f"{taken[1]:,.0f}", f"{taken[0] / taken[1]:.2f}")


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


def time_batches(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the microseconds per row of each batch of 512 rows."""
    model, found = AUCClassifier(random_state=0), []
    for at in range(0, len(y) - BATCH + 1, BATCH):
        start = time.process_time()
        model.partial_fit(X[at : at + BATCH], y[at : at + BATCH], classes=[0, 1])
        found.append(1e6 * (time.process_time() - start) / BATCH)
    return np.array(found)


def sklearn_micros(n: int = 10_000) -> float:
    """Return the microseconds per row of RBFSampler(1024) + SGDClassifier at 22 columns."""
    return microseconds(scikit_learn(), *stream(n), BATCH, time.process_time)


def nominal(n_features: int) -> float:
    """Return the nominal microseconds of all candidates."""
    race = AUCClassifier(random_state=0)._make_model(2, 0)
    return sum(one.microseconds(n_features) for one in race.admitted(n_features))


def table_of_threads(sets: dict[str, tuple[Any, np.ndarray]], rounds: int) -> Table:
    """Compare wall-clock times with one and two threads, in turns; the bits are the same."""
    headings = ["rows", "fit, 1 thread, s", "2 threads, s", "ratio", "predict, 1 thread, s", "2 threads, s", "ratio"]
    table = make_table("AUCClassifier(n_jobs=2)", ["data"], headings)
    for name, (X, y) in sets.items():
        taken: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
        for _ in range(rounds):
            for n_jobs, found in taken.items():
                start = time.perf_counter()
                model = AUCClassifier(random_state=0, n_jobs=n_jobs).fit(X, y)
                middle = time.perf_counter()
                model.predict_proba(X)
                found.append((middle - start, time.perf_counter() - middle))
        one, two = (np.min(found, axis=0) for found in taken.values())
        cells = [text for k in (0, 1) for text in (f"{one[k]:.2f}", f"{two[k]:.2f}", f"{one[k] / two[k]:.2f}")]
        table.add_row(name, f"{len(y):,}", *cells)
    return table


def sets_for_threads(n: int) -> dict[str, tuple[Any, np.ndarray]]:
    """Return rows of ijcnn1, mnist and adult."""
    found: dict[str, tuple[Any, np.ndarray]] = {}
    for one in DATASETS:
        if one.name in ("ijcnn1", "mnist"):
            X, y = one.read()
            found[one.name] = X[:n].astype(np.float32), y[:n]
    X, y = read_table("adult")
    order = np.random.default_rng(0).permutation(len(y))[:n]
    return {**found, "adult": (X.iloc[order], y[order])}


def tables(sets: list[Data], n_rows: int, toy: bool) -> Iterator[Table]:
    """Yield all tables."""
    few = 60 if toy else 3_000
    with threadpool_limits(1):
        yield table_of_single_rows(few)
        yield table_of_long_calls(600 if toy else n_rows)
        yield table_of_mappings(few // 3)
        yield table_of_batches(list(TOY) if toy else sets, n_rows)
    yield table_of_threads({"made": rows_of(600, 8)} if toy else sets_for_threads(n_rows), 1 if toy else 2)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", nargs="+", choices=[one.name for one in DATASETS], help="batches of these sets only")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of each set")
    options = parser.parse_args()
    if not options.toy:
        require_data()
    console = Console(width=140)
    for table in tables(
        [one for one in DATASETS if not options.data or one.name in options.data], options.rows, options.toy
    ):
        console.print(table)


if __name__ == "__main__":
    main()
