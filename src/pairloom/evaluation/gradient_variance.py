"""Gradient variance: the error of the gradient from a memory, relative to the gradient from the whole past."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.threads import on_one_thread
from pairloom.base.tree import same
from pairloom.base.typing import Array
from pairloom.evaluation.comparator import Scale
from pairloom.evaluation.replay import MAX_ROWS, PairSums, Pass, history_of, learner_and_rows


@dataclass(frozen=True, eq=False)
class GradientVariance:
    """The result of ``gradient_variance``, for each examined row with a partner in the past.

    Attributes
    ----------
    rows : t, counted from 1.
    errors : e_t = ||u_t - grad L_t(w_{t-1})||^2.
    norms : ||grad L_t(w_{t-1})||^2.
    n_slots : partners of the row in the memory, over all vectors.
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
        """Return the mean of all e_t."""
        return float(self.errors.mean())

    def share(self) -> float:
        """Return the mean of e_t divided by the mean squared norm: 0 without sampling, 1 for a zero gradient."""
        return float(self.errors.sum() / self.norms.sum())

    def running(self, factor: float = 0.95) -> Array:
        """Return the bias-corrected exponential average of e_t up to each row: (1 - f) sum f^k e / (1 - f^n).

        >>> ones = GradientVariance(np.arange(3), np.ones(3), np.ones(3), np.ones(3), "class")
        >>> ones.running().round(12).tolist()
        [1.0, 1.0, 1.0]
        """
        check_number("factor", factor, 0, 1)
        total, weight, means = 0.0, 0.0, np.empty(len(self))
        for i, error in enumerate(self.errors.tolist()):
            total, weight = factor * total + error, factor * weight + 1.0
            means[i] = total / weight
        return means


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
    r"""Return the squared error of the gradient from a memory, at each row of a stream.

    .. math::

        e_t = \| u_t - \nabla L_t(w_{t-1}) \|^2, \quad
        u_t = \sum_{j \in B_t} p_j \nabla\ell(w_{t-1}; z_t, z_j), \quad
        \nabla L_t = \frac{1}{N_t} \sum_{i < t,\, i \text{ a partner of } t} \nabla\ell(w_{t-1}; z_t, z_i)

    Both gradients are computed at the same w, before the step, without the penalty. With more than two classes the
    squared norms of all vectors are summed. Rows without a partner in the past are skipped; if only the memory has no
    partner, u_t = 0. The error of a row does not depend on which other rows are examined.

    Parameters
    ----------
    model
        A :class:`~pairloom.Learner`, or an estimator based on one: FPOGD, OGD, OLP, OAM, FourierSGD with pairs. A
        copy learns the rows from the start, with the final data-dependent settings; the model does not change.
    X, y
        Rows in order, and their labels.
    path
        The weights at which gradients are computed. None: the weights of the model. Another model: its weights, to
        compare memories at the same w; it must have the same features and seed. An array (D,): fixed weights. An array
        (rows, D): entry t - 1 for row t.
    normalization
        N_t: the number of partners of row t ("class"), or of all t - 1 rows before it ("history", as printed in the
        paper). u_t is rescaled to it, so that memories with different weights can be compared.
    every, start
        Rows start, start + every, ... are examined, counted from 1.
    max_rows
        Maximum number of rows if all must be kept: for losses other than the square loss, and for pairs that are not of
        different classes. A longer stream raises ValueError.

    Cost: for the square loss on classes 4 D^2 flops per row and D^2 numbers per class; otherwise 4 t D flops for row t,
    and all rows. All in float64.

    References: AlQuabeh, Mukhoty and Gu, ACML 2023, the figures on gradient variance.

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
    walker, weights = weights_along(path, own, X, y)
    history = history_of(own.learner, len(own.batch) - own.first, own.dim, max_rows)
    pieces = []
    for rows, Z in own.blocks():
        at = np.flatnonzero((np.arange(rows.start, rows.stop) + 1 - start) % every == 0)
        at = at[rows.start + at + 1 >= start]
        W, U, n_slots = examine(own, walker, weights, rows, Z, at)
        sums = history.extend(Z, own.batch.y[rows.start : rows.stop], at, W)
        pieces.append(errors_of(own, rows.start + at, U, n_slots, sums, normalization))
    numbers, errors, norms, slots = (np.concatenate(column) for column in zip(*pieces, strict=True))
    if not len(numbers):
        raise ValueError("no examined row has a partner before it: lower start or every")
    return GradientVariance(numbers, errors, norms, slots, normalization)


def weights_along(path: Any, own: Pass, X: Any, y: Any) -> tuple[Pass, Callable[[int], Array]]:
    """Return the pass that ``path`` follows, and a function that returns the weights (vectors, D) before a row."""
    if isinstance(path, (np.ndarray, list)):
        given, shape = np.asarray(path, dtype=float), own.state.w.shape
        if given.size not in (own.state.w.size, len(own.batch) * own.state.w.size) or not np.isfinite(given).all():
            raise ValueError(
                f"path must be finite weights of shape {shape}, or one for each of {len(own.batch):,} rows; got shape "
                f"{given.shape}"
            )
        lines = given.reshape(-1, *shape)
        return own, lambda row: np.asarray(lines[row if len(lines) > 1 else 0])
    walker = own if path is None else Pass(*learner_and_rows(path, X, y))
    if not same(walker.state.phi, own.state.phi):
        raise ValueError(
            "the model of path= has other features: give both models the same features (kernel, gamma, n_components, "
            "scale), dtype and random_state"
        )
    return walker, lambda row: walker.state.w


@on_one_thread
def examine(
    own: Pass, walker: Pass, weights: Callable[[int], Array], rows: range, Z: Array, at: Array
) -> tuple[Array, Array, Array]:
    """Learn rows; return, before each of the rows ``at``, weights W, gradients U of the memory, and partners."""
    W = np.empty((len(at), *own.state.w.shape))
    U, n_slots = np.empty_like(W), np.zeros(len(at), np.int64)
    place = {int(i): n for n, i in enumerate(at)}
    for i, row in enumerate(rows):
        if i in place:
            n, label = place[i], float(own.batch.y[row])
            W[n] = weights(row)
            for k, w in enumerate(W[n]):
                U[n, k] = own.learner.pair_gradient(own.state, Z[i], label, w=w, k=k)[1]
                n_slots[n] += len(own.learner.partners(own.state, label, k).weights)
        for one in [own] if walker is own else [own, walker]:
            one.learn(row)
    return W, U, n_slots


def errors_of(
    own: Pass, rows: Array, U: Array, n_slots: Array, sums: list[PairSums], normalization: Scale
) -> tuple[Array, Array, Array, Array]:
    """Return numbers, errors, squared norms and partners of the rows with a partner in the past."""
    errors, norms, any_pair = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows), bool)
    for k, (counts, _, gradients) in enumerate(sums):
        known = counts > 0
        totals = {"class": counts, "history": rows - own.first, "sum": np.ones(len(rows))}
        # Sums over the past; both gradients are then divided by n.
        u = totals[own.learner.memory.weighting][known, None] * U[known, k]
        n = totals[normalization][known]
        errors[known] += np.square((u - gradients[known]) / n[:, None]).sum(axis=1)
        norms[known] += np.square(gradients[known] / n[:, None]).sum(axis=1)
        any_pair |= known
    return rows[any_pair] + 1, errors[any_pair], norms[any_pair], n_slots[any_pair]
