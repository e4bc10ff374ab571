"""Time per row of FPOGD as ratios: in batches, one row at a time, and its memory over the stream.

python benchmarks/throughput.py [--toy]

In batches it is compared with scikit-learn's RBFSampler + SGDClassifier, with all strata in use; the contestants take
turns, in an order that rotates from round to round. One row at a time it is compared with river's logistic regression,
if river is installed.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from common.script import make_parser, make_table
from common.yardstick import BATCH, D_IN, D_OUT, STRATA, microseconds, scikit_learn, stream
from pairloom.base.extras import MissingExtra, import_extra
from pairloom.systems import FPOGD

YARDSTICK = "RBFSampler + SGDClassifier"

Calls = dict[str, Callable[[int], object]]


def fpogd(**parameters: object) -> FPOGD:
    """Return a model whose strata are all in use after a few rows: with eps=0 only equal rows share one before."""
    return FPOGD(n_components=D_OUT, max_strata=STRATA, eps=0.0, gamma=0.5 / D_IN, random_state=0, **parameters)


MODELS = {
    "FPOGD, strata in feature space": {},
    "FPOGD, strata in input space": {"cluster_in": "input"},
    "FPOGD, input space, averaged": {"cluster_in": "input", "average": "poly"},
}


def batches(n: int, rounds: int) -> Table:
    X, y = stream(n)
    warm = max(BATCH, n // 10)
    names = [YARDSTICK, *MODELS]
    times: dict[str, list[float]] = {name: [] for name in names}
    used = dict.fromkeys(names, "")
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            model = None if name == YARDSTICK else fpogd(**MODELS[name])
            learn = scikit_learn() if model is None else model.partial_fit
            times[name].append(microseconds(learn, X, y, warm, time.perf_counter))
            if model is not None:
                used[name] = " + ".join(map(str, model.n_strata_))
    title = f"Batches of {BATCH}: d = {D_IN}, D = {D_OUT}, {STRATA} strata per class, float32, one core"
    headings = ["strata in use", "us per row, best of rounds", "best / best", "median ratio of a round"]
    table = make_table(title, ["learner"], headings)
    for name, own in times.items():
        best, ratios = min(own) / min(times[YARDSTICK]), np.divide(own, times[YARDSTICK])
        table.add_row(name, used[name], f"{min(own):.2f}", f"{best:.2f}", f"{np.median(ratios):.2f}")
    return table


def our_calls(X: np.ndarray, y: list[int]) -> Calls:
    """Return the calls of a model that has learned enough rows for its settings to be final."""
    model = FPOGD(n_components=200, random_state=0).fit(X, y)
    return {
        "learn_one": lambda i: model.learn_one(X[i], y[i]),
        "score_one": lambda i: model.score_one(X[i]),
        "predict_proba_one": lambda i: model.predict_proba_one(X[i]),
    }


def river_calls(X: np.ndarray, y: list[int]) -> Calls:
    """Return the calls of river's logistic regression; MissingExtra if river is not installed."""
    import_extra("river", "bench", "the comparison of single rows")
    from river.linear_model import LogisticRegression

    model, rows = LogisticRegression(), [dict(enumerate(x)) for x in X.tolist()]
    for row, label in zip(rows, y, strict=True):
        model.learn_one(row, bool(label))
    return {
        "river, learn_one": lambda i: model.learn_one(rows[i], bool(y[i])),
        "river, predict_proba_one": lambda i: model.predict_proba_one(rows[i]),
    }


def microseconds_of(calls: Calls, n: int, rounds: int = 10) -> dict[str, np.ndarray]:
    """Return the times of n calls of each; they take turns, n / 10 rows at a time."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for rows in np.array_split(np.arange(n), rounds):
        for name, call in calls.items():
            for i in rows.tolist():
                start = time.perf_counter()
                call(i)
                times[name].append(1e6 * (time.perf_counter() - start))
    return {name: np.array(own[n // 100 :]) for name, own in times.items()}


def single_rows(n: int) -> Table:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    y = (X[:, 0] ** 2 + X[:, 1] > 1).astype(int).tolist()
    calls = our_calls(X, y)
    table = make_table("One row at a time: d = 20, D = 200, 16 strata per class, one core", ["call"])
    for heading in ("median, us", "99th percentile, us", "median / learn_one"):
        table.add_column(heading, justify="right")
    try:
        calls |= river_calls(X, y)
    except MissingExtra as missing:
        table.caption = str(missing)
    found = {name: np.percentile(own, [50, 99]) for name, own in microseconds_of(calls, n).items()}
    for name, (median, rare) in found.items():
        table.add_row(name, f"{median:.1f}", f"{rare:.1f}", f"{median / found['learn_one'][0]:.2f}")
    return table


def memory(n: int) -> Table:
    X, y = stream(min(n, 50_000))
    model = fpogd(cluster_in="input")
    headings = ["rows", "bytes of the model", "us per row"]
    table = make_table("Memory over the stream", [], headings)
    marks = {n // 100, n // 10, n // 2, n}
    clock = last = 0.0
    seen = last_seen = 0
    while seen < n:
        take = min(len(y), min(mark for mark in marks if mark > seen) - seen)
        start = time.perf_counter()
        model.partial_fit(X[:take], y[:take])
        clock += time.perf_counter() - start
        seen += take
        if seen in marks:
            speed = (clock - last) / (seen - last_seen) * 1e6
            table.add_row(f"{seen:,}", f"{model.nbytes_:,}", f"{speed:.2f}")
            last, last_seen = clock, seen
    return table


def tables(toy: bool) -> Iterator[Table]:
    """Yield all tables."""
    with threadpool_limits(1):
        yield batches(*((2_000, 1) if toy else (40_000, 8)))
        yield single_rows(200 if toy else 20_000)
        yield memory(2_000 if toy else 1_000_000)


def main() -> None:
    console = Console(width=120)
    for table in tables(make_parser(__doc__).parse_args().toy):
        console.print(table)


if __name__ == "__main__":
    main()
