"""Time per example of FPOGD compared with scikit-learn's RBFSampler + SGDClassifier, and memory over the stream.

python benchmarks/throughput.py [--toy]
"""

import resource
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from common.script import make_parser, make_table
from common.yardstick import BATCH, D_IN, D_OUT, STRATA, microseconds, scikit_learn, stream
from pairloom.systems import FPOGD


def fpogd(**parameters: object) -> FPOGD:
    return FPOGD(n_components=D_OUT, max_strata=STRATA, gamma=0.5 / D_IN, random_state=0, **parameters)


LEARNERS = {
    "RBFSampler + SGDClassifier": scikit_learn,
    "FPOGD, strata in feature space": lambda: fpogd().partial_fit,
    "FPOGD, strata in input space": lambda: fpogd(cluster_in="input").partial_fit,
    "FPOGD, input space, averaged": lambda: fpogd(cluster_in="input", average="poly").partial_fit,
}


def batches(n: int, rounds: int) -> Table:
    X, y = stream(n)
    times = {name: [] for name in LEARNERS}
    for _ in range(rounds):  # interleaved, so that other load on the machine affects all alike
        for name, make in LEARNERS.items():
            times[name].append(microseconds(make(), X, y, max(BATCH, n // 10), time.perf_counter))
    best = {name: min(t) for name, t in times.items()}
    title = f"Batches of {BATCH}: d = {D_IN}, D = {D_OUT}, {STRATA} strata per class, float32, one core"
    table = make_table(title, ["learner"], ["us per example (best of runs)", "times scikit-learn"])
    for name, value in best.items():
        table.add_row(name, f"{value:.2f}", f"{value / best['RBFSampler + SGDClassifier']:.2f}")
    return table


def single_rows(n: int) -> Table:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    y = (X[:, 0] ** 2 + X[:, 1] > 1).astype(int).tolist()
    title = "One row at a time: d = 20, D = 200, 16 strata per class"
    table = make_table(title, ["call"], ["examples per second"])
    model = FPOGD(n_components=200, random_state=0).fit(X[:100], y[:100])
    calls = {
        "learn_one": lambda i: model.learn_one(X[i], y[i]),
        "score_one": lambda i: model.score_one(X[i]),
        "predict_proba_one": lambda i: model.predict_proba_one(X[i]),
        "predict_proba_one, then learn_one": lambda i: (model.predict_proba_one(X[i]), model.learn_one(X[i], y[i])),
    }
    for name, call in calls.items():
        start = time.perf_counter()
        for i in range(n):
            call(i)
        table.add_row(name, f"{n / (time.perf_counter() - start):,.0f}")
    return table


def memory(n: int) -> Table:
    X, y = stream(min(n, 50_000))
    model = fpogd(cluster_in="input")
    headings = ["rows", "bytes of the model", "peak of the process (MiB)", "us per example"]
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
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            speed = (clock - last) / (seen - last_seen) * 1e6
            table.add_row(f"{seen:,}", f"{model.nbytes_:,}", f"{peak:.0f}", f"{speed:.2f}")
            last, last_seen = clock, seen
    return table


def main() -> None:
    toy = make_parser(__doc__).parse_args().toy
    console = Console(width=110)
    with threadpool_limits(1):
        console.print(batches(*((2_000, 1) if toy else (40_000, 5))))
        console.print(single_rows(200 if toy else 20_000))
        console.print(memory(2_000 if toy else 1_000_000))


if __name__ == "__main__":
    main()
