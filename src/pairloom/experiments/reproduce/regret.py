r"""Regret: what buffer algorithms lose against the best fixed weights, on shuffled and on sorted streams (section 4).

Every algorithm of :mod:`.buffers` learns the first training rows of a fold, scaled onto [-1, 1], in the order of the
shuffle or sorted by the scaled column of largest variance. L_t is the mean loss of a row's pairs with all earlier rows
of the other class, w* the minimiser of the sum of all L_t in the same feature space. One cell for each set, algorithm,
order (axis: ``ORDERS``) and step (value): a constant, and 1 / sqrt(T) of the paper's remark. Its records at some rows,
all of them sums up to that row:

- ``row``: t,
- ``before``, ``after``: R_t with L_t(w_{t-1}), the definition, and with L_t(w_t), the caption of the figure,
- ``best``, ``near``: the loss of w*, and of w' (below),
- ``bound``, ``bound_after``: Lemma 2, for ``before``, and Theorem 5 as its proof has it, for ``after``.

and one without ``row`` for the whole stream:

- ``exponent``, ``low``, ``high``: b of R_t ~ t^b with its 95 % interval, over the last nine tenths of the rows; the
  same with ``_after``, and with ``_near`` for the regret before the step against w',
- ``error``, ``norm``: means of e_t = ||u_t - grad L_t(w_{t-1})||^2 and of ||grad L_t(w_{t-1})||^2,
- ``squared_norm``: ||w*||^2, and ``lemma``, ``theorem``: the bounds with it,
- ``feature``: the column that the rows are sorted by, counted from 1.

The bounds take e_t of the run for the variance. They hold for any weights in the place of w*, and ||w*||^2 is often so
large that they say nothing of w*: no algorithm gets there in T steps. So ``bound`` is that of the weights w' that make
it least, the minimiser of sum_t L_t(w) + ||w||^2 / (2 eta): R_t <= bound(w') + sum of L_t(w') - L_t(w*). Steps of
algorithms that average over rows of both classes are shorter than eta: they have no bounds.

The remark that without variance the regret may be of order log T has cells of its own: gradients over the whole
history, axis "T", eta = 1 / ln T, few features, so that there are many more rows than weights. Records: ``row`` (T),
``before``, ``after`` and ``best``, at the last row only.
"""

from dataclasses import dataclass, replace
from math import log, sqrt

import numpy as np

from pairloom.base.typing import Array
from pairloom.evaluation import GradientVariance, Regret, gradient_variance, regret
from pairloom.evaluation.comparator import minimiser
from pairloom.evaluation.history import MAX_ROWS
from pairloom.evaluation.passes import Pass, learner_and_rows
from pairloom.evaluation.regret import losses_at
from pairloom.experiments.reproduce.auc_time import rows_between
from pairloom.experiments.reproduce.buffers import BY_CLASS, FRESH, WHOLE, Buffer, brief, in_order_of, widest_feature
from pairloom.experiments.reproduce.cells import Cell, Record, Task
from pairloom.experiments.reproduce.clusters import Fold
from pairloom.experiments.reproduce.columns import Protocol
from pairloom.experiments.reproduce.config import read
from pairloom.experiments.reproduce.problems import Split, shape_of
from pairloom.losses import Square
from pairloom.theory import RegretBound, smoothness

NAME = "regret"

ORDERS = {"i.i.d.": "eta, i.i.d. order", "sorted": "eta, sorted"}
"""Order of the rows, and the axis of its cells, whose value is the step."""

HORIZON = "T"
"""The axis of the cells without variance."""

FIRST_ROW = 10
"""The first row of a curve."""


@dataclass(frozen=True)
class Config:
    """``configs/regret.toml``.

    Parameters
    ----------
    systems : names of :mod:`.buffers`
    folds, rows : how many of the protocol's folds are run, and the rows of a stream, at most
    points : rows at which a curve is measured
    eta : the constant step; the other one is 1 / sqrt(T)
    n_components, slots : of :class:`.Buffer`
    horizons, horizon_components : T and D of the cells without variance
    """

    datasets: tuple[str, ...]
    systems: tuple[str, ...]
    folds: int
    rows: int
    points: int
    eta: float
    n_components: int
    slots: int
    horizons: tuple[int, ...]
    horizon_components: int


class RegretCurves:
    """Regret along streams in two orders, and at the end of longer and longer streams without variance."""

    name = NAME

    def tasks(self, quick: bool, datasets: tuple[str, ...] | None) -> list[Task]:
        """``datasets`` in place of those of the configuration."""
        config, protocol = read(NAME, Config, quick), read("protocol", Protocol, quick)
        tasks = []
        for dataset in datasets or config.datasets:
            shape = shape_of(dataset, protocol.folds)
            if shape.sparse:
                continue  # no column of text to sort by
            rows = min(config.rows, shape.n_rows)
            for fold in (Fold(dataset, k, protocol.folds, 1, protocol.seed) for k in range(config.folds)):
                tasks += [
                    _curve_task(config, fold, rows, system, order, eta)
                    for system in config.systems for order in ORDERS for eta in (config.eta, 1 / sqrt(rows))
                ]  # fmt: skip
                tasks += [_end_task(config, fold, T) for T in config.horizons if shape.n_rows >= T]
        return tasks


def _buffer(config: Config, data: Fold) -> Buffer:
    return Buffer(config.n_components, config.slots, data.seed + data.fold)


def _curve_task(config: Config, data: Fold, rows: int, system: str, order: str, eta: float) -> Task:
    arguments = {"data": data, "buffer": _buffer(config, data), "rows": rows, "system": system, "order": order,
                 "eta": eta, "points": config.points}  # fmt: skip
    cell = Cell(NAME, data.dataset, system, ORDERS[order], eta, data.fold)
    return Task(cell, curve, arguments, 2 * _seconds(system, rows, config.n_components))


def _end_task(config: Config, data: Fold, rows: int) -> Task:
    buffer = replace(_buffer(config, data), n_components=config.horizon_components)
    arguments = {"data": data, "buffer": buffer, "rows": rows}
    guess = _seconds(WHOLE, rows, config.horizon_components)
    return Task(Cell(NAME, data.dataset, WHOLE, HORIZON, rows, data.fold), end, arguments, guess)


def _seconds(system: str, rows: int, D: int) -> float:
    """Of one pass that is looked at, in CPU time."""
    kept = {WHOLE: 2.5e-9 * D, FRESH: 3e-8}.get(system, 0.0)
    return 0.05 + rows * (3.5e-4 + 3e-9 * D**2 + kept * rows / 2)


def ordered(split: Split, order: str) -> tuple[Split, int]:
    """A stream, and the column that it is sorted by, counted from 1, or 0."""
    if order == "i.i.d.":
        return split, 0
    feature = widest_feature(split.X)
    return in_order_of(split, feature), feature + 1


def curve(
    data: Fold, buffer: Buffer, rows: int, system: str, order: str, eta: float, points: int
) -> list[Record]:  # fmt: skip
    """The regret of one algorithm along one stream."""
    split, feature = ordered(data.split().first(rows), order)
    learner = buffer.learner(system, eta, rows)
    found = regret(learner, split.X, split.y)
    gradients = gradient_variance(learner, split.X, split.y)
    own = Pass(*learner_and_rows(learner, split.X, split.y))
    near = minimiser(own, 0, "class", penalty=1 / eta).w
    reached = replace(found, best=losses_at(own, near[None], "class", MAX_ROWS)[found.rows - 1])
    columns: dict[str, Array] = {
        "before": found.total, "after": found.total_after, "best": np.cumsum(found.best),
        "near": np.cumsum(reached.best),
    }  # fmt: skip
    whole: Record = {
        **exponent(found), **exponent(found, "_after"), **exponent(reached, "_near"), "error": gradients.mean(),
        "norm": float(gradients.norms.mean()), "squared_norm": float(np.square(found.comparator).sum()),
        "feature": feature,
    }  # fmt: skip
    if system in BY_CLASS:
        more = columns["near"] - columns["best"]
        limits = bounds(eta, float(near @ near), gradients)
        columns |= {name: limit + more for name, limit in limits.items()}
        whole |= printed_bounds(eta, whole["squared_norm"], gradients)
    at = np.searchsorted(found.rows, rows_between(FIRST_ROW, int(found.rows[-1]), points))
    curves = [{"row": int(found.rows[i]), **{name: float(one[i]) for name, one in columns.items()}}
              for i in np.unique(at)]  # fmt: skip
    return [brief(one) for one in (*curves, whole)]


def exponent(found: Regret, ending: str = "") -> Record:
    """b of R_t ~ t^b with its interval, by columns."""
    values = found.exponent(after=ending == "_after")
    return {f"{name}{ending}": value for name, value in zip(("exponent", "low", "high"), values, strict=True)}


def bounds(eta: float, squared_norm: float, gradients: GradientVariance) -> dict[str, Array]:
    """Lemma 2 and Theorem 5 for the regret against any weights of this norm, up to every row."""
    way = squared_norm / (2.0 * eta)
    return {
        "bound": way + 0.5 * eta * np.cumsum(gradients.errors + gradients.norms),
        "bound_after": way + eta * np.cumsum(gradients.errors),
    }


def printed_bounds(eta: float, squared_norm: float, gradients: GradientVariance) -> Record:
    """Of R_T, by w* itself; the theorem's where the step is short enough for it."""
    M = smoothness(Square())
    made = {"lemma": RegretBound.lemma(eta, squared_norm, gradients.errors, gradients.norms).total}
    if eta <= 1 / M:
        made["theorem"] = RegretBound.theorem(eta, squared_norm, gradients.errors, M).total
    return made


def end(data: Fold, buffer: Buffer, rows: int) -> list[Record]:
    """The regret of T rows with gradients over the whole history and eta = 1 / ln T."""
    split = data.split().first(rows)
    found = regret(buffer.learner(WHOLE, 1 / log(rows), rows), split.X, split.y)
    sums = {"before": found.total[-1], "after": found.total_after[-1], "best": found.best.sum()}
    return [brief({"row": rows, **{name: float(value) for name, value in sums.items()}})]
