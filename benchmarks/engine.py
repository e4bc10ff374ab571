"""The blocked engine: 1, 64 and 512 models compared with scikit-learn, a breakdown of the time, and long streams.

One core, CPU time of the process, everything in one run.

python benchmarks/engine.py [--toy]
"""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from common.script import make_parser, make_table
from common.yardstick import BATCH, D_IN, D_OUT, STRATA, Learn, microseconds, scikit_learn, stream
from pairloom import Grid, Learner, Stream
from pairloom.engines import blocked
from pairloom.features import Gaussian, RandomFourier
from pairloom.memory import Strata
from pairloom.systems import FPOGD


def fpogd(**parameters: object) -> FPOGD:
    return FPOGD(n_components=D_OUT, max_strata=STRATA, gamma=0.5 / D_IN, random_state=0, **parameters)


def grid(n_etas: int, n_alphas: int, **parameters: object) -> Stream:
    """Return a stream of models with steps 2^-1, ... and penalties 10^-1, ..."""
    return fpogd(**parameters).grid(etas=2.0 ** -np.arange(1, n_etas + 1), alphas=10.0 ** -np.linspace(1, 8, n_alphas))


def compare_with_scikit_learn(n: int, rounds: int, small: tuple[int, int], large: tuple[int, int]) -> Table:
    X, y = stream(n)
    make: dict[str, tuple[int, Callable[[], Learn]]] = {"RBFSampler + SGDClassifier": (1, scikit_learn)}
    for space in ("features", "input"):
        where = f"strata in {space}"
        make[f"FPOGD, fused, calibrated, {where}"] = 1, lambda s=space: fpogd(cluster_in=s).partial_fit
        make[f"one model, fused, {where}"] = 1, lambda s=space: grid(1, 1, cluster_in=s).only(0).partial_fit
        make[f"one model, blocked, {where}"] = 1, lambda s=space: grid(1, 1, cluster_in=s).partial_fit
        for a, b in (small, large):
            make[f"{a * b} models, {where}"] = a * b, lambda s=space, a=a, b=b: grid(a, b, cluster_in=s).partial_fit
    a, b = small
    for name, changes in (
        ("averaged", {"average": "poly"}),
        ("logistic loss", {"loss": "logistic"}),
        ("centroids", {"representative": "centroid"}),
    ):
        make[f"{a * b} models, strata in input, {name}"] = (
            a * b, lambda a=a, b=b, changes=changes: grid(a, b, cluster_in="input", **changes).partial_fit,
        )  # fmt: skip
    times = defaultdict(list)
    for _ in range(rounds):  # interleaved, so that other load on the machine affects all alike
        for name, (models, learner) in make.items():
            rows = slice(0, max(6 * BATCH, n // max(1, models // 16)))
            times[name].append(microseconds(learner(), X[rows], y[rows], 4 * BATCH, time.process_time))
    title = f"d = {D_IN}, D = {D_OUT}, {STRATA} strata per class, float32, one core"
    headings = ["us per example (best of runs)", "times scikit-learn", "us per model"]
    table = make_table(title, ["learner"], headings)
    yardstick = min(times["RBFSampler + SGDClassifier"])
    for name, (models, _) in make.items():
        best = min(times[name])
        table.add_row(name, f"{best:.2f}", f"{best / yardstick:.2f}", f"{best / models:.2f}")
    return table


def best_of(call: Callable[[], object], repeats: int) -> float:
    """Return the least CPU seconds of several calls."""
    call()
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        spent.append(time.process_time() - start)
    return min(spent)


def gemm_peak(repeats: int) -> float:
    """Return the flops per second of a product that fits in the cache."""
    A = np.random.default_rng(0).normal(size=(768, 768)).astype(np.float32)
    B = A.copy()
    return 2 * 768**3 / best_of(lambda: A @ B, repeats)


def clocks(model: Stream, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the seconds spent in each part of the engine while it learns rows, and in total."""
    spent: dict[str, float] = defaultdict(float)

    def timed(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object) -> object:
            start = time.process_time()
            result = function(*args)
            spent[name] += time.process_time() - start
            return result

        return call

    names = ("map_rows", "make_block", "partner_tables", "start_models", "learn_models", "multiply_out")
    real = {name: getattr(blocked, name) for name in names}
    for name in names:
        setattr(blocked, name, timed(name, real[name]))
    spent["all"] = best_of(lambda: model.partial_fit(X, y), 1)
    for name in names:
        spent[name] /= 2  # best_of calls twice
        setattr(blocked, name, real[name])
    return spent


def roofline(models: int, dim: int, strata: int, n: int, repeats: int) -> Table:
    """Time each product on the shapes of a block, each part of the engine on a stream, and the rest."""
    X, y = stream(n)
    memory = Strata(eps=0.0, max_strata=strata, cluster_in="input")
    one = Learner(features=RandomFourier(dim, Gaussian(0.5 / D_IN)), memory=memory, seed=0)
    model = Grid([replace(one, step=replace(one.step, eta=eta)) for eta in np.geomspace(1e-3, 0.25, models)])
    b, S, G, peak = model.block_rows, 2 * strata, min(models, 64), gemm_peak(5 * repeats)
    learned = n // 2 // b * b
    side_by_side = Stream(model).partial_fit(X[:learned], y[:learned])
    rng = np.random.default_rng(0)
    Z, B, W = (rng.normal(size=(k, dim)).astype(np.float32) for k in (b, S, G))
    V, C = np.concatenate([B, Z]), rng.normal(size=(S + b, G)).astype(np.float32)
    products = {
        "Z Z'": (lambda: Z @ Z.T, b * b * dim, 1),
        "Z B'": (lambda: Z @ B.T, 2 * b * S * dim, 1),
        "[B Z] W'": (lambda: V @ W.T, 2 * (S + b) * G * dim, models / G),
        "coefficients [B Z]": (lambda: C.T @ V, 2 * (S + b) * G * dim, models / G),
    }
    rows = X[learned : 2 * learned], y[learned : 2 * learned]
    spent = clocks(side_by_side, *rows)
    title = f"{models} models, D = {dim}, {S} slots, blocks of {b}: time by part; peak {peak / 1e9:.0f} GFLOP/s"
    headings = ["us per example", "kflops per example", "kB per example", "share of peak"]
    table = make_table(title, ["part"], headings)
    flops_all, seconds_all = 0.0, 0.0
    for name, (call, flops, times) in products.items():
        seconds = best_of(call, repeats) * times
        numbers = {"Z Z'": b * dim + b * b, "Z B'": (b + S) * dim + b * S}.get(name, (S + b + G) * dim + (S + b) * G)
        flops_all, seconds_all = flops_all + flops * times, seconds_all + seconds
        add_row(table, name, seconds / b, flops * times / b, 4 * numbers * times / b, peak)
    loop = models * loop_flops(model, S)
    add_row(table, "compiled loop", spent["learn_models"] / len(rows[1]), loop, 0.0, peak)
    add_row(table, "map", spent["map_rows"] / len(rows[1]), D_IN * dim, 4.0 * (D_IN * dim / 2 / b + dim), peak)
    others = spent["all"] / len(rows[1]) - seconds_all / b - (spent["learn_models"] + spent["map_rows"]) / len(rows[1])
    add_row(table, "planning, tables, copies, Python", others, 0.0, 0.0, peak)
    add_row(table, "all", spent["all"] / len(rows[1]), flops_all / b + loop + D_IN * dim, 0.0, peak)
    return table


def loop_flops(model: Grid, S: int) -> float:
    """Return the flops per example and model in the small products of the compiled loop."""
    share = 0.16
    runs = 2 * share * (1 - share)
    s, b = S / 2, model.block_rows
    return 2 * (s * s + runs * (S - s) * (s + 1 / runs) + S + b / 2 + 2 * s)


def add_row(table: Table, name: str, seconds: float, flops: float, bytes_: float, peak: float) -> None:
    share = f"{flops / seconds / peak:.0%}" if flops else ""
    cells = [f"{value / 1e3:,.0f}" if value else "" for value in (flops, bytes_)]
    table.add_row(name, f"{seconds * 1e6:.2f}", *cells, share)


def length(n: int, models: tuple[int, int]) -> Table:
    X, y = stream(min(n, 50_000))
    model = grid(*models, cluster_in="input")
    title = f"{models[0] * models[1]} models over a long stream"
    table = make_table(title, [], ["rows", "us per example", "bytes of the grid"])
    marks, seen, last, spent = [n // 100, n // 10, n // 2, n], 0, 0, 0.0
    for mark in marks:
        while seen < mark:
            take = min(len(y), mark - seen)
            start = time.process_time()
            model.partial_fit(X[:take], y[:take])
            spent += time.process_time() - start
            seen += take
        table.add_row(f"{seen:,}", f"{spent / (seen - last) * 1e6:.2f}", f"{model.nbytes:,}")
        last, spent = seen, 0.0
    return table


def main() -> None:
    toy = make_parser(__doc__).parse_args().toy
    console = Console(width=120)
    with threadpool_limits(1):
        if toy:
            console.print(compare_with_scikit_learn(3_000, 1, (2, 2), (2, 3)))
            console.print(roofline(4, 64, 4, 3_000, 1))
            console.print(length(3_000, (2, 2)))
            return
        console.print(compare_with_scikit_learn(40_000, 5, (8, 8), (16, 32)))
        for models in (64, 512):
            console.print(roofline(models, D_OUT, STRATA, 12_000, 20))
        for models in (1, 64):
            console.print(roofline(models, 8192, 256, 6_000, 5))
        console.print(length(2_000_000, (8, 8)))


if __name__ == "__main__":
    main()
