"""Regret: the losses of a learner against those of the best fixed weights in hindsight."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.threads import on_one_thread
from pairloom.base.typing import Array
from pairloom.evaluation.comparator import Scale, minimiser
from pairloom.evaluation.replay import MAX_ROWS, PairSums, Pass, history_of, learner_and_rows
from pairloom.metrics.intervals import Estimate

FIT_POINTS = 50
"""Rows, equally spaced in log t, to which an exponent is fitted."""

REPLICATES = 400
"""Bootstrap replicates for its interval."""


@dataclass(frozen=True, eq=False)
class Regret:
    """The result of ``regret``, for each row with a partner in the past.

    Attributes
    ----------
    rows : t, counted from 1.
    before, after : L_t(w_{t-1}) and L_t(w_t): the loss of row t at the weights before and after it was learned.
    best : L_t(w*).
    comparator : w*, one line per vector.
    excess : a bound on the excess of the mean of ``best`` over the minimum; 0 if w* was given.
    normalization : of L_t: "class" or "history".
    """

    rows: Array = field(repr=False)
    before: Array = field(repr=False)
    after: Array = field(repr=False)
    best: Array = field(repr=False)
    comparator: Array = field(repr=False)
    excess: float
    normalization: Scale

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total(self) -> Array:
        """R_t = sum over tau <= t of L_tau(w_{tau-1}) - L_tau(w*), as the paper defines it."""
        return np.cumsum(self.before - self.best)

    @property
    def total_after(self) -> Array:
        """R_t with L_tau(w_tau), the loss after the step, which the paper's proof bounds."""
        return np.cumsum(self.after - self.best)

    def exponent(self, fraction: float = 0.9, *, after: bool = False) -> Estimate:
        """Return b of R_t ~ t^b over the last ``fraction`` of the rows, with its 95 % interval; sublinear below 1.

        b is the slope of log R_t on log t, by least squares at points equally spaced in log t. Neighbouring R_t share
        most of their terms, so that the residuals do not measure the error; the interval is from a wild bootstrap: the
        terms of R_t, minus their trend, change sign at random in blocks of sqrt(n) rows. NaN if R_t is not positive;
        ``low`` is -inf if R_t may be bounded or decreasing.

        >>> t = np.arange(1, 2001)
        >>> falling = Regret(t, 0.5 / np.sqrt(t), np.zeros(2000), np.zeros(2000), np.zeros((1, 1)), 0.0, "class")
        >>> round(falling.exponent().value, 2)
        0.52
        """
        check_number("fraction", fraction, 0, 1, open_low=True)
        terms = (self.after if after else self.before) - self.best
        first = np.searchsorted(self.rows, (1.0 - fraction) * self.rows[-1])
        points = np.unique(np.geomspace(first + 1, len(self), FIT_POINTS).round().astype(int)) - 1
        x = np.log(self.rows[points])
        value = float(slopes(x, np.cumsum(terms)[None, points])[0]) if len(points) > 1 else np.nan
        if not np.isfinite(value):
            return Estimate(np.nan, np.nan, np.nan)
        level = np.cumsum(terms)[-1]
        trend = np.diff(level * (self.rows / self.rows[-1]) ** value, prepend=0.0)
        size = int(np.ceil(np.sqrt(len(self))))
        signs = np.random.default_rng(0).choice((-1.0, 1.0), (REPLICATES, -(-len(self) // size)))
        noise = np.repeat(signs, size, axis=1)[:, : len(self)] * (terms - trend)
        made = slopes(x, np.cumsum(trend + noise, axis=1)[:, points])
        low, high = np.quantile(np.nan_to_num(made, nan=-np.inf), (0.025, 0.975), method="inverted_cdf")
        return Estimate(value, float(low), float(high))


def slopes(x: Array, totals: Array) -> Array:
    """Return the slope of the logarithm of each line of totals on x; NaN if any of them is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(totals.min(axis=1, keepdims=True) > 0, np.log(totals), np.nan)
    away = x - x.mean()
    return np.asarray(logs @ away / (away @ away))


def regret(
    model: Any,
    X: Any,
    y: Any,
    *,
    normalization: Scale = "class",
    comparator: Any = None,
    penalty: float = 0.0,
    max_rows: int = MAX_ROWS,
) -> Regret:
    r"""Return the regret of a learner along a stream: its losses, row by row, and those of the best fixed weights.

    .. math::

        R_t = \sum_{\tau \le t} L_\tau(w_{\tau-1}) - L_\tau(w^*), \quad
        L_\tau(w) = \frac{1}{N_\tau}
            \sum_{i < \tau,\, y_i \ne y_\tau} \ell(y_\tau \langle w, z_\tau - z_i \rangle), \quad
        w^* = \arg\min_w \sum_{\tau \le T} L_\tau(w)

    The losses are over all pairs with past rows, not only those in the memory, and exclude the penalty. w is the last
    iterate, even for a learner that scores with an average. w* is in the same feature space and the same for all t, so
    R_t may be negative before T.

    Parameters
    ----------
    model, X, y, max_rows
        As in :func:`gradient_variance`; pairs of different classes only.
    normalization
        N_t: the number of partners of row t ("class"), or of all t - 1 rows before it ("history", as printed in the
        paper).
    comparator
        w*, (D,), or a line per vector; None: the minimiser, see :mod:`pairloom.evaluation.comparator`.
    penalty
        (penalty / 2) ||w||^2 is added to the sum that w* minimises, not to the losses. With 0, w* may be very large if
        features are collinear. The bounds of :mod:`pairloom.theory` hold for any w* and are tightest with 1 / eta.

    Cost: for the square loss 20 D^2 flops per row and D^2 numbers per class; otherwise 8 t D flops for row t, all rows,
    and O(T^2 + T D) for each of up to hundreds of iterations to find w*.

    Reference: AlQuabeh, Mukhoty and Gu, ACML 2023, eq. 8 and the figures on regret.

    >>> from pairloom.systems import FPOGD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = (X ** 2).sum(axis=1) > 2
    >>> found = regret(FPOGD(n_components=32, gamma=0.5, random_state=0), X, y)
    >>> bool(0 < found.total_after[-1] < found.total[-1])
    True
    """
    check_choice("normalization", normalization, Scale)
    check_count("max_rows", max_rows)
    check_number("penalty", penalty, 0)
    own = Pass(*learner_and_rows(model, X, y))
    if not own.learner.pairs.opposite:
        raise ValueError(f"regret is for pairs of different classes; got {own.learner.pairs}")
    history = history_of(own.learner, len(own.batch) - own.first, own.dim, max_rows)
    numbers, made = [], []
    for rows, Z in own.blocks():
        at, W = np.arange(len(rows)), walk(own, rows)
        sums = history.extend(Z, own.batch.y[rows.start : rows.stop], np.tile(at, 2), np.concatenate([W[:-1], W[1:]]))
        numbers.append(rows.start + at)
        made.append(mean_losses(sums, np.tile(numbers[-1] - own.first, 2), normalization).reshape(2, -1))
    before, after = np.concatenate(made, axis=1)
    best_w, excess = best_weights(own, comparator, normalization, penalty)
    best = losses_at(own, best_w, normalization, max_rows)
    seen = np.isfinite(before)
    if not seen.any():
        raise ValueError("no row has an earlier partner: there must be rows of two classes")
    return Regret(
        np.concatenate(numbers)[seen] + 1, before[seen], after[seen], best[seen], best_w, excess, normalization
    )


@on_one_thread
def walk(own: Pass, rows: range) -> Array:
    """Learn rows; return the weights (rows + 1, vectors, D) before each of them and at the end."""
    W = np.empty((len(rows) + 1, *own.state.w.shape))
    for i, row in enumerate(rows):
        W[i] = own.state.w
        own.learn(row)
    W[-1] = own.state.w
    return W


def mean_losses(sums: list[PairSums], past: Array, normalization: Scale) -> Array:
    """Return L_t of each row, summed over all vectors; NaN without a pair."""
    total, paired = np.zeros(len(past)), np.zeros(len(past), bool)
    for counts, losses, _ in sums:
        n = counts if normalization == "class" else past
        total += np.divide(losses, n, out=np.zeros(len(past)), where=counts > 0)
        paired |= counts > 0
    return np.where(paired, total, np.nan)


def best_weights(own: Pass, given: Any, normalization: Scale, penalty: float) -> tuple[Array, float]:
    """Return w* (vectors, D), and a bound on the excess of its mean loss."""
    shape = own.state.w.shape
    if given is not None:
        w = np.asarray(given, dtype=float)
        if w.size != own.state.w.size or not np.isfinite(w).all():
            raise ValueError(f"comparator must be finite weights of shape {shape}; got shape {w.shape}")
        return w.reshape(shape), 0.0
    found = [minimiser(own, k, normalization, penalty) for k in range(len(own.state.w))]
    return np.array([w for w, _ in found]), sum(excess for _, excess in found)


def losses_at(own: Pass, w: Array, normalization: Scale, max_rows: int) -> Array:
    """Return L_t(w) of each row for fixed weights, using scores as features and 1 as the weight."""
    histories = [history_of(own.learner, len(own.batch) - own.first, 1, max_rows) for _ in w]
    made = []
    for rows, Z in own.blocks():
        scores, y, at = Z @ w.T, own.batch.y[rows.start : rows.stop], np.arange(len(rows))
        ones = np.ones((len(rows), len(w), 1))
        sums = [history.extend(scores[:, [k]], y, at, ones)[k] for k, history in enumerate(histories)]
        made.append(mean_losses(sums, rows.start + at - own.first, normalization))
    return np.concatenate(made)
