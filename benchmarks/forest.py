"""Trees as features, one pass, one step size for all data sets: AUC and time compared with random Fourier features.

PAIRLOOM_DATA=folder python benchmarks/forest.py [--data NAME ...] [--pairs] [--calls] [--figure] [--toy]

One 80/20 split (covtype: 200,000 rows), one core, rows in batches of 512. A table of feature maps: test AUC, and
microseconds per row over the whole stream, including growth; the Fourier map has as many features as fit in the time of
the random forest. ``--pairs``: partners and losses over one forest, also with one positive in a hundred. ``--calls``:
the longest single calls, and six step sizes side by side compared with one. ``--figure`` draws docs/forest.png from the
table.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from common.script import DOCS, make_parser, make_table
from common.yardstick import seconds
from contest.datasets import DATASETS, TOY, Data
from contest.forest import draw_auc_against_time, mean_partner, one_point
from pairloom import Learner, Stream
from pairloom.features import Forest, Gaussian, RandomFourier
from pairloom.losses import Logistic, SquaredHinge
from pairloom.memory import Latest, Strata
from pairloom.models import StepPath
from pairloom.steps import L2, AdaGrad, Constant  # fmt: skip

ETA, MAX_ROWS = 0.1, 200_000
FORESTS = {
    "forest, grown once": Forest(100),
    "forest, renewed": Forest(100, growth="renewed"),
    "forest, boosted": Forest(200, 512, 8192, growth="boosted"),
    "forest, random": Forest(100, labels=False),
}
Rows = tuple[np.ndarray, np.ndarray]


def over(forest: Forest, **parts: object) -> Learner:
    """Return the default learner over a forest, with other ``parts`` if given."""
    plain = {"loss": SquaredHinge(), "memory": Latest(size=4), "step": AdaGrad(ETA), "penalty": L2(), "seed": 0}
    return Learner(forest, **plain | parts)


def fourier(n_components: int) -> Learner:
    """Return the same over random Fourier features; with averaging, one step size suits all data sets."""
    features = RandomFourier(n_components, Gaussian("median"), scale="standard")
    return Learner(
        features, loss=SquaredHinge(), memory=Latest(size=4), step=Constant(0.25), average="poly", penalty=L2(), seed=0
    )  # fmt: skip


def split(data: Data) -> tuple[Rows, Rows]:
    """Return training rows and test rows."""
    X, y = data.read()
    X, y = X[:MAX_ROWS].astype(np.float32), np.where(y[:MAX_ROWS] > 0, 1, -1)
    cut = int(0.8 * len(y))
    return (X[:cut], y[:cut]), (X[cut:], y[cut:])


def learn(model: object, rows: Rows) -> tuple[Stream, float]:
    """Return the stream after all rows, and the CPU microseconds per row."""
    stream = Stream(model)
    return stream, 1e6 * seconds(stream.partial_fit, *rows) / len(rows[1])


def area(stream: Stream, rows: Rows) -> float:
    return float(roc_auc_score(rows[1], stream.score(rows[0])))


def as_long(microseconds: float, rows: Rows) -> int:
    """Return the number of Fourier features that take this long, interpolated from the times of two maps."""
    few, many = (settled(fourier(n), rows) for n in (256, 1024))
    slope = max(1e-9, (many - few) / 768)
    return int(np.clip(256 + (microseconds - few) / slope, 64, 16384)) // 2 * 2


def settled(model: object, rows: Rows) -> float:
    """Return the CPU microseconds per row once data-dependent settings are fixed; of all rows if there are few."""
    X, y = rows
    stream = Stream(model).partial_fit(X[:1024], y[:1024])
    X, y = (X[1024:5120], y[1024:5120]) if len(y) > 2048 else (X, y)
    start = time.process_time()
    stream.partial_fit(X, y)
    return (time.process_time() - start) / len(y) * 1e6


def maps(data: list[Data], forests: dict[str, Forest]) -> Iterator[tuple[str, str, float, float]]:
    """Yield data set, feature map, AUC and microseconds per row."""
    for one in data:
        rows, test = split(one)
        spent = 0.0
        for name, forest in forests.items():
            stream, spent = learn(over(forest), rows)
            yield one.name, name, area(stream, test), spent
        stream, spent = learn(fourier(as_long(spent, rows)), rows)
        yield one.name, f"Fourier, D = {stream.coef.shape[1]:,}", area(stream, test), spent


def rare(rows: Rows, share: float = 0.01) -> Rows:
    """Return all negative rows, and evenly spaced positive ones that make up ``share``; at least ten."""
    X, y = rows
    positive = np.flatnonzero(y > 0)
    n = max(10, int(share / (1 - share) * np.sum(y < 0)))
    keep = np.sort(np.concatenate([np.flatnonzero(y < 0), positive[:: max(1, len(positive) // n)]]))
    return X[keep], y[keep]


PARTNERS: dict[str, Callable[[Forest], Learner]] = {
    "1 newest": lambda forest: over(forest, memory=Latest(size=1)),
    "4 newest": over,
    "16 newest": lambda forest: over(forest, memory=Latest(size=16)),
    "16 strata": lambda forest: over(replace(forest, scale="standard"), memory=Strata(cluster_in="input")),
    "4 newest, logistic": lambda forest: over(forest, loss=Logistic(), step=AdaGrad(2 * ETA)),
}


def partners(data: list[Data], forest: Forest) -> Iterator[tuple[str, str, float, float]]:
    """Yield data set, partners, AUC and microseconds per row."""
    for one in data:
        for name, pick in ((one.name, lambda rows: rows), (f"{one.name}, 1 %", rare)):
            rows, test = (pick(part) for part in split(one))
            for what, make in PARTNERS.items():
                stream, spent = learn(make(forest), rows)
                yield name, what, area(stream, test), spent
            for what, rule in (("mean score", mean_partner), ("pointwise logistic", one_point)):
                scores, spent = rule(over(forest), rows, test[0])
                yield name, what, float(roc_auc_score(test[1], scores)), spent


def calls(n: int, d: int) -> Table:
    """Measure single calls."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n) > 1, 1, -1)
    table = Table("what", "value", title=f"{n:,} rows of {d} columns")
    for growth in ("once", "renewed"):
        stream, longest = Stream(over(Forest(100, growth=growth))), 0.0
        for i in range(n):
            start = time.process_time()
            stream.partial_fit(X[i : i + 1], y[i : i + 1])
            longest = max(longest, time.process_time() - start)
        table.add_row(f"{growth}: the longest call with one row, ms", f"{longest * 1e3:.1f}")
    steps = ETA * 2.0 ** np.arange(-4, 2)
    for forest in (Forest(100), Forest(100, growth="renewed")):
        one, six = (min(learn(StepPath(over(forest), etas), (X, y))[1] for _ in range(3)) for etas in ([ETA], steps))
        table.add_row(f"{forest.growth}: six steps over one, time", f"{six / one:.2f}")
    return table


def shown(found: list[tuple[str, str, float, float]], heading: str) -> Table:
    table = make_table("One pass, one step size", ["data", heading], ["AUC", "us per row"])
    for at, (data, name, auc, spent) in enumerate(found, start=1):
        last = at < len(found) and found[at][0] != data
        table.add_row(data, name, f"{auc:.4f}", f"{spent:.1f}", end_section=last)
    return table


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", nargs="+", choices=[one.name for one in DATASETS])
    for name in ("pairs", "calls", "figure"):
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args()
    data = list(TOY) if options.toy else [one for one in DATASETS if not options.data or one.name in options.data]
    forests = {name: replace(forest, n_trees=10) for name, forest in FORESTS.items()} if options.toy else FORESTS
    console, waiting = Console(), Console(stderr=True)
    with threadpool_limits(1):
        for growth in ("once", "renewed", "boosted"):  # compiles
            learn(over(Forest(5, growth=growth)), (np.zeros((600, 2), np.float32), np.tile([-1, 1], 300)))
        if options.calls or options.toy:
            console.print(calls(*((300, 5) if options.toy else (20_000, 80))))
        if options.pairs or options.toy:
            every = partners(data, next(iter(forests.values())))
            console.print(shown(list(track(every, "partners", console=waiting)), "partners"))
        if not (options.pairs or options.calls):
            found = list(track(maps(data, forests), "maps", total=5 * len(data), console=waiting))
            console.print(shown(found, "map"))
            if options.figure and not options.toy:
                draw_auc_against_time(found, DOCS / "forest.png")


if __name__ == "__main__":
    main()
