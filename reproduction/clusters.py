r"""Strata: their effect on AUC, time and the error of the gradient, and their number (appendix B.1).

There are three kinds of cells, distinguished by ``system``. FPOGD has the Gaussian kernel of the paper's width,
gamma = 1 / (2 d).

``CURVE``, axis "max_strata": FPOGD with at most s strata per class and a small eps, so that soon there are s. Records:

- ``row``: number of rows learned,
- ``seconds``: CPU time of learning them (``time.process_time``, without compilation and evaluation),
- ``auc``: on the test rows.

``GRADIENT``, axis "max_strata": the same learner on the first rows of the stream. Records, one per window of rows:

- ``row``: the last row of the window,
- ``error``: mean of e_t = ||u_t - grad L_t(w_{t-1})||^2, where u_t is the gradient over the strata and grad L_t the
  gradient over all earlier rows of the other class,
- ``norm``: mean of ||grad L_t(w_{t-1})||^2.

``STRATA``, axis "eps": clusters of phi(x) (the paper), and clusters of x. The value is a share of the mean squared
distance of two points, and eps is that share times this distance. Records:

- ``row``: number of rows learned, t - 1 if row t is the next,
- ``n_strata``: strata that row t meets, at most t - 1. One clustering of all rows, as in the paper (joint), up to a
  cap; the stream ends when the cap is reached.
- ``bound_paper``, ``bound_packing``: logarithms to base 10 of the paper's bound, (R / r)^d rounded up, and of the
  packing bound, (1 + 2 R / r)^d, for balls of radius r in a ball of radius R in d dimensions. Both hold together with
  t - 1: see ``at_most``.

A row starts a stratum if its *squared* distance to all centres is above eps, so r = sqrt(eps) in both bounds. In
feature space all points have norm 1, so R = 1, and d is D, the number of features. In input space columns lie in
[-1, 1] on the training part, so R = sqrt(d), and d is the number of columns. The remark of the paper compares strata in
feature space with a bound for input space, and takes eps for r; then (R / eps)^d is below 1 in input space wherever
eps > R. The packing bound is for fixed centres. Those of FPOGD move, by a twentieth of the way to each new member.
"""

from dataclasses import dataclass
from math import ceil, log10, sqrt
from time import process_time
from typing import Literal

import numpy as np
from sklearn.metrics import roc_auc_score

from pairloom.evaluation import gradient_variance
from pairloom.features import Gaussian, RandomFourier
from pairloom.memory import Strata
from pairloom.systems import FPOGD
from reproduction.auc_time import rows_between
from reproduction.cells import Array, Cell, Record, Task
from reproduction.column import n_features_of
from reproduction.config import read
from reproduction.cost import compiled_stream, learn
from reproduction.problems import Fold, Protocol, Shape, Split

NAME = "clusters"

Space = Literal["features", "input"]
"""The points that are clustered: phi(x), or x."""

CURVE = "FPOGD, kernel"
GRADIENT = "FPOGD, kernel, gradient"
STRATA: dict[Space, str] = {"features": "strata in feature space", "input": "strata in input space"}

SAMPLE = 1_024
"""Rows whose mean squared distance is the unit of eps."""

FIRST_ROW = 32
"""The first row at which something is measured; the row numbers have a constant ratio."""


@dataclass(frozen=True)
class Learning:
    """Parameters of FPOGD: ``eps`` as a share of the mean squared distance; ``n_components`` is D, or sqrt(T) ln T."""

    eps: float
    eta: float
    alpha: float
    n_components: int | Literal["auto"]

    def n_features(self, shape: Shape) -> int:
        """Return D for a training part."""
        return n_features_of(shape) if self.n_components == "auto" else self.n_components

    def fpogd(self, split: Split, max_strata: int, seed: int) -> FPOGD:
        """Return the learner; eps is computed from the first rows of the training part."""
        D = self.n_features(split.shape)
        eps = self.eps * mean_squared_distance(features(split.X[:SAMPLE], D, seed))
        return FPOGD(n_components=D, eta=self.eta, alpha=self.alpha, eps=eps, max_strata=max_strata, random_state=seed)


@dataclass(frozen=True)
class Config:
    """``configs/clusters.toml``.

    Parameters
    ----------
    folds : number of the protocol's folds to run
    test_rows : maximum number of test rows
    points : number of points of a curve
    max_strata : values of s, for curves and gradients
    gradient_rows, window : rows of the gradient's error, and rows of one mean
    shares, cap : values of eps for the number of strata, as shares of the mean squared distance, and the maximum number
    """

    datasets: tuple[str, ...]
    folds: int
    test_rows: int
    points: int
    learning: Learning
    max_strata: tuple[int, ...]
    gradient_rows: int
    window: int
    shares: tuple[float, ...]
    cap: int


def tasks(quick: bool, datasets: tuple[str, ...] | None) -> list[Task]:
    """Return tasks: AUC, time and gradient against the maximum number of strata; number of strata against eps."""
    config, protocol = read(NAME, Config, quick), read("protocol", Protocol, quick)
    made = []
    for dataset in datasets or config.datasets:
        folds = protocol.first_folds(dataset, config.folds, config.test_rows)
        for fold in folds:
            made += [_curve_task(config, fold, s) for s in config.max_strata]
            made += [_gradient_task(config, fold, s) for s in config.max_strata]
        # CSR rows have norm 1, are not in a box, and have too many columns for clustering.
        spaces = [space for space in STRATA if space == "features" or not folds[0].shape.sparse]
        made += [_strata_task(config, folds[0], space, share) for space in spaces for share in config.shares]
    return made


def _curve_task(config: Config, data: Fold, s: int) -> Task:
    arguments = {"data": data, "learning": config.learning, "max_strata": s, "points": config.points}
    shape = data.shape
    flops = shape.n_rows * config.learning.n_features(shape) * (shape.n_features + 100 + 7 * s)
    return Task(Cell(NAME, data.dataset, CURVE, "max_strata", s, data.fold), curve, arguments, 0.9 + 4e-11 * flops)


def _gradient_task(config: Config, data: Fold, s: int) -> Task:
    arguments = {
        "data": data, "learning": config.learning, "max_strata": s, "rows": config.gradient_rows,
        "window": config.window,
    }  # fmt: skip
    D = config.learning.n_features(data.shape)
    guess = config.gradient_rows * (1e-3 + 7e-7 * D + 1.1e-8 * D * s)
    return Task(Cell(NAME, data.dataset, GRADIENT, "max_strata", s, data.fold), gradient, arguments, guess)


def _strata_task(config: Config, data: Fold, space: Space, share: float) -> Task:
    arguments = {
        "data": data, "space": space, "share": share, "cap": config.cap, "points": config.points,
        "n_components": config.learning.n_features(data.shape),
    }  # fmt: skip
    guess = 3.0 if space == "features" else 0.3
    return Task(Cell(NAME, data.dataset, STRATA[space], "eps", share, data.fold), strata, arguments, guess)


def curve(data: Fold, learning: Learning, max_strata: int, points: int) -> list[Record]:
    """Learn a stream, and measure AUC and time at some rows."""
    split = data.split()
    stream = compiled_stream(learning.fpogd(split, max_strata, data.seed), split.X, split.y)
    records, seen, seconds = [], 0, 0.0
    for row in rows_between(FIRST_ROW, len(split.y), points):
        began = process_time()
        learn(stream, split.X[seen:row], split.y[seen:row])
        seconds, seen = seconds + process_time() - began, row
        auc = roc_auc_score(split.y_test, stream.score(split.X_test))
        records.append({"row": row, "seconds": seconds, "auc": float(auc)})
    return records


def gradient(data: Fold, learning: Learning, max_strata: int, rows: int, window: int) -> list[Record]:
    """Return error and norm of the gradient along the learner's own path, averaged over windows of rows."""
    split = data.split()
    model = learning.fpogd(split, max_strata, data.seed)
    found = gradient_variance(model, split.X[:rows], split.y[:rows])
    ends = window * (1 + (found.rows - 1) // window)
    windows = [(int(end), ends == end) for end in np.unique(ends)]
    return [
        {"row": end, "error": float(found.errors[inside].mean()), "norm": float(found.norms[inside].mean())}
        for end, inside in windows
    ]


def strata(data: Fold, space: Space, share: float, n_components: int, cap: int, points: int) -> list[Record]:
    """Cluster a stream. No model is needed: the strata do not depend on it."""
    X = data.split().X
    U = X if space == "input" else features(X, n_components, data.seed)
    radius, dim = (sqrt(X.shape[1]), X.shape[1]) if space == "input" else (1.0, U.shape[1])
    eps = share * mean_squared_distance(U[:SAMPLE])
    bounds = {"bound_paper": paper_bound(radius, eps, dim), "bound_packing": packing_bound(radius, eps, dim)}
    memory = Strata(eps=eps, max_strata=cap, by="joint", normalization="history", cluster_in=space)
    state = memory.start(0, U.shape[1], 2, U.dtype, None)
    records, seen, blank = [], 0, np.zeros(len(U))
    for row in rows_between(FIRST_ROW, len(U), points):
        part = slice(seen, row)
        plan = memory.plan(state, U[part], blank[part], blank[part] + 1.0, np.empty((row - seen, 0)))
        state.slots.mass[plan.slot] = plan.mass
        seen = row
        records.append({"row": row, "n_strata": int(state.used[0]), **bounds})
        if state.used[0] == cap:
            break
    return records


def mean_squared_distance(points: Array) -> float:
    """Return the mean of ||u - u'||^2 over all pairs of rows: twice the sum of the variances."""
    return 2.0 * float(points.var(axis=0, dtype=float, ddof=1).sum())


def features(X: Array, n_components: int, seed: int) -> Array:
    """Return phi(x), with the paper's width."""
    phi = RandomFourier(n_components, Gaussian("paper"))
    fixed = phi.fix(X.shape[1], None, np.random.default_rng(seed))
    return np.asarray(phi.apply(fixed, X), np.float32)


def paper_bound(radius: float, eps: float, dim: int) -> float:
    """Return log10 of the paper's bound, (R / sqrt(eps))^d rounded up.

    >>> paper_bound(2.0, 1.0, 10) == log10(1024), paper_bound(0.5, 1.0, 10_000)
    (True, 0.0)
    """
    power = dim * log10(radius / sqrt(eps))
    # Above 10^15, rounding up changes less than a float can represent.
    return power if power > 15 else log10(max(1, ceil(round(10**power, 9))))


def packing_bound(radius: float, eps: float, dim: int) -> float:
    """Return log10 of (1 + 2 R / sqrt(eps))^d, which bounds the points at distances above sqrt(eps) in a ball.

    >>> round(packing_bound(1.0, 4.0, 3), 12) == round(3 * log10(2), 12)
    True
    """
    return dim * log10(1.0 + 2.0 * radius / sqrt(eps))


def at_most(row: int, bound: float) -> float:
    """Return min{t - 1, bound} after ``row`` = t - 1 rows, from the logarithm of the bound.

    >>> at_most(100, 700.0), at_most(100, 1.0)
    (100.0, 10.0)
    """
    return float(10 ** min(bound, log10(row)))
