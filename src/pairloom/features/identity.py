"""phi(x) = x: linear models."""

from dataclasses import dataclass

import numpy as np

from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.features.base import FeatureMap
from pairloom.features.scaling import Scaler, fit_scaler


@node
class IdentityState:
    """Arrays of a fixed identity map."""

    scaler: Scaler


@dataclass(frozen=True)
class Identity(FeatureMap):
    """The (scaled) input itself.

    CSR rows stay CSR: they are divided by the scale and not centred, which would make them dense. No pair sees the
    difference, and a learner puts it back into the scores.

    Cost: d flops per row (CSR: one per stored entry).

    >>> phi = Identity()
    >>> phi.apply(phi.fix(2, None, np.random.default_rng(0)), np.array([[3.0, 4.0]]))
    array([[3., 4.]])
    """

    keeps_csr = True

    def n_outputs(self, n_features: int) -> int:
        return n_features

    def flops(self, n_features: int) -> float:
        return float(n_features)

    def numbers(self, n_features: int) -> int:
        return 2 * n_features

    def fix(self, n_features: int, rows: Array | None, rng: np.random.Generator) -> IdentityState:
        return IdentityState(fit_scaler(self.scale, n_features, rows))

    def apply(self, state: IdentityState, X: Array) -> Array:
        scaled: Array = state.scaler.apply(X)
        return scaled
