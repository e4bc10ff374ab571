r"""Variance of gradients: how far the gradient of a small buffer is from that of the whole history (appendix B.3).

Every algorithm of :mod:`.buffers` with four slots *for each class*, so that a row meets four partners (the paper does
not say; Yang's has one), on the first training rows of a fold, in the order of the shuffle. Measured is
e_t = ||u_t - grad L_t(w)||^2, both gradients as means over the partners. One cell for each set, algorithm and path
(axis: ``PATHS``): w is the algorithm's own w_{t-1}, or, the same for all, that of exact gradients over the whole
history. The first rows, of which a buffer holds much, are left out. Records at some rows, on the first fold:

- ``row``: t,
- ``running``: exponential average of e_t with factor 0.95, without the bias of its start.

and one without ``row``:

- ``mean``, ``norm``: of e_t and of ||grad L_t(w)||^2,
- ``q5`` ... ``q95``: quantiles of log10 e_t, of which none is taken below ``SMALLEST``.

The certificate of appendix A, that one draw from each stratum varies no more than as many uniform draws from all, has
cells of its own (``CERTIFICATE``), axis "eps": the strata of FPOGD with eps that share of the mean squared distance,
the gradients of the common path, and exact variances over all partners of a row, at some rows. One record:

- ``above``: share of these rows at which the strata's variance is the larger one; ``rows``: their number,
- ``ratio_q5`` ... ``ratio_q95``: quantiles of the ratio of the two variances,
- ``stratified``, ``uniform``: means of the two; ``printed``, the variance of strata by the appendix, which is that of
  draws shared out in proportion; ``neyman``, the least by any way of sharing out,
- ``bound``, ``bound_uniform``: means of Lemma 1's bounds of the two; M is the Lipschitz constant at ||w||,
- ``n_strata``, ``largest``: means of the number of strata that a row meets, and of the largest one's share.
"""

from dataclasses import dataclass

import numpy as np

from pairloom.base.typing import Array
from pairloom.evaluation import gradient_variance
from pairloom.evaluation.passes import Pass, learner_and_rows
from pairloom.evaluation.regret import walk
from pairloom.experiments.reproduce.buffers import WHOLE, Buffer, brief
from pairloom.experiments.reproduce.cells import Cell, Record, Task
from pairloom.experiments.reproduce.clusters import Fold, features
from pairloom.experiments.reproduce.columns import Protocol
from pairloom.experiments.reproduce.config import read
from pairloom.experiments.reproduce.problems import shape_of
from pairloom.losses import Square
from pairloom.memory import Strata
from pairloom.memory.strata import mean_squared_distance
from pairloom.theory import Partition, partner_smoothness

NAME = "variance"
CERTIFICATE = "certificate"

PATHS = {"own": "slots, own path", "common": "slots, common path"}
"""Where gradients are taken, and the axis of these cells, whose value is the number of slots."""

QUANTILES = (5, 25, 50, 75, 95)
"""Of a box, in per cent."""

SMALLEST = 1e-12
"""An error below this is rounding: so it is while a buffer holds all of the past."""


@dataclass(frozen=True)
class Config:
    """``configs/variance.toml``.

    Parameters
    ----------
    systems : names of :mod:`.buffers`
    folds, rows : how many of the protocol's folds are run, and the rows of a stream, at most
    points : rows at which the running average is written down, on the first fold
    start : the first row that is examined: before it, buffers hold much of the past, or all of it
    eta, n_components, slots : of the learners
    shares, examined : values of eps for the certificate, and rows at which it is examined
    """

    datasets: tuple[str, ...]
    systems: tuple[str, ...]
    folds: int
    rows: int
    points: int
    start: int
    eta: float
    n_components: int
    slots: int
    shares: tuple[float, ...]
    examined: int


class Variance:
    """Errors of the gradients of small buffers, and variances of strata and of uniform draws."""

    name = NAME

    def tasks(self, quick: bool, datasets: tuple[str, ...] | None) -> list[Task]:
        """``datasets`` in place of those of the configuration."""
        config, protocol = read(NAME, Config, quick), read("protocol", Protocol, quick)
        tasks = []
        for dataset in datasets or config.datasets:
            for fold in (Fold(dataset, k, protocol.folds, 1, protocol.seed) for k in range(config.folds)):
                tasks += [_error_task(config, fold, system, path) for system in config.systems for path in PATHS]
                tasks += [_certificate_task(config, fold, share) for share in config.shares]
        return tasks


def _rows(config: Config, data: Fold) -> int:
    return min(config.rows, shape_of(data.dataset, data.n_folds).n_rows)


def _arguments(config: Config, data: Fold) -> dict[str, object]:
    """Of every task."""
    buffer = Buffer(config.n_components, config.slots, data.seed + data.fold)
    return {"data": data, "buffer": buffer, "rows": _rows(config, data), "start": config.start, "eta": config.eta}


def _error_task(config: Config, data: Fold, system: str, path: str) -> Task:
    # One fold has curves: of the others, means and boxes are enough.
    points = config.points if data.fold == 0 else 0
    arguments = _arguments(config, data) | {"system": system, "path": path, "points": points}
    walkers, rows = [system] if path == "own" else [system, WHOLE], _rows(config, data)
    kept = 2.5e-9 * config.n_components * rows / 2 * walkers.count(WHOLE)
    guess = 0.2 + rows * (4e-4 * len(walkers) + kept)
    return Task(Cell(NAME, data.dataset, system, PATHS[path], config.slots, data.fold), errors, arguments, guess)


def _certificate_task(config: Config, data: Fold, share: float) -> Task:
    arguments = _arguments(config, data) | {"share": share, "examined": config.examined}
    rows = _rows(config, data)
    guess = 0.2 + config.n_components * rows * (2.5e-9 * rows + 1.5e-8 * config.examined)
    return Task(Cell(NAME, data.dataset, CERTIFICATE, "eps", share, data.fold), certificate, arguments, guess)


def errors(
    data: Fold, buffer: Buffer, rows: int, start: int, eta: float, system: str, path: str, points: int
) -> list[Record]:  # fmt: skip
    """e_t of one algorithm along one path."""
    split = data.split().first(rows)
    learner = buffer.learner(system, eta, rows)
    common = None if path == "own" else buffer.learner(WHOLE, eta, rows)
    found = gradient_variance(learner, split.X, split.y, path=common, start=start)
    at = np.unique(np.linspace(0, len(found) - 1, points).round().astype(int))
    running = found.running()
    curve = [{"row": int(found.rows[i]), "running": float(running[i])} for i in at]
    whole = {"mean": found.mean(), "norm": float(found.norms.mean())}
    logs = np.log10(np.maximum(found.errors, SMALLEST))
    return [brief(one) for one in (*curve, whole | quantiles("q", logs))]


def quantiles(name: str, values: Array | list[float]) -> Record:
    """A box, by columns.

    >>> quantiles("q", [1.0, 2.0, 3.0])["q50"]
    2.0
    """
    return {f"{name}{q}": float(np.percentile(values, q)) for q in QUANTILES}


def certificate(
    data: Fold, buffer: Buffer, rows: int, start: int, eta: float, share: float, examined: int
) -> list[Record]:  # fmt: skip
    """Exact variances by strata and by uniform draws, at rows equally far apart."""
    split = data.split().first(rows)
    own = Pass(*learner_and_rows(buffer.learner(WHOLE, eta, rows), split.X, split.y))
    Z = np.concatenate([Z for _, Z in own.blocks()])
    W = walk(own, range(rows))[:, 0]
    eps = share * mean_squared_distance(features(split.X, buffer.n_components, buffer.seed))
    strata = strata_of(Z, split.y, eps, buffer.slots)
    positive = split.y > 0
    made = []
    for t in np.unique(np.linspace(start - 1, rows - 1, examined).round().astype(int)):
        partners = np.flatnonzero(positive[:t] != positive[t])
        if len(partners) > buffer.slots:
            gradients, M = pair_gradients(W[t], Z[t], Z[partners], 1.0 if positive[t] else -1.0)
            members = strata[partners]
            made.append(compared(Partition.of(gradients, members), Partition.of(Z[partners], members), M))
    ratios = [one["stratified"] / one["uniform"] for one in made if one["uniform"] > 0]
    means = {name: float(np.mean([one[name] for one in made])) for name in made[0]}
    above = float(np.mean([ratio > 1 + 1e-9 for ratio in ratios]))
    return [brief({"rows": len(ratios), "above": above, **quantiles("ratio_q", ratios), **means})]


def strata_of(Z: Array, y: Array, eps: float, max_strata: int) -> Array:
    """The stratum that each row joins; they are per class, and do not depend on a model."""
    memory = Strata(eps=eps, max_strata=max_strata)
    state = memory.start(0, Z.shape[1], 2, Z.dtype, None)
    return memory.plan(state, Z, (y > 0).astype(float), np.ones(len(y)), np.empty((len(y), 0))).slot


def pair_gradients(w: Array, z: Array, partners: Array, sign: float) -> tuple[Array, float]:
    """Of the square loss of a row with each of its partners, and how fast they change with the partner."""
    apart = z - partners
    slopes = sign * Square().derivative(sign * (apart @ w))
    farthest = float(np.sqrt(np.square(apart).sum(axis=1).max()))
    return slopes[:, None] * apart, partner_smoothness(Square(), float(np.linalg.norm(w)), farthest)


def compared(gradients: Partition, points: Partition, M: float) -> dict[str, float]:
    """The variances of one row, and Lemma 1's bounds of them."""
    k = len(gradients.sizes)
    return {
        "stratified": gradients.stratified(), "uniform": gradients.uniform(k), "printed": gradients.proportional(k),
        "neyman": gradients.neyman(k), "bound": points.stratified_bound(M),
        "bound_uniform": points.uniform_bound(M) / k, "n_strata": float(k), "largest": float(gradients.shares.max()),
    }  # fmt: skip
