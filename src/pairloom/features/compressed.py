"""Columns with heavy tails compressed, before another feature map."""

from dataclasses import dataclass, field, replace
from math import asinh
from typing import Annotated, Any

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.csr import is_sparse
from pairloom.base.graph import Value
from pairloom.base.spec import StateSpec, WrongState
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.features.base import FeatureMap
from pairloom.features.capabilities import Cost, FrozenShare, FrozenSum, LinearSum, RacingMap, cost_of, explainable_of
from pairloom.features.contributions import Contrast, Explainable
from pairloom.features.identity import Identity
from pairloom.features.scaling import WrapperState, smallest_spread

MIN_ROWS = 64
"""Rows from which tails can be judged."""

HEAVY = 6.5
"""A tail is heavy if its 99 % quantile is farther from the median than this many interquartile ranges. For a normal
distribution it is 1.7, for an exponential one 3.6, for the exponential of a standard normal one 6.4."""

HEAVY_RARE = 8.0
"""The same for a column of which most values are equal: the largest deviation, in units of the median one."""

COLUMNS_AT_ONCE = 512


@node
class CompressedState(WrapperState):
    """Bounds, centre and spread of each column; the spread is 0 for columns whose tails are not heavy."""

    low: Annotated[Array, "R d"]
    high: Annotated[Array, "R d"]
    center: Annotated[Array, "R d finite"]
    spread: Annotated[Array, "R d finite"]

    def check(self) -> None:
        check_bounds(self.low, self.high)

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """What a column is compressed by."""
        return self.low, self.high, self.center, self.spread


@node
class FrozenCompressed(FrozenSum):
    """A sum over compressed columns; the other arrays are those of a CompressedState."""

    inner: FrozenSum
    low: Annotated[Array, "R d"]
    high: Annotated[Array, "R d"]
    center: Annotated[Array, "R d finite"]
    spread: Annotated[Array, "R d finite"]

    def check(self) -> None:
        check_bounds(self.low, self.high)

    def add(self, X: Array, out: Array) -> None:
        self.inner.add(compressed(X, (self.low, self.high, self.center, self.spread)), out)

    @property
    def explainable(self) -> "CompressedParts | None":
        inner = self.inner.explainable
        return None if inner is None else CompressedParts(inner, (self.low, self.high, self.center, self.spread))

    def to_onnx(self, x: Value) -> Value:
        return self.inner.to_onnx(compressed_onnx(x, (self.low, self.high, self.center, self.spread)))


@dataclass(frozen=True)
class CompressedSum:
    """A sum over compressed columns."""

    inner: LinearSum
    arrays: tuple[Array, Array, Array, Array]

    def add(self, X: Array, out: Array) -> None:
        self.inner.add(compressed(X, self.arrays), out)

    def frozen(self, share: FrozenShare) -> FrozenCompressed:
        return FrozenCompressed(*share, self.inner.frozen(share), *(array.copy() for array in self.arrays))

    @property
    def explainable(self) -> "CompressedParts | None":
        inner = explainable_of(self.inner)
        return None if inner is None else CompressedParts(inner, self.arrays)


@dataclass(frozen=True)
class CompressedParts:
    """A sum over compressed columns, with an inner sum that can compute contributions."""

    inner: Explainable
    arrays: tuple[Array, Array, Array, Array]

    def add(self, X: Array, out: Array) -> None:
        self.inner.add(compressed(X, self.arrays), out)

    def contribute(self, contrast: Contrast, out: Array) -> None:
        rows, background = compressed(contrast.rows, self.arrays), compressed(contrast.background, self.arrays)
        self.inner.contribute(contrast._replace(rows=rows, background=background), out)


@dataclass(frozen=True)
class Compressed(RacingMap):
    r"""phi(T(x)): columns with heavy tails are compressed, before an inner map.

    .. math::

        T(x) = \operatorname{asinh}\frac{x - m}{s}

    with the median m and the interquartile range s of the first rows. Other columns stay as they are. Values of all
    columns are limited to the range of the first rows and half of it on either side, so that a column that leaves its
    range cannot dominate the score. T is shifted such that T(0) = 0: CSR rows stay CSR.

    Parameters
    ----------
    inner : the inner map; its ``scale`` is the scaling of the compressed columns.

    Cost: that of the inner map, and 20 flops per row for each column with heavy tails.

    >>> X = np.exp(3 * np.random.default_rng(0).normal(size=(500, 1)))
    >>> phi = Compressed(Identity())
    >>> Z = phi.apply(phi.fix(1, X, np.random.default_rng(0)), X)
    >>> float(X.max().round()), float(Z.max().round(1))
    (9878.0, 8.0)
    """

    inner: FeatureMap = field(default_factory=Identity)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.inner, FeatureMap) or self.inner.sparse is not None:
            raise ValueError(f"inner must be a feature map with dense features; got {self.inner!r}")
        if self.scale is not None:
            raise ValueError(f"the inner map scales the columns: pass scale={self.scale!r} to it")

    @property
    def keeps_csr(self) -> bool:  # type: ignore[override]
        return self.inner.keeps_csr

    @property
    def needs_data(self) -> bool:
        return True

    @property
    def warm_rows(self) -> int:
        return self.inner.warm_rows

    def n_outputs(self, n_features: int) -> int:
        return self.inner.n_outputs(n_features)

    def cost(self, n_features: int) -> Cost:
        inner = cost_of(self.inner, n_features)
        return Cost(inner.flops + 4.0 * n_features, inner.numbers + 4 * n_features)

    def check(self, n_features: int) -> None:
        self.inner.check(n_features)

    def fix(self, n_features: int, rows: Any, rng: np.random.Generator) -> CompressedState:
        made = np.zeros((4, n_features))
        made[:2] = [[-np.inf], [np.inf]]
        if rows is not None and rows.shape[0]:
            by_column = rows.T.tocsr() if is_sparse(rows) else rows.T
            for start in range(0, n_features, COLUMNS_AT_ONCE):
                some = by_column[start : start + COLUMNS_AT_ONCE]
                ordered = np.sort(some.toarray() if is_sparse(rows) else some, axis=1)
                made[:, start : start + COLUMNS_AT_ONCE] = _measure(ordered, smallest_spread(rows))
        state = CompressedState(None, *made)
        inner = self.inner.fix(n_features, None if rows is None else compressed(rows, state.arrays), rng)
        return replace(state, inner=inner)

    def state_spec(self, n_features: int, t: int, n_targets: int) -> StateSpec:
        inner = self.inner.state_spec(n_features, t, n_targets)
        return replace(super().state_spec(n_features, t, n_targets), parts={"inner": inner})

    def apply(self, state: CompressedState, X: Any) -> Array:
        return self.inner.apply(state.inner, compressed(X, state.arrays))

    def to_onnx(self, state: CompressedState, x: Value) -> Value:
        return self.inner.to_onnx(state.inner, compressed_onnx(x, state.arrays))

    def inputs(self, state: CompressedState, X: Array) -> Array:
        return self.inner.inputs(state.inner, compressed(X, state.arrays))

    def halved(self) -> "Compressed | None":
        inner = None if self.inner.racing is None else self.inner.racing.halved()
        return None if inner is None else replace(self, inner=inner)

    def linear_sum(self, state: CompressedState, w: Array, slopes: Array) -> CompressedSum | None:
        inner = None if self.inner.racing is None else self.inner.racing.linear_sum(state.inner, w, slopes)
        return None if inner is None else CompressedSum(inner, state.arrays)


def check_bounds(low: Array, high: Array) -> None:
    """Raise WrongState unless there are values between the bounds of each column."""
    if not (low <= high).all() or np.isposinf(low).any() or np.isneginf(high).any():
        raise WrongState("must be lower and upper bounds", "low")


def _measure(ordered: Array, smallest: float) -> Array:
    """Return bounds, medians, and the spread of columns with heavy tails, given sorted columns (columns, n)."""
    low, high = ordered[:, 0].astype(float), ordered[:, -1].astype(float)
    margin = np.where(high > low, (high - low) / 2, 1.0)  # a column that was constant keeps scale 1
    first, q1, center, q3, last = (_quantile(ordered, share) for share in (0.01, 0.25, 0.5, 0.75, 0.99))
    spread = np.zeros(len(ordered))
    if ordered.shape[1] >= MIN_ROWS:
        tail = np.maximum(last - center, center - first)
        heavy = (q3 - q1 > smallest) & (tail > HEAVY * (q3 - q1))
        spread[heavy] = (q3 - q1)[heavy]
        flat = np.flatnonzero((q3 == q1) & (high > low))
        usual, largest = np.zeros((2, len(flat)))
        deviations(ordered[flat], center[flat], usual, largest)
        rare = (usual > smallest) & (largest > HEAVY_RARE * usual)
        spread[flat[rare]] = usual[rare]
    return np.array([low - margin, high + margin, center, spread])


def _quantile(ordered: Array, share: float) -> Array:
    """Return the quantile of each of the sorted columns (columns, n), interpolated."""
    at = share * (ordered.shape[1] - 1)
    below = int(at)
    left, right = ordered[:, below].astype(float), ordered[:, min(below + 1, ordered.shape[1] - 1)].astype(float)
    return np.asarray(left + (at - below) * (right - left))


@compiled
def deviations(ordered: Array, center: Array, usual: Array, largest: Array) -> None:
    """Fill in the median of the deviations from the centre that are not 0, and the largest deviation, for each column.

    Sorted values are merged from both ends: the deviations in decreasing order.
    """
    for c in range(ordered.shape[0]):
        x, n = ordered[c], ordered.shape[1]
        count = 0
        for i in range(n):
            count += x[i] != center[c]
        left, right, last, before = 0, n - 1, 0.0, 0.0
        largest[c] = max(center[c] - x[0], x[n - 1] - center[c])
        for _ in range(count // 2 + 1):
            before = last
            if center[c] - x[left] >= x[right] - center[c]:
                last = center[c] - x[left]
                left += 1
            else:
                last = x[right] - center[c]
                right -= 1
        usual[c] = last if count % 2 else 0.5 * (before + last)


def compressed(X: Any, arrays: tuple[Array, Array, Array, Array]) -> Any:
    """Return compressed rows, dense or CSR."""
    if is_sparse(X):
        made = X.tocsr().copy()
        made.data = made.data.copy()
        compress_stored(made.data, made.indices, *arrays)
        return made
    out = np.empty_like(X)
    compress_rows(X, *arrays, out)
    return out


def compressed_onnx(x: Value, arrays: tuple[Array, Array, Array, Array]) -> Value:
    """Return compressed rows in a graph; there is no operator asinh for double."""
    low, high, center, spread = (array.astype(float) for array in arrays)
    z, zero, heavy = x.to("f8").clip(low, high), np.clip(0.0, low, high), spread > 0
    if heavy.any():
        unit = np.where(heavy, spread, 1.0)
        t = (z - center) / unit
        size = t.abs()
        asinh = (size + (size * size + 1.0).sqrt()).log() * t.call("Sign")
        z, zero = (
            x.graph.constant(heavy, "b1").where(asinh, z),
            np.where(heavy, np.arcsinh((zero - center) / unit), zero),
        )
    shifted: Value = z - zero
    return shifted.to(x.dtype)


@compiled
def compress_rows(X: Array, low: Array, high: Array, center: Array, spread: Array, out: Array) -> None:
    """Compress the columns of dense rows."""
    d, heavy = X.shape[1], np.flatnonzero(spread > 0.0)
    zero = np.empty(d)
    for c in range(d):
        zero[c] = min(max(0.0, np.float64(low[c])), np.float64(high[c]))
    for i in range(X.shape[0]):
        for c in range(d):  # all columns, without a branch
            out[i, c] = min(max(np.float64(X[i, c]), np.float64(low[c])), np.float64(high[c])) - zero[c]
        for h in heavy:
            from_zero = compress_one(0.0, low[h], high[h], center[h], spread[h])
            out[i, h] = compress_one(X[i, h], low[h], high[h], center[h], spread[h]) - from_zero


@compiled
def compress_stored(values: Array, columns: Array, low: Array, high: Array, center: Array, spread: Array) -> None:
    """Compress the stored values of CSR rows in place."""
    for k in range(len(values)):
        c = columns[k]
        zero = compress_one(0.0, low[c], high[c], center[c], spread[c])
        values[k] = compress_one(values[k], low[c], high[c], center[c], spread[c]) - zero


@compiled
def compress_one(x: float, low: float, high: float, center: float, spread: float) -> float:
    """Return one value, limited and compressed, in double precision."""
    bounded = min(max(np.float64(x), np.float64(low)), np.float64(high))
    return asinh((bounded - center) / spread) if spread > 0.0 else bounded
