"""phi(x) = x: linear models."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.graph import Value
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.features.base import FeatureMap, chosen_map
from pairloom.features.capabilities import Cost, FrozenShare, FrozenSum, RacingMap, summed_weights
from pairloom.features.contributions import Contrast, contribute_columns
from pairloom.features.scaling import Scaler, Scaling, fit_scaler


@node
class IdentityState:
    """Arrays of a fixed identity map."""

    scaler: Scaler


@node
class FrozenLinear(FrozenSum):
    """Weights ``w`` (d, classes) of the scaled columns."""

    shift: Annotated[Array, "R d finite"]
    reach: Annotated[Array, "R d finite | R 0"]
    scale: Annotated[Array, "R d positive"]
    w: Annotated[Array, "f8 d v"]

    def add(self, X: Array, out: Array) -> None:
        sum_columns(X, self.shift, self.reach, self.scale, self.w, out)

    @property
    def explainable(self) -> "FrozenLinear":
        return self

    def contribute(self, contrast: Contrast, out: Array) -> None:
        contribute_columns(*contrast, self.shift, self.reach, self.scale, self.w, out)

    def to_onnx(self, x: Value) -> Value:
        return Scaler(self.shift, self.scale, self.reach).to_onnx(x).to("f8") @ self.w


@dataclass(frozen=True)
class ColumnSum:
    """A linear model of the scaled columns with weights ``w`` (d, classes)."""

    scaler: Scaler
    w: Array

    def add(self, X: Array, out: Array) -> None:
        sum_columns(X, self.scaler.shift, self.scaler.reach, self.scaler.scale, self.w, out)

    @property
    def explainable(self) -> "ColumnSum":
        return self

    def contribute(self, contrast: Contrast, out: Array) -> None:
        contribute_columns(*contrast, self.scaler.shift, self.scaler.reach, self.scaler.scale, self.w, out)

    def frozen(self, share: FrozenShare) -> FrozenLinear:
        shift, reach, scale = self.scaler.shift, self.scaler.reach, self.scaler.scale
        return FrozenLinear(*share, shift.copy(), reach.copy(), scale.copy(), self.w.copy())


@dataclass(frozen=True)
class Identity(RacingMap):
    """The (scaled) input itself.

    CSR rows stay CSR: they are divided by the scale but not centred, which would make them dense. This does not change
    differences between rows, and a learner corrects the scores by the constant.

    Cost: d flops per row (CSR: one per stored entry).

    >>> phi = Identity()
    >>> phi.apply(phi.fix(2, None, np.random.default_rng(0)), np.array([[3.0, 4.0]]))
    array([[3., 4.]])
    """

    keeps_csr = True

    def n_outputs(self, n_features: int) -> int:
        return n_features

    def cost(self, n_features: int) -> Cost:
        return Cost(float(n_features), 2 * n_features)

    def fix(self, n_features: int, rows: Array | None, rng: np.random.Generator) -> IdentityState:
        return IdentityState(fit_scaler(self.scale, n_features, rows))

    def apply(self, state: IdentityState, X: Array) -> Array:
        scaled: Array = state.scaler.apply(X)
        return scaled

    def to_onnx(self, state: IdentityState, x: Value) -> Value:
        return state.scaler.to_onnx(x)

    def linear_sum(self, state: IdentityState, w: Array, slopes: Array) -> ColumnSum:
        return ColumnSum(state.scaler, summed_weights(w, slopes))


def linear_map(features: FeatureMap | None, scale: Scaling) -> FeatureMap:
    """Return ``features``, or the scaled input itself if it is None."""
    return chosen_map(features, Identity(scale=scale))


@compiled
def sum_columns(X: Array, shift: Array, reach: Array, scale: Array, w: Array, out: Array) -> None:
    """Add to ``out`` (rows, targets) the products of scaled rows with w (d, targets)."""
    for i in range(X.shape[0]):
        for c in range(X.shape[1]):
            x = X[i, c]
            if reach.shape[0]:
                x = min(max(x, shift[c] - reach[c]), shift[c] + reach[c])
            z = (x - shift[c]) / scale[c]
            for k in range(w.shape[1]):
                out[i, k] += z * w[c, k]
