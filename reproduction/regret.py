r"""Regret of buffer algorithms against the best fixed weights, on shuffled and on sorted streams (section 4).

Every algorithm of :mod:`.buffers` learns the first training rows of a fold, scaled to [-1, 1], in several orders:
shuffles, and sorted by each of the scaled columns of largest variance. L_t is the mean loss of a row's pairs with all
earlier rows of the other class, w* the minimiser of the sum of all L_t in the same feature space. There is one cell for
each data set, algorithm, kind of order (axis: ``ORDERS``), number of the order (fold) and step (value): a constant, and
1 / sqrt(T) of the paper's remark. Records at some rows, all of them sums up to that row:

- ``row``: t,
- ``before``, ``after``: R_t with L_t(w_{t-1}), the definition, and with L_t(w_t), the caption of the figure,
- ``best``, ``near``: the loss of w*, and of w' (below),
- ``bound``, ``bound_after``: Lemma 2, for ``before``, and Theorem 5 as its proof has it, for ``after``.

One record without ``row``, for the whole stream:

- ``exponent``, ``low``, ``high``: b of R_t ~ t^b with its 95 % interval, over the last nine tenths of the rows; the
  same with ``_after``, and with ``_near`` for the regret before the step against w',
- ``error``, ``norm``: means of e_t = ||u_t - grad L_t(w_{t-1})||^2 and of ||grad L_t(w_{t-1})||^2,
- ``squared_norm``: ||w*||^2, and ``lemma``, ``theorem``: the bounds with it,
- ``feature``: the number of the column by which the rows are sorted, counted from 1.

The bounds use e_t of the run as the variance. They hold for any weights instead of w*. ||w*||^2 is often so large that
they say nothing about w*, because no algorithm reaches it in T steps. So ``bound`` uses the weights w' for which it is
smallest, the minimiser of sum_t L_t(w) + ||w||^2 / (2 eta): R_t <= bound(w') + sum of L_t(w') - L_t(w*). Algorithms
that average over rows of both classes take shorter steps than eta and have no bounds.

For the remark that the regret may be of order log T without variance there are other cells: gradients over the whole
history, axis "T", eta = 1 / ln T, and few features, so that there are many more rows than weights. Records: ``row``
(T), ``before``, ``after`` and ``best``, at the last row only.
"""

from dataclasses import dataclass, replace
from math import log, sqrt

import numpy as np

from pairloom.evaluation import GradientVariance, Regret, gradient_variance, regret
from pairloom.losses import Square
from pairloom.theory import RegretBound, smoothness
from reproduction.auc_time import rows_between
from reproduction.buffers import BY_CLASS, FRESH, WHOLE, Buffer, BufferConfig, brief, in_order_of, widest_feature
from reproduction.cells import Array, Cell, Record, Task
from reproduction.config import read
from reproduction.problems import Fold, Protocol, Split

NAME = "regret"

ORDERS = {"i.i.d.": "eta, i.i.d. order", "sorted": "eta, sorted"}
"""Order of the rows, and the axis of its cells; the value is the step."""

HORIZON = "T"
"""The axis of the cells without variance."""

FIRST_ROW = 10
"""The first row of a curve."""


@dataclass(frozen=True)
class Config(BufferConfig):
    """``configs/regret.toml``.

    Parameters
    ----------
    orders : number of orders of each kind; the fold of a cell is the number of its order
    horizons, horizon_components : T and D of the cells without variance
    """

    orders: int
    horizons: tuple[int, ...]
    horizon_components: int


def tasks(quick: bool, datasets: tuple[str, ...] | None) -> list[Task]:
    """Return tasks: regret along streams in two orders, and, without variance, at the end of streams."""
    config, protocol = read(NAME, Config, quick), read("protocol", Protocol, quick)
    made = []
    for fold in config.all_folds(protocol, datasets):
        if fold.shape.sparse:
            continue  # text has no column to sort by
        runs = [(config.eta, number) for number in range(config.orders)] + [(1 / sqrt(config.n_rows(fold)), 0)]
        made += [
            _curve_task(config, fold, system, order, number, eta)
            for system in config.systems for order in ORDERS for eta, number in runs
        ]  # fmt: skip
        made += [_end_task(config, fold, T) for T in config.horizons if fold.shape.n_rows >= T]
    return made


def _curve_task(config: Config, data: Fold, system: str, order: str, number: int, eta: float) -> Task:
    rows, buffer = config.n_rows(data), replace(config.buffer(data), seed=data.seed + number)
    arguments = {"data": data, "buffer": buffer, "rows": rows, "system": system, "order": order, "number": number,
                 "eta": eta, "points": config.points}  # fmt: skip
    cell = Cell(NAME, data.dataset, system, ORDERS[order], eta, number)
    return Task(cell, curve, arguments, 2 * _seconds(system, rows, config.n_components))


def _end_task(config: Config, data: Fold, rows: int) -> Task:
    buffer = replace(config.buffer(data), n_components=config.horizon_components)
    arguments = {"data": data, "buffer": buffer, "rows": rows}
    guess = _seconds(WHOLE, rows, config.horizon_components)
    return Task(Cell(NAME, data.dataset, WHOLE, HORIZON, rows, data.fold), end, arguments, guess)


def _seconds(system: str, rows: int, D: int) -> float:
    """Return the estimated CPU time of one pass with its evaluation."""
    kept = {WHOLE: 2.5e-9 * D, FRESH: 3e-8}.get(system, 0.0)
    return 0.05 + rows * (3.5e-4 + 3e-9 * D**2 + kept * rows / 2)


def ordered(split: Split, order: str, number: int) -> tuple[Split, int]:
    """Return a stream, and the number of the column by which it is sorted, counted from 1; 0 if it is not sorted.

    ``number`` is that of the shuffle, or the rank of the column by its variance.
    """
    if order == "i.i.d.":
        rows = np.random.default_rng(number).permutation(len(split.y)) if number else np.arange(len(split.y))
        return Split(split.X[rows], split.y[rows], split.X_test, split.y_test), 0
    feature = widest_feature(split.X, number)
    return in_order_of(split, feature), feature + 1


def curve(
    data: Fold, buffer: Buffer, rows: int, system: str, order: str, number: int, eta: float, points: int
) -> list[Record]:  # fmt: skip
    """Return the regret of one algorithm along one stream."""
    split, feature = ordered(data.split().first(rows), order, number)
    learner = buffer.learner(system, eta, rows)
    found = regret(learner, split.X, split.y)
    gradients = gradient_variance(learner, split.X, split.y)
    reached = regret(learner, split.X, split.y, penalty=1 / eta)
    near = reached.comparator[0]
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
    """Return b of R_t ~ t^b with its interval, as columns of a record."""
    values = found.exponent(after=ending == "_after")
    return {f"{name}{ending}": value for name, value in zip(("exponent", "low", "high"), values, strict=True)}


def bounds(eta: float, squared_norm: float, gradients: GradientVariance) -> dict[str, Array]:
    """Return the bounds of Lemma 2 and Theorem 5 on the regret up to each row against any weights of this norm."""
    way = squared_norm / (2.0 * eta)
    return {
        "bound": way + 0.5 * eta * np.cumsum(gradients.errors + gradients.norms),
        "bound_after": way + eta * np.cumsum(gradients.errors),
    }


def printed_bounds(eta: float, squared_norm: float, gradients: GradientVariance) -> Record:
    """Return the bounds on R_T with w* itself; that of the theorem only if the step is small enough."""
    M = smoothness(Square())
    made = {"lemma": RegretBound.lemma(eta, squared_norm, gradients.errors, gradients.norms).total}
    if eta <= 1 / M:
        made["theorem"] = RegretBound.theorem(eta, squared_norm, gradients.errors, M).total
    return made


def end(data: Fold, buffer: Buffer, rows: int) -> list[Record]:
    """Return the regret of T rows with gradients over the whole history and eta = 1 / ln T."""
    split = data.split().first(rows)
    found = regret(buffer.learner(WHOLE, 1 / log(rows), rows), split.X, split.y)
    sums = {"before": found.total[-1], "after": found.total_after[-1], "best": found.best.sum()}
    return [brief({"row": rows, **{name: float(value) for name, value in sums.items()}})]
