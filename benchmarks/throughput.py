"""Time per example of FPOGD beside scikit-learn's RBFSampler + SGDClassifier, one core, one run; memory over time.

python benchmarks/throughput.py [--toy]
"""

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

from pairloom.systems import FPOGD

D_IN, D_OUT, STRATA, BATCH = 22, 1024, 32, 512


def stream(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a non-linear rare class, about 16 % positive."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D_IN)).astype(np.float32)
    return X, np.where(np.square(X[:, :5]).sum(axis=1) > 8, 1, -1)


def fpogd(**parameters: object) -> Callable[[np.ndarray, np.ndarray], object]:
    model = FPOGD(n_components=D_OUT, max_strata=STRATA, gamma=0.5 / D_IN, random_state=0, **parameters)
    return model.partial_fit


def scikit_learn() -> Callable[[np.ndarray, np.ndarray], object]:
    sampler = RBFSampler(n_components=D_OUT, gamma=0.5 / D_IN, random_state=0).fit(np.zeros((1, D_IN), np.float32))
    model = SGDClassifier(loss="log_loss", random_state=0)
    return lambda X, y: model.partial_fit(sampler.transform(X), y, classes=[-1, 1])


LEARNERS = {
    "RBFSampler + SGDClassifier": scikit_learn,
    "FPOGD, strata in feature space": fpogd,
    "FPOGD, strata in input space": lambda: fpogd(cluster_in="input"),
    "FPOGD, input space, averaged": lambda: fpogd(cluster_in="input", average="poly"),
}


def microseconds(learn: Callable[[np.ndarray, np.ndarray], object], X: np.ndarray, y: np.ndarray) -> float:
    """Per example, over batches of 512, after a first tenth that compiles and warms up."""
    warm = max(BATCH, len(y) // 10)
    learn(X[:warm], y[:warm])
    start = time.perf_counter()
    for i in range(warm, len(y), BATCH):
        learn(X[i : i + BATCH], y[i : i + BATCH])
    return (time.perf_counter() - start) / (len(y) - warm) * 1e6


def batches(n: int, rounds: int) -> Table:
    X, y = stream(n)
    times = {name: [] for name in LEARNERS}
    for _ in range(rounds):  # interleaved, so that a busy moment of the machine hits all alike
        for name, make in LEARNERS.items():
            times[name].append(microseconds(make(), X, y))
    best = {name: min(t) for name, t in times.items()}
    table = Table(title=f"Batches of {BATCH}: d = {D_IN}, D = {D_OUT}, {STRATA} strata per class, float32, one core")
    for column in ("learner", "us per example (best of runs)", "times scikit-learn"):
        table.add_column(column, justify="left" if column == "learner" else "right")
    for name, value in best.items():
        table.add_row(name, f"{value:.2f}", f"{value / best['RBFSampler + SGDClassifier']:.2f}")
    return table


def single_rows(n: int) -> Table:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    y = (X[:, 0] ** 2 + X[:, 1] > 1).astype(int).tolist()
    table = Table(title="One row at a time: d = 20, D = 200, 16 strata per class")
    table.add_column("call")
    table.add_column("examples per second", justify="right")
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
    model = FPOGD(n_components=D_OUT, max_strata=STRATA, gamma=0.5 / D_IN, cluster_in="input", random_state=0)
    table = Table(title="Memory over the stream")
    for column in ("rows", "bytes of the model", "peak of the process (MiB)", "us per example"):
        table.add_column(column, justify="right")
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toy", action="store_true", help="a small run that only shows that the benchmark works")
    toy = parser.parse_args().toy
    console = Console(width=110)
    with threadpool_limits(1):
        console.print(batches(*((2_000, 1) if toy else (40_000, 5))))
        console.print(single_rows(200 if toy else 20_000))
        console.print(memory(2_000 if toy else 1_000_000))


if __name__ == "__main__":
    main()
