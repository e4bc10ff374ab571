r"""Strata: what their number does to AUC, time and the error of the gradient, and how many there are (appendix B.1).

Three kinds of cells, told apart by ``system``; FPOGD has the Gaussian kernel of the paper's width, gamma = 1 / (2 d).

``CURVE``, axis "max_strata": FPOGD with at most s strata per class and a small eps, so that soon there are s. Records:

- ``row``: rows learned,
- ``seconds``: CPU time of learning them (``time.process_time``, without compilation and evaluation),
- ``auc``: on the test rows.

``GRADIENT``, axis "max_strata": the same learner on the first rows of the stream. Records, one per window of rows:

- ``row``: the last row of the window,
- ``error``: mean of e_t = ||u_t - grad L_t(w_{t-1})||^2, where u_t is the gradient over the strata and grad L_t that
  over all earlier rows of the other class,
- ``norm``: mean of ||grad L_t(w_{t-1})||^2.

``STRATA``, axis "eps", one for clustering phi(x) (the paper) and one for clustering x. The value is a share of the mean
squared distance of two points, eps that share times this distance. Records:

- ``row``: rows learned, t - 1 when row t is the next,
- ``n_strata``: strata that row t meets, at most t - 1. One clustering of all rows, as the paper has it (joint), up to
  a cap; they are not followed any further once it is reached.
- ``bound_paper``, ``bound_packing``: logarithms to base 10 of the paper's bound, (R / r)^d rounded up, and of the
  packing bound, (1 + 2 R / r)^d, for balls of radius r in a ball of radius R in d dimensions. Both hold together with
  t - 1: ``at_most`` says what is left of them.

A row founds a stratum if its *squared* distance to all centres is above eps, so r = sqrt(eps) in both. In feature space
all points have norm 1: R = 1, and d is D, the number of features. In input space columns lie in [-1, 1] on the training
part: R = sqrt(d), and d the number of columns. The remark of the paper puts input space beside strata in feature space,
and eps for r; with that, (R / eps)^d is below 1 in input space wherever eps > R. The packing bound is for centres that
do not move; those of FPOGD do, by a twentieth of the way to each new member.
"""

from dataclasses import dataclass
from math import ceil, log10, sqrt
from time import process_time
from typing import Literal

import numpy as np
from sklearn.metrics import roc_auc_score

from pairloom.base.typing import Array
from pairloom.evaluation import gradient_variance
from pairloom.experiments.reproduce.auc_time import rows_between
from pairloom.experiments.reproduce.cells import Cell, Record, Task
from pairloom.experiments.reproduce.columns import Protocol, n_features_of
from pairloom.experiments.reproduce.config import read
from pairloom.experiments.reproduce.problems import Shape, Split, shape_of, split_of
from pairloom.experiments.reproduce.streams import core, learn
from pairloom.features import Gaussian, RandomFourier
from pairloom.memory import Strata
from pairloom.memory.base import Space
from pairloom.memory.strata import mean_squared_distance
from pairloom.systems import FPOGD

NAME = "clusters"
CURVE = "FPOGD, kernel"
GRADIENT = "FPOGD, kernel, gradient"
STRATA: dict[Space, str] = {"features": "strata in feature space", "input": "strata in input space"}

SAMPLE = 1_024
"""Rows whose mean squared distance is the unit of eps."""

FIRST_ROW = 32
"""The first row at which something is measured; the others are as far apart in logarithm."""


@dataclass(frozen=True)
class Fold:
    """Rows to learn and to test on: one of ``n_folds``, at most ``test_rows`` rows of its test part."""

    dataset: str
    fold: int
    n_folds: int
    test_rows: int
    seed: int

    def split(self) -> Split:
        """Scaled, float32 as the model is."""
        split = split_of(self.dataset, self.fold, self.n_folds, self.seed).first(None, self.test_rows).seen_as("scaled")
        return Split(split.X.astype(np.float32), split.y, split.X_test.astype(np.float32), split.y_test)


@dataclass(frozen=True)
class Learning:
    """How FPOGD learns: ``eps`` as a share of the mean squared distance; ``n_components`` D, or sqrt(T) ln T."""

    eps: float
    eta: float
    alpha: float
    n_components: int | Literal["auto"]

    def n_features(self, shape: Shape) -> int:
        """D for a training part."""
        return n_features_of(shape) if self.n_components == "auto" else self.n_components

    def fpogd(self, split: Split, max_strata: int, seed: int) -> FPOGD:
        """The learner; the first rows of the training part say how large eps is."""
        D = self.n_features(split.shape)
        eps = self.eps * mean_squared_distance(features(split.X[:SAMPLE], D, seed))
        return FPOGD(n_components=D, eta=self.eta, alpha=self.alpha, eps=eps, max_strata=max_strata, random_state=seed)


@dataclass(frozen=True)
class Config:
    """``configs/clusters.toml``.

    Parameters
    ----------
    folds : how many of the protocol's folds are run
    test_rows : the most rows to test on
    points : rows at which a curve is measured
    max_strata : values of s, for curves and gradients
    gradient_rows, window : rows of the gradient's error, and rows of one mean
    shares, cap : values of eps for the number of strata, as shares of the mean squared distance, and the most strata
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


class Clusters:
    """AUC, time and gradient against the largest number of strata, and the number of strata against eps."""

    name = NAME

    def tasks(self, quick: bool, datasets: tuple[str, ...] | None) -> list[Task]:
        """``datasets`` in place of those of the configuration."""
        config, protocol = read(NAME, Config, quick), read("protocol", Protocol, quick)
        tasks = []
        for dataset in datasets or config.datasets:
            folds = [Fold(dataset, k, protocol.folds, config.test_rows, protocol.seed) for k in range(config.folds)]
            for fold in folds:
                tasks += [_curve_task(config, fold, s) for s in config.max_strata]
                tasks += [_gradient_task(config, fold, s) for s in config.max_strata]
            # CSR rows have norm 1, in no box, and too many columns to cluster by.
            spaces = [space for space in STRATA if space == "features" or not _shape(folds[0]).sparse]
            tasks += [_strata_task(config, folds[0], space, share) for space in spaces for share in config.shares]
        return tasks


def _shape(data: Fold) -> Shape:
    return shape_of(data.dataset, data.n_folds)


def _curve_task(config: Config, data: Fold, s: int) -> Task:
    arguments = {"data": data, "learning": config.learning, "max_strata": s, "points": config.points}
    shape = _shape(data)
    flops = shape.n_rows * config.learning.n_features(shape) * (shape.n_features + 100 + 7 * s)
    return Task(Cell(NAME, data.dataset, CURVE, "max_strata", s, data.fold), curve, arguments, 0.9 + 4e-11 * flops)


def _gradient_task(config: Config, data: Fold, s: int) -> Task:
    arguments = {
        "data": data, "learning": config.learning, "max_strata": s, "rows": config.gradient_rows,
        "window": config.window,
    }  # fmt: skip
    D = config.learning.n_features(_shape(data))
    guess = config.gradient_rows * (1e-3 + 7e-7 * D + 1.1e-8 * D * s)
    return Task(Cell(NAME, data.dataset, GRADIENT, "max_strata", s, data.fold), gradient, arguments, guess)


def _strata_task(config: Config, data: Fold, space: Space, share: float) -> Task:
    arguments = {
        "data": data, "space": space, "share": share, "cap": config.cap, "points": config.points,
        "n_components": config.learning.n_features(_shape(data)),
    }  # fmt: skip
    guess = 3.0 if space == "features" else 0.3
    return Task(Cell(NAME, data.dataset, STRATA[space], "eps", share, data.fold), strata, arguments, guess)


def curve(data: Fold, learning: Learning, max_strata: int, points: int) -> list[Record]:
    """Learn a stream; AUC and time at some of its rows."""
    split = data.split()
    stream = core(learning.fpogd(split, max_strata, data.seed), split.X, split.y)
    records, seen, seconds = [], 0, 0.0
    for row in rows_between(FIRST_ROW, len(split.y), points):
        began = process_time()
        learn(stream, split.X[seen:row], split.y[seen:row])
        seconds, seen = seconds + process_time() - began, row
        auc = roc_auc_score(split.y_test, stream.score(split.X_test))
        records.append({"row": row, "seconds": seconds, "auc": float(auc)})
    return records


def gradient(data: Fold, learning: Learning, max_strata: int, rows: int, window: int) -> list[Record]:
    """Error and norm of the gradient along the learner's own path, in means over windows of rows."""
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
    """Cluster a stream, without a model: what a memory keeps does not depend on it."""
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


def features(X: Array, n_components: int, seed: int) -> Array:
    """phi(x), of the paper's width."""
    phi = RandomFourier(n_components, Gaussian("paper"))
    fixed = phi.fix(X.shape[1], None, np.random.default_rng(seed))
    return np.asarray(phi.apply(fixed, X), np.float32)


def paper_bound(radius: float, eps: float, dim: int) -> float:
    """log10 of the paper's bound, (R / sqrt(eps))^d rounded up.

    >>> paper_bound(2.0, 1.0, 10) == log10(1024), paper_bound(0.5, 1.0, 10_000)
    (True, 0.0)
    """
    power = dim * log10(radius / sqrt(eps))
    # Above 10^15, rounding up is less than what a float can tell.
    return power if power > 15 else log10(max(1, ceil(round(10**power, 9))))


def packing_bound(radius: float, eps: float, dim: int) -> float:
    """log10 of (1 + 2 R / sqrt(eps))^d: so many points more than sqrt(eps) apart fit into a ball of radius R.

    >>> round(packing_bound(1.0, 4.0, 3), 12) == round(3 * log10(2), 12)
    True
    """
    return dim * log10(1.0 + 2.0 * radius / sqrt(eps))


def at_most(row: int, bound: float) -> float:
    """min{t - 1, bound} when ``row`` = t - 1 rows were learned, of the logarithm of a bound.

    >>> at_most(100, 700.0), at_most(100, 1.0)
    (100.0, 10.0)
    """
    return float(10 ** min(bound, log10(row)))
