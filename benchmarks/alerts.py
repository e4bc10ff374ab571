"""Alert thresholds on later rows: the cost of two ways to choose them, and the coverage of their intervals.

python benchmarks/alerts.py [--toy]
"""

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from rich.console import Console
from rich.table import Table

from common.script import make_parser
from pairloom.base.typing import Array
from pairloom.metrics import choose_threshold
from pairloom.systems import ExactAUC

RATIOS = (5, 20, 100)
CENTRE = 1.5
"""Mean difference between the scores of positives and negatives in the simulation of intervals."""

AIMS = ({"alert_rate": 0.01}, {"alert_rate": 0.05}, {"precision": 0.3}, {"precision": 0.5}, {"cost_ratio": 20.0})


def logistic(rng: np.random.Generator, n: int, shift: float, turn: float = 0.0) -> tuple[Array, Array]:
    """Return a stream with linear log-odds whose weights rotate by ``turn`` radians."""
    X, angle = rng.normal(size=(n, 6)), np.linspace(0.0, turn, n)
    weights = np.outer(np.cos(angle), [1.5, -1, 0.5, 0, 0, 0]) + np.outer(np.sin(angle), [0, 0, 0.5, 1.5, -1, 0])
    return X, rng.random(n) < 1.0 / (1.0 + np.exp(shift - (X * weights).sum(axis=1)))


def two_kinds(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return a stream in which half of the positives are easy to find."""
    X, y, easy = rng.normal(size=(n, 6)), rng.random(n) < 0.01, rng.random(n) < 0.5
    X[y & easy] += 3.0
    X[y & ~easy, :2] += 0.7
    return X, y


def heavy(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return a stream with heavy tails, in which log-odds are not linear."""
    X = rng.standard_t(2.5, size=(n, 6))
    return X, X @ [1, -1, 0.5, 0, 0, 0] + rng.standard_t(2.5, size=n) > 6.5


STREAMS: dict[str, tuple[Callable[[np.random.Generator, int], tuple[Array, Array]], int]] = {
    "logistic, 2 %": (lambda rng, n: logistic(rng, n, 5.3), 15_000),
    "logistic, 10 %": (lambda rng, n: logistic(rng, n, 3.0), 15_000),
    "two kinds, 1 %": (two_kinds, 15_000),
    "heavy tails, 3 %": (heavy, 15_000),
    "drift, 5 %": (lambda rng, n: logistic(rng, n, 4.0, 3.0), 3_000),
}
"""Each with its number of later rows."""


def cost(positive: Array, alerted: Array, ratio: float) -> float:
    return float(ratio * (positive & ~alerted).sum() + (alerted & ~positive).sum()) / len(positive)


def excess(stream: str, seed: int, n: int) -> Array:
    """Return the cost on later rows over the least possible: (ratios, 2), chosen by the rows and by log-odds."""
    make, later = STREAMS[stream]
    X, y = make(np.random.default_rng(seed), n + later)
    model = ExactAUC(scale="standard", random_state=0).fit(X[:n], y[:n])
    scores, positive = model.score_many(X[n:]), y[n:]
    found = []
    for ratio in RATIOS:
        cuts = choose_threshold(*model._scored_positives(), cost_ratio=ratio), model.threshold(cost_ratio=ratio)
        best = cost(positive, scores >= choose_threshold(positive, scores, cost_ratio=ratio), ratio)
        found.append([cost(positive, scores >= cut, ratio) / best for cut in cuts])
    return np.array(found)


def coverage(aim: dict[str, float], n: int, rate: float, draws: int) -> Array:
    """Return how often the intervals of precision, recall and alert rate contain the true values."""
    above, held = NormalDist().cdf, []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        y = rng.random(n) < rate
        try:
            cut = choose_threshold(y, rng.normal(size=n) + CENTRE * y, **aim)
        except ValueError:  # no threshold has the precision
            continue
        own, other = rate * above(CENTRE - cut), (1.0 - rate) * above(-cut)
        true = own / (own + other), own / rate, own + other
        found = cut.precision, cut.recall, cut.alert_rate
        held.append([bounds.low <= value <= bounds.high for bounds, value in zip(found, true, strict=True)])
    return np.mean(held, axis=0)


def main() -> None:
    toy = make_parser(__doc__).parse_args().toy
    seeds, n, draws = (1, 600, 20) if toy else (4, 4500, 400)
    console = Console(width=120)
    table = Table("stream", "ratio", "by the rows", "by log-odds", title="Cost on later rows, over the least possible")
    means = []
    for name in list(STREAMS)[1:2] if toy else STREAMS:
        mean = np.mean([excess(name, seed, n) for seed in range(seeds)], axis=0)
        means.append(mean)
        for ratio, pair in zip(RATIOS, mean, strict=True):
            table.add_row(name, str(ratio), *(f"{value:.3f}" for value in pair))
    for ratio, pair in zip(RATIOS, np.mean(means, axis=0), strict=True):
        table.add_row("mean", str(ratio), *(f"{value:.3f}" for value in pair))
    console.print(table)
    table = Table("criterion", "rows", "positives", "precision", "recall", "alert rate", title="Coverage of intervals")
    for rows, rate in ((4096, 0.02), (1000, 0.1))[: 1 if toy else None]:
        for aim in AIMS:
            held = coverage(aim, rows, rate, draws)
            [(name, value)] = aim.items()
            table.add_row(f"{name}={value}", f"{rows:,}", f"{rate:.0%}", *(f"{share:.1%}" for share in held))
    console.print(table)


if __name__ == "__main__":
    main()
