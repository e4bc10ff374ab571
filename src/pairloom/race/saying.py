"""What an entrant says of rows: the weighted sum of its models' scores, by one compiled loop where there is one."""

from typing import Any

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.csr import is_sparse
from pairloom.base.typing import Array
from pairloom.features import Forest, Gaussian, Identity, Landmarks
from pairloom.features.landmarks import sum_gaussians
from pairloom.features.trees import sum_leaves, sum_leaves_with_gaps
from pairloom.models.exact_path import ExactPath
from pairloom.models.path import StepPath
from pairloom.race.entrant import Entrant


def said(entrant: Entrant, X: Any, slopes: Array, shifts: Array, *, gaps: bool = False) -> Array:
    """The sum over an entrant's models m of slopes_m (s_m - shifts_m): (rows, classes).

    ``gaps``: some values are missing.
    """
    model, learned = entrant.model, entrant.stream.learned
    features = model.features
    if not is_sparse(X):
        out = np.empty((X.shape[0], slopes.shape[1]))
        out[:] = -(slopes * shifts).sum(axis=0)
        if isinstance(model, StepPath) and isinstance(features, Forest) and not features.levels:
            nodes, scale = learned.phi.nodes, 1.0 / np.sqrt(features.n_trees)
            if gaps:
                ways = (nodes.columns, nodes.values, nodes.yes, nodes.missing_yes, nodes.cells)
                sum_leaves_with_gaps(X, *ways, learned.w, scale * slopes, out)
            else:
                sum_leaves(X, nodes.columns, nodes.values, nodes.yes, nodes.cells, learned.w, scale * slopes, out)
            return out
        if isinstance(model, ExactPath) and isinstance(features, Identity):
            scaler = learned.phi.scaler
            sum_columns(X, scaler.shift, scaler.reach, scaler.scale, weights(learned.w, slopes), out)
            return out
        if isinstance(model, ExactPath) and isinstance(features, Landmarks) and isinstance(features.kernel, Gaussian):
            phi = learned.phi
            beta = dual(entrant, slopes)
            args = (phi.scaler.shift, phi.scaler.reach, phi.widths, phi.center, phi.landmarks, phi.squares[0], beta)
            sum_gaussians(X, *args, out)
            return out
    return np.asarray(((entrant.score(X) - shifts) * slopes).sum(axis=1))


def weights(w: Array, slopes: Array) -> Array:
    """One weight for each feature and class, in place of those of several models: (D, classes)."""
    return np.asarray(np.einsum("rk,rkd->dk", slopes, w.reshape(*slopes.shape, -1).astype(float)))


def dual(entrant: Entrant, slopes: Array) -> Array:
    """One weight for each landmark and class; made anew when the weights have been."""
    memory = entrant.stream.learned.memory
    known: tuple[Array, Array] | None = memory.dual
    if known is None or not np.array_equal(known[0], slopes):
        learned = entrant.stream.learned
        beta = learned.phi.mixing.astype(float) @ weights(learned.w, slopes)
        memory.dual = known = (slopes.copy(), beta)
    return known[1]


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
