"""How far the gradient that a memory gives is from the one that all of the past would give."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.threads import on_one_thread
from pairloom.base.tree import same
from pairloom.base.typing import Array
from pairloom.evaluation.comparator import Scale
from pairloom.evaluation.history import MAX_ROWS, PairSums, history_of
from pairloom.evaluation.passes import Pass, learner_and_rows


@dataclass(frozen=True, eq=False)
class GradientVariance:
    """What ``gradient_variance`` saw at each examined row that had a partner in the past.

    Attributes
    ----------
    rows : t, counted from 1.
    errors : e_t = ||u_t - grad L_t(w_{t-1})||^2.
    norms : ||grad L_t(w_{t-1})||^2.
    n_slots : partners that the memory had for the row, of all vectors together.
    normalization : of both gradients: "class" or "history".
    """

    rows: Array = field(repr=False)
    errors: Array = field(repr=False)
    norms: Array = field(repr=False)
    n_slots: Array = field(repr=False)
    normalization: Scale

    def __len__(self) -> int:
        return len(self.rows)

    def mean(self) -> float:
        """The mean of all e_t."""
        return float(self.errors.mean())

    def share(self) -> float:
        """The mean of all e_t relative to that of all squared norms: 0 without sampling, 1 as bad as no step."""
        return float(self.errors.sum() / self.norms.sum())

    def running(self, factor: float = 0.95) -> Array:
        """Exponential average of e_t up to each row, without the bias of its start: (1 - f) sum f^k e / (1 - f^n).

        >>> ones = GradientVariance(np.arange(3), np.ones(3), np.ones(3), np.ones(3), "class")
        >>> ones.running().round(12).tolist()
        [1.0, 1.0, 1.0]
        """
        check_number("factor", factor, 0, 1)
        total, weight, made = 0.0, 0.0, np.empty(len(self))
        for i, error in enumerate(self.errors.tolist()):
            total, weight = factor * total + error, factor * weight + 1.0
            made[i] = total / weight
        return made


def gradient_variance(
    model: Any,
    X: Any,
    y: Any,
    *,
    path: Any = None,
    normalization: Scale = "class",
    every: int = 1,
    start: int = 1,
    max_rows: int = MAX_ROWS,
) -> GradientVariance:
    r"""The squared error of the gradient from a memory, at each row of a stream.

    .. math::

        e_t = \| u_t - \nabla L_t(w_{t-1}) \|^2, \quad
        u_t = \sum_{j \in B_t} p_j \nabla\ell(w_{t-1}; z_t, z_j), \quad
        \nabla L_t = \frac{1}{N_t} \sum_{i < t,\, i \text{ a partner of } t} \nabla\ell(w_{t-1}; z_t, z_i)

    Both gradients are taken at the same w, before the step, without the penalty. With more than two classes the squared
    norms of all vectors are added up. Rows without a partner in the past have no gradient and are left out; where the
    past has partners and the memory has none, u_t = 0. The number of a row that is examined, t, and its error do not
    depend on which other rows are examined.

    Parameters
    ----------
    model
        A :class:`~pairloom.Learner`, or an estimator that is one: FPOGD, OGD, OLP, OAM, FourierSGD with pairs. It is
        not changed: a copy learns the rows from the start. Rules on data are those of the end of the stream.
    X, y
        Rows in order, and their labels.
    path
        Where gradients are taken. None: along the model's own path. Another model: along that one's path, to compare
        memories at the same w; it must have the same features and the same seed. Weights (D,): always there. Weights
        (rows, D): line t - 1 for row t.
    normalization
        N_t: the rows that t makes a pair with ("class"), or all t - 1 rows before it ("history", as the paper prints
        it). It also holds for u_t, whatever weights the memory has: they are multiplied by what makes them a mean over
        so many rows. So memories of any normalization can be compared.
    every, start
        Rows start, start + every, ... are examined, counted from 1.
    max_rows
        Rows that may be kept where moments are not enough: for other losses than the square loss, and other pairs than
        those of classes. A longer stream is refused.

    Cost: the square loss on classes takes 4 D^2 flops for each row and D^2 numbers for each class; others 4 t D flops
    for row t and all rows. All in float64.

    References: AlQuabeh, Mukhoty and Gu, ACML 2023, the figures of the gradient's variance.

    >>> from pairloom.systems import FPOGD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = (X ** 2).sum(axis=1) > 2
    >>> mean, newest = (
    ...     gradient_variance(FPOGD(max_strata=4, representative=r, n_components=64, random_state=0), X, y)
    ...     for r in ("centroid", "fifo")
    ... )
    >>> bool(mean.mean() < 0.5 * newest.mean())
    True
    """
    check_choice("normalization", normalization, Scale)
    for name, value in (("every", every), ("start", start), ("max_rows", max_rows)):
        check_count(name, value)
    own = Pass(*learner_and_rows(model, X, y))
    way = Path.of(path, own, X, y)
    history = history_of(own.learner, len(own.batch) - own.first, own.dim, max_rows)
    pieces = []
    for rows, Z in own.blocks():
        at = np.flatnonzero((np.arange(rows.start, rows.stop) + 1 - start) % every == 0)
        at = at[rows.start + at + 1 >= start]
        W, U, n_slots = look(own, way, rows, Z, at)
        sums = history.extend(Z, own.batch.y[rows.start : rows.stop], at, W)
        pieces.append(compared(own, rows.start + at, U, n_slots, sums, normalization))
    numbers, errors, norms, slots = (np.concatenate(column) for column in zip(*pieces, strict=True))
    if not len(numbers):
        raise ValueError("no examined row makes a pair with one before it: lower start or every")
    return GradientVariance(numbers, errors, norms, slots, normalization)


@dataclass(frozen=True)
class Path:
    """The weights at which gradients are taken: of a pass that goes along, or given, one for all rows or one each."""

    walker: Pass
    given: Array | None = None

    @classmethod
    def of(cls, path: Any, own: Pass, X: Any, y: Any) -> "Path":
        """What ``path`` stands for, beside the pass of the model itself."""
        if path is None:
            return cls(own)
        if isinstance(path, (np.ndarray, list)):
            given, shape = np.asarray(path, dtype=float), own.state.w.shape
            if given.size not in (own.state.w.size, len(own.batch) * own.state.w.size) or not np.isfinite(given).all():
                raise ValueError(
                    f"path must be finite weights of shape {shape}, or one for each of {len(own.batch):,} rows; got "
                    f"shape {given.shape}"
                )
            return cls(own, given.reshape(-1, *shape))
        walker = Pass(*learner_and_rows(path, X, y))
        if not same(walker.state.phi, own.state.phi):
            raise ValueError(
                "the model of path= maps rows into another space: give both models the same features (kernel, gamma, "
                "n_components, scale), dtype and random_state"
            )
        return cls(walker)

    def weights(self, row: int) -> Array:
        """(vectors, D), before this row."""
        if self.given is None:
            return self.walker.state.w
        return np.asarray(self.given[row if len(self.given) > 1 else 0])


@on_one_thread
def look(own: Pass, way: Path, rows: range, Z: Array, at: Array) -> tuple[Array, Array, Array]:
    """Learn rows; before each of the rows ``at``: weights W, the memory's gradients U there, number of partners."""
    W = np.empty((len(at), *own.state.w.shape))
    U, n_slots = np.empty_like(W), np.zeros(len(at), np.int64)
    place = {int(i): n for n, i in enumerate(at)}
    for i, row in enumerate(rows):
        if i in place:
            n, label = place[i], float(own.batch.y[row])
            W[n] = way.weights(row)
            for k, w in enumerate(W[n]):
                U[n, k] = own.learner.pair_gradient(own.state, Z[i], label, w=w, k=k)[1]
                n_slots[n] += len(own.learner.partners(own.state, label, k).weights)
        for walker in {id(one): one for one in (own, way.walker)}.values():
            walker.learn(row)
    return W, U, n_slots


def compared(
    own: Pass, rows: Array, U: Array, n_slots: Array, sums: list[PairSums], normalization: Scale
) -> tuple[Array, Array, Array, Array]:
    """Numbers, errors, squared norms and partners of the rows that have a partner in the past."""
    errors, norms, any_pair = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows), bool)
    for k, (counts, _, gradients) in enumerate(sums):
        known = counts > 0
        totals = {"class": counts, "history": rows - own.first, "sum": np.ones(len(rows))}
        # Sums over the past, of which both gradients are then the same share.
        u = totals[own.learner.memory.weighting][known, None] * U[known, k]
        n = totals[normalization][known]
        errors[known] += np.square((u - gradients[known]) / n[:, None]).sum(axis=1)
        norms[known] += np.square(gradients[known] / n[:, None]).sum(axis=1)
        any_pair |= known
    return rows[any_pair] + 1, errors[any_pair], norms[any_pair], n_slots[any_pair]
