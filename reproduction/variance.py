r"""Variance of gradients: the error of the gradient of a small buffer, against the whole history (appendix B.3).

Every algorithm of :mod:`.buffers` learns the first training rows of a fold in the order of the shuffle, with four slots
*for each class*, so that a row has four partners (the paper does not specify it; Yang's has one). The measured quantity
is e_t = ||u_t - grad L_t(w)||^2, with both gradients as means over the partners. There is one cell for each data set,
algorithm and path (axis: ``PATHS``): w is the algorithm's own w_{t-1}, or that of exact gradients over the whole
history, the same for all. The first rows are skipped, because a buffer holds most of them. Records at some rows, on the
first fold:

- ``row``: t,
- ``running``: exponential average of e_t with factor 0.95, without the bias of its start.

One record without ``row``:

- ``mean``, ``norm``: of e_t and of ||grad L_t(w)||^2,
- ``q5`` ... ``q95``: quantiles of log10 e_t, where e_t is at least ``SMALLEST``.

The certificate of appendix A states that one draw from each stratum has no more variance than as many uniform draws.
Its cells (``CERTIFICATE``), axis "eps", use the strata of FPOGD with eps as a share of the mean squared distance, the
gradients of the common path, and exact variances over all partners of a row, at some rows. One record:

- ``above``: share of these rows where the variance by strata is larger; ``rows``: their number,
- ``ratio_q5`` ... ``ratio_q95``: quantiles of the ratio of the two variances,
- ``stratified``, ``uniform``: means of the two; ``printed``, the variance by strata as in the appendix, which is right
  for proportional allocation; ``neyman``, the smallest of any allocation,
- ``bound``, ``bound_uniform``: means of Lemma 1's bounds of the two; M is the Lipschitz constant at ||w||,
- ``n_strata``, ``largest``: mean number of strata that a row meets, and mean share of the largest one.
"""

from dataclasses import dataclass

import numpy as np

from pairloom import Learner, Stream
from pairloom.evaluation import gradient_variance
from pairloom.losses import Square
from pairloom.memory import Strata
from pairloom.theory import Partition, partner_smoothness
from reproduction.buffers import WHOLE, Buffer, BufferConfig, brief
from reproduction.cells import Array, Cell, Record, Task
from reproduction.clusters import features, mean_squared_distance
from reproduction.config import read
from reproduction.problems import Fold, Protocol

NAME = "variance"
CERTIFICATE = "certificate"

PATHS = {"own": "slots, own path", "common": "slots, common path"}
"""The path of the weights, and the axis of its cells; the value is the number of slots."""

QUANTILES = (5, 25, 50, 75, 95)
"""Quantiles of a box, in per cent."""

SMALLEST = 1e-12
"""A smaller error is rounding: it occurs while a buffer holds all past rows."""


@dataclass(frozen=True)
class Config(BufferConfig):
    """``configs/variance.toml``.

    Parameters
    ----------
    start : the first row to examine: before it, buffers hold most or all past rows
    shares, examined : values of eps for the certificate, and the number of rows to examine
    """

    start: int
    shares: tuple[float, ...]
    examined: int

    def arguments(self, data: Fold) -> dict[str, object]:
        """Return the arguments that all tasks share."""
        return {"data": data, "buffer": self.buffer(data), "rows": self.n_rows(data), "start": self.start,
                "eta": self.eta}  # fmt: skip


def tasks(quick: bool, datasets: tuple[str, ...] | None) -> list[Task]:
    """Return the tasks: errors of the gradients of small buffers, and variances of strata and of uniform draws."""
    config, protocol = read(NAME, Config, quick), read("protocol", Protocol, quick)
    made = []
    for fold in config.all_folds(protocol, datasets):
        made += [_error_task(config, fold, system, path) for system in config.systems for path in PATHS]
        made += [_certificate_task(config, fold, share) for share in config.shares]
    return made


def _error_task(config: Config, data: Fold, system: str, path: str) -> Task:
    # Only the first fold has a curve: the report shows no other.
    points = config.points if data.fold == 0 else 0
    arguments = config.arguments(data) | {"system": system, "path": path, "points": points}
    walkers, rows = [system] if path == "own" else [system, WHOLE], config.n_rows(data)
    kept = 2.5e-9 * config.n_components * rows / 2 * walkers.count(WHOLE)
    guess = 0.2 + rows * (4e-4 * len(walkers) + kept)
    return Task(Cell(NAME, data.dataset, system, PATHS[path], config.slots, data.fold), errors, arguments, guess)


def _certificate_task(config: Config, data: Fold, share: float) -> Task:
    arguments = config.arguments(data) | {"share": share, "examined": config.examined}
    rows = config.n_rows(data)
    guess = 0.2 + config.n_components * rows * (2.5e-9 * rows + 1.5e-8 * config.examined)
    return Task(Cell(NAME, data.dataset, CERTIFICATE, "eps", share, data.fold), certificate, arguments, guess)


def errors(
    data: Fold, buffer: Buffer, rows: int, start: int, eta: float, system: str, path: str, points: int
) -> list[Record]:  # fmt: skip
    """Return e_t of one algorithm along one path."""
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
    """Return the quantiles of a box, as columns of a record.

    >>> quantiles("q", [1.0, 2.0, 3.0])["q50"]
    2.0
    """
    return {f"{name}{q}": float(np.percentile(values, q)) for q in QUANTILES}


def certificate(
    data: Fold, buffer: Buffer, rows: int, start: int, eta: float, share: float, examined: int
) -> list[Record]:  # fmt: skip
    """Return exact variances by strata and by uniform draws, at equally spaced rows."""
    split = data.split().first(rows)
    Z, W = path_of(buffer.learner(WHOLE, eta, rows), split.X, split.y)
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


def path_of(learner: Learner, X: Array, y: Array) -> tuple[Array, Array]:
    """Return phi(x) of each row, and the weights of a learner before it learns the row."""
    stream, W = Stream(learner), []
    stream.start(X.shape[1])
    for t in range(len(y)):
        W.append(stream.coef[0].copy())
        stream.partial_fit(X[t : t + 1], y[t : t + 1])
    return np.asarray(learner.features.apply(stream.learned.phi, X.astype(float))), np.array(W)


def strata_of(Z: Array, y: Array, eps: float, max_strata: int) -> Array:
    """Return the stratum that each row joins. Strata are per class and do not depend on a model."""
    memory = Strata(eps=eps, max_strata=max_strata)
    state = memory.start(0, Z.shape[1], 2, Z.dtype, None)
    return memory.plan(state, Z, (y > 0).astype(float), np.ones(len(y)), np.empty((len(y), 0))).slot


def pair_gradients(w: Array, z: Array, partners: Array, sign: float) -> tuple[Array, float]:
    """Return the gradients of the square loss of a row with each partner, and their Lipschitz constant."""
    apart = z - partners
    slopes = sign * Square().derivative(sign * (apart @ w))
    farthest = float(np.sqrt(np.square(apart).sum(axis=1).max()))
    return slopes[:, None] * apart, partner_smoothness(Square(), float(np.linalg.norm(w)), farthest)


def compared(gradients: Partition, points: Partition, M: float) -> dict[str, float]:
    """Return the variances at one row, and their bounds by Lemma 1."""
    k = len(gradients.sizes)
    return {
        "stratified": gradients.stratified(), "uniform": gradients.uniform(k), "printed": gradients.proportional(k),
        "neyman": gradients.neyman(k), "bound": points.stratified_bound(M),
        "bound_uniform": points.uniform_bound(M) / k, "n_strata": float(k), "largest": float(gradients.shares.max()),
    }  # fmt: skip
