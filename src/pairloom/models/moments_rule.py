"""Moments instead of examples: the exact gradient of the square loss against all rows so far.

The mean of 1/2 (<w, z - z_i> - (t - t_i))^2 over the rows i of a set is a function of the set's first and second
moments. With the target as an additional column of weight -1,

    e = (z, t) - mean,  a = (w, -1),  S = covariance of (z, t)
    g = 1/2 (<e, a>^2 + a' S a),  v = the gradient <e, a> e + S a without its last entry
"""

from abc import abstractmethod
from dataclasses import dataclass
from math import isqrt
from typing import Annotated, Any, Literal

import numpy as np

from pairloom.base.capabilities import decay_factors
from pairloom.base.checks import check_choice, check_count
from pairloom.base.compiled import compiled, dot, move
from pairloom.base.merging import RowCounts, added, joined_moments
from pairloom.base.spec import StateSpec
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.engines import reference
from pairloom.engines.fused_steps import SKIP, apply_step, safe_length
from pairloom.engines.state import LOSS, PAIRS, STEPS, State
from pairloom.memory.base import Normalization
from pairloom.models.rule import Block, Row, Rule, descend
from pairloom.steps import Penalty

PairSet = Literal["opposite", "all"]

MAX_BYTES = 1 << 30
"""Default of ``max_bytes``, the size of the matrices of a rule."""


@dataclass(frozen=True)
class SquareRule(Rule):
    """A step on half the square loss against sets of rows, of which only moments are kept.

    A row takes no step while the set that it is paired with is empty.
    """

    @abstractmethod
    def sides(self, y: float) -> tuple[int, int]:
        """Return the set that an example joins, and the set that it is paired with."""

    @abstractmethod
    def gradient(self, kept: Any, k: int, other: int, row: Row, w: Array) -> tuple[float, Array]:
        """Return the loss g and the gradient v of a row against a set of model k."""

    @abstractmethod
    def observe(self, kept: Any, k: int, own: int, row: Row) -> None:
        """Add a row to a set of model k."""

    def step(self, state: State, k: int, row: Row, penalty: Penalty) -> None:
        own, other = self.sides(row.y)
        kept, w = state.memory, state.w[k]
        if kept.mass[k, other] > 0:
            g, v = self.gradient(kept, k, other, row, w)
            squared_norm = float(v @ v)
            # A lower bound on the curvature along v, as for pairs.
            curvature = squared_norm / (2.0 * g) if g > 0 else 0.0
            rate = reference.guard(row.rate, curvature, g + squared_norm, state.tally)
            if rate:
                state.w[k] = descend(w, v, row, rate, penalty.bound)
                reference.count_step(state.tally, row.weight, kept.rows[k, other], g)
        self.observe(kept, k, own, row)


@node
class MomentsState:
    """For each model and set: number of ``rows``, their weight ``mass``, ``mean`` of (z, t), and ``scatter`` = mass S.

    ``scatter`` is symmetric: only the lower triangle is kept, row by row.
    """

    rows: Annotated[Array, "f8 v s"]
    mass: Annotated[Array, "f8 v s"]
    mean: Annotated[Array, "f8 v s D+1"]
    scatter: Annotated[Array, "f8 v s e"]


@dataclass(frozen=True)
class Moments(SquareRule):
    """All pairs so far with half the square loss, at a cost that does not grow with the stream.

    Parameters
    ----------
    pairs : "opposite" (different classes, the margin should be 1) or "all" (the difference of the scores should equal
        that of the targets +1 and -1, so 0 within a class).
    normalization : the loss is relative to the paired rows ("class"), or to all rows so far ("history").
    max_bytes : largest size of the matrices; a larger dimension raises ValueError.

    Cost: 3 D^2 / 2 multiply-adds; D^2 numbers for "opposite" pairs and D^2 / 2 for "all", for each model.
    """

    pairs: PairSet = "opposite"
    normalization: Normalization = "class"
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        check_choice("pairs", self.pairs, PairSet)
        check_choice("normalization", self.normalization, Normalization)
        check_count("max_bytes", self.max_bytes)

    @property
    def target(self) -> float:
        """t of the positive class."""
        return 1.0 if self.pairs == "all" else 0.5

    def sides(self, y: float) -> tuple[int, int]:
        return (0, 0) if self.pairs == "all" else (int(y > 0), int(y < 0))

    def state_spec(self, dim: int) -> StateSpec:
        return StateSpec(MomentsState, {"s": 1 if self.pairs == "all" else 2, "e": (dim + 1) * (dim + 2) // 2})

    def start(self, dim: int, n_models: int) -> MomentsState:
        sets = (n_models, 1 if self.pairs == "all" else 2)
        entries = (dim + 1) * (dim + 2) // 2
        room = self.max_bytes // (8 * sets[0] * sets[1])
        if entries > room:
            raise ValueError(
                f"the moments of D={dim} features need {8 * sets[0] * sets[1] * entries:,} bytes, more than "
                f"max_bytes={self.max_bytes:,}, which is enough for D={max(0, (isqrt(8 * room + 1) - 3) // 2)}. Raise "
                "max_bytes, or use OPAUC(rank=50), SPAM, or a feature map with fewer outputs"
            )
        return MomentsState(np.zeros(sets), np.zeros(sets), np.zeros((*sets, dim + 1)), np.zeros((*sets, entries)))

    def gradient(self, kept: MomentsState, k: int, other: int, row: Row, w: Array) -> tuple[float, Array]:
        n = kept.mass[k, other]
        e = np.append(row.z, self.target * row.y) - kept.mean[k, other]
        a = np.append(w, -1.0)
        Sa = symmetric(kept.scatter[k, other]) @ a / n
        share = n / kept.mass[k].sum() if self.normalization == "history" else 1.0
        g = 0.5 * share * ((e @ a) ** 2 + a @ Sa)
        return max(0.0, float(g)), share * ((e @ a) * e + Sa)[:-1]

    def observe(self, kept: MomentsState, k: int, own: int, row: Row) -> None:
        before = kept.mass[k, own]
        kept.rows[k, own] += 1
        kept.mass[k, own] += row.weight
        share = row.weight / kept.mass[k, own]
        e = np.append(row.z, self.target * row.y) - kept.mean[k, own]
        kept.mean[k, own] += share * e
        kept.scatter[k, own] += (share * before * np.outer(e, e))[np.tril_indices(len(e))]

    @property
    def merging(self) -> "Moments":
        return self

    def merge(self, base: MomentsState, parts: list[MomentsState], rows: RowCounts) -> MomentsState:
        """Return the moments of all rows."""
        count, mass = (added(getattr(base, name), [getattr(one, name) for one in parts]) for name in ("rows", "mass"))
        mean, scatter = base.mean.copy(), base.scatter.copy()
        for at in np.ndindex(*mass.shape):
            whole, *own = [(one.mass[at], one.mean[at], symmetric(one.scatter[at])) for one in (base, *parts)]
            _, mean[at], made = joined_moments(whole, own)
            scatter[at] = made[np.tril_indices(len(made))]
        return MomentsState(count, mass, mean, scatter)

    @property
    def forgetting(self) -> "Moments":
        return self

    def forget(self, kept: MomentsState, keep: float) -> None:
        factors = decay_factors(kept.mass, keep)
        kept.mass *= factors
        kept.scatter *= factors[..., None]

    def run(self, state: State, block: Block) -> None:
        kept = state.memory
        statistics = kept.rows, kept.mass, kept.mean, kept.scatter
        history = self.normalization == "history"
        learn(tuple(block), self.target, history, state.w, state.w_bar, statistics, state.tally)


def symmetric(triangle: Array) -> Array:
    """Return the symmetric matrix with this lower triangle.

    >>> symmetric(np.array([1.0, 2.0, 3.0]))
    array([[1., 2.],
           [2., 3.]])
    """
    n = isqrt(2 * len(triangle))
    S = np.zeros((n, n))
    S[np.tril_indices(n)] = triangle
    return S + np.tril(S, -1).T


@compiled
def learn(
    block_: Any, target: float, history: bool, w: Array, w_bar: Array, statistics: Any, tally: Array
) -> None:  # fmt: skip
    """Apply ``Moments.step`` to the rows of a block; ``statistics``: the fields of ``MomentsState``."""
    block = Block(*block_)
    Z, y, weight, scores = block.Z, block.y, block.weight, block.scores
    rows, mass, mean, scatter = statistics
    dim, last = w.shape[1], mass.shape[1] - 1
    a, e, v = np.empty(dim + 1), np.empty(dim + 1), np.empty(dim + 1)
    for i in range(Z.shape[0]):
        for k in range(w.shape[0]):
            scores[i, k] = dot(w_bar[k] if block.averaging else w[k], Z[i])
            own = last if y[i, k] > 0 else 0
            other, t = last - own, target * y[i, k]
            n = mass[k, other]
            if n > 0:
                share = n / mass[k].sum() if history else 1.0
                g = moment_gradient(w[k], Z[i], t, n, share, mean[k, other], scatter[k, other], a, e, v)
                take_step(w[k], v[:dim], g, block.steps[:, i], block.bound, weight[i], rows[k, other], tally)
            before = mass[k, own]
            rows[k, own] += 1.0
            mass[k, own] += weight[i]
            join(Z[i], t, weight[i] / mass[k, own], before, mean[k, own], scatter[k, own], e)
            if block.averaging:
                move(w_bar[k], w[k], block.rho[i])


@compiled
def take_step(
    w: Array, v: Array, g: float, steps: Array, bound: float, weight: float, partners: float, tally: Array
) -> None:  # fmt: skip
    """Take the step of ``SquareRule.step``, given g and v."""
    length = safe_length(g, dot(v, v), steps[0], steps[1], True, False, tally)
    if length != SKIP:
        apply_step(w, v, steps[0], length, steps[2], bound)
        tally[STEPS] += weight
        tally[PAIRS] += partners
        tally[LOSS] += weight * g


@compiled
def moment_gradient(
    w: Array, z: Array, t: float, n: float, share: float, mean: Array, scatter: Array, a: Array, e: Array, v: Array
) -> float:  # fmt: skip
    """Compiled ``Moments.gradient``: return g and fill v; a and e are work arrays."""
    dim = w.shape[0]
    for c in range(dim):
        a[c] = w[c]
        e[c] = z[c] - mean[c]
    a[dim] = -1.0
    e[dim] = t - mean[dim]
    symmetric_times(scatter, a, v)
    residual = dot(e, a)
    g = 0.5 * share * (residual * residual + dot(a, v) / n)
    for c in range(dim):
        v[c] = share * (residual * e[c] + v[c] / n)
    return max(0.0, g)


@compiled
def join(z: Array, t: float, share: float, before: float, mean: Array, scatter: Array, e: Array) -> None:
    """Compiled ``Moments.observe`` for the mean and the scatter."""
    dim = z.shape[0]
    for c in range(dim):
        e[c] = z[c] - mean[c]
    e[dim] = t - mean[dim]
    start = 0
    for r in range(dim + 1):
        by, row = share * before * e[r], scatter[start : start + r + 1]
        for c in range(r + 1):
            row[c] += by * e[c]
        mean[r] += share * e[r]
        start += r + 1


@compiled
def symmetric_times(triangle: Array, a: Array, out: Array) -> None:
    """Compute out <- S a for the S with this lower triangle: four rows at a time, reading each entry once."""
    n = a.shape[0]
    whole = n - n % 4
    out[:] = 0.0
    for r in range(0, whole, 4):
        start = r * (r + 1) // 2
        r0, r1 = triangle[start : start + r], triangle[start + r + 1 : start + 2 * r + 1]
        r2, r3 = triangle[start + 2 * r + 3 : start + 3 * r + 3], triangle[start + 3 * r + 6 : start + 4 * r + 6]
        a0, a1, a2, a3 = a[r], a[r + 1], a[r + 2], a[r + 3]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for c in range(r):
            x = a[c]
            s0 += x * r0[c]
            s1 += x * r1[c]
            s2 += x * r2[c]
            s3 += x * r3[c]
            out[c] += a0 * r0[c] + a1 * r1[c] + a2 * r2[c] + a3 * r3[c]
        out[r], out[r + 1], out[r + 2], out[r + 3] = s0, s1, s2, s3
    for r in range(n):
        start, done = r * (r + 1) // 2, r - r % 4 if r < whole else 0
        for c in range(done, r):
            out[r] += triangle[start + c] * a[c]
            out[c] += triangle[start + c] * a[r]
        out[r] += triangle[start + r] * a[r]
