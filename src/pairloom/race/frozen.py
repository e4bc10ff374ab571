"""A race that only predicts: what its entrants say, with one weight where they have many."""

from dataclasses import field
from typing import Any

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.csr import is_sparse
from pairloom.base.tree import OPTIONAL, Rounded, node
from pairloom.base.typing import Array
from pairloom.features import Forest, Gaussian, Identity, Landmarks
from pairloom.features.landmarks import sum_gaussians
from pairloom.features.trees import TOGETHER, go_down, leaf_of
from pairloom.models.exact_path import ExactPath
from pairloom.race.entrant import Entrant
from pairloom.race.mixing import tame
from pairloom.race.saying import dual, sum_columns, weights
from pairloom.race.state import RaceState, Standing

DENSE = 1 << 24
"""Numbers that CSR rows may take up while they are scored."""


@node
class Member:
    """``weight`` of a candidate in the mixture, and ``offset`` (classes,): what it says before any row."""

    name: str
    weight: float
    offset: Array


@node
class FrozenLinear(Member):
    """A weight ``w`` (d, classes) for each scaled column."""

    shift: Rounded
    reach: Rounded
    scale: Rounded
    w: Array

    def add(self, X: Array, out: Array) -> None:
        sum_columns(X, self.shift, self.reach, self.scale, self.w, out)


@node
class FrozenKernel(Member):
    """A weight ``beta`` (m, classes) for each landmark; the other arrays are those of a NystroemState."""

    shift: Rounded
    reach: Rounded
    widths: Rounded
    center: Rounded
    landmarks: Rounded
    squares: Rounded
    beta: Array

    def add(self, X: Array, out: Array) -> None:
        sum_gaussians(
            X, self.shift, self.reach, self.widths, self.center, self.landmarks, self.squares, self.beta, out
        )  # fmt: skip


@node
class FrozenForest(Member):
    """Nodes of trees as in :class:`~pairloom.features.trees.Nodes`; ``w`` (trees, nodes, classes): of each leaf.

    ``missing_yes``: only where values may be missing.
    """

    columns: Array
    values: Rounded
    yes: Array
    w: Array
    missing_yes: Array | None = field(default=None, metadata=OPTIONAL)

    def add(self, X: Array, out: Array) -> None:
        if self.missing_yes is not None and np.isnan(X).any():
            sum_nodes_with_gaps(X, self.columns, self.values, self.yes, self.missing_yes, self.w, out)
        else:
            sum_nodes(X, self.columns, self.values, self.yes, self.w, out)


@node
class FrozenState:
    """What is left of a :class:`RaceState`: the members of the mixture, the standings, and what was counted."""

    n_features: int
    t: int
    counts: Array
    members: list[Any]
    standings: list[Standing]

    def score(self, X: Any, n_vectors: int) -> Array:
        """The scores of the race that it was made of."""
        if is_sparse(X):
            rows, at = max(1, DENSE // self.n_features), X.tocsr()
            cuts = range(0, X.shape[0], rows)
            parts = [self.score(at[start : start + rows].toarray(), n_vectors) for start in cuts]
            return np.concatenate(parts) if parts else np.zeros((0, n_vectors))
        total = np.zeros((X.shape[0], n_vectors))
        for member in self.members:
            out = np.empty(total.shape)
            out[:] = member.offset
            member.add(X, out)
            total += member.weight * tame(out)
        return total


def frozen(state: RaceState, entrants: list[Entrant], *, gaps: bool) -> FrozenState:
    """Only what predicts; ValueError for candidates that have no such form. ``gaps``: values may be missing."""
    members, first, mixture = [], 0, state.mixture
    for entrant, weight in zip(entrants, mixture.weights, strict=False):
        own = slice(first, first + len(entrant))
        first = own.stop
        if weight > 0:
            members.append(member_of(entrant, float(weight), mixture.slopes[own], mixture.shifts[own], gaps=gaps))
    return FrozenState(state.n_features, state.t, state.counts.copy(), members, list(state.standings))


def member_of(entrant: Entrant, weight: float, slopes: Array, shifts: Array, *, gaps: bool) -> Member:
    """What an entrant says, frozen."""
    model, learned, name = entrant.model, entrant.stream.learned, entrant.name
    features, phi, offset = model.features, learned.phi, -(slopes * shifts).sum(axis=0)
    if isinstance(features, Forest) and learned.w.ndim == 3 and not features.levels:
        made = FrozenForest(name, weight, offset, *trimmed(phi.nodes, learned.w, slopes / np.sqrt(features.n_trees)))
        made.missing_yes = phi.nodes.missing_yes[:, : made.yes.shape[1]].copy() if gaps else None
        return made
    if isinstance(features, Identity):
        w = weights(learned.w if isinstance(model, ExactPath) else model.coef(learned), slopes)
        scaler = phi.scaler
        return FrozenLinear(name, weight, offset, scaler.shift.copy(), scaler.reach.copy(), scaler.scale.copy(), w)
    if isinstance(model, ExactPath) and isinstance(features, Landmarks) and isinstance(features.kernel, Gaussian):
        shift, reach = phi.scaler.shift.copy(), phi.scaler.reach.copy()
        center, landmarks, squares = phi.center.copy(), phi.landmarks.copy(), phi.squares[0].copy()
        beta = dual(entrant, slopes).copy()
        return FrozenKernel(name, weight, offset, shift, reach, phi.widths.copy(), center, landmarks, squares, beta)
    raise ValueError(f"frozen() is for linear models, Landmarks and forests; {name!r} has features={features}")


def trimmed(nodes: Any, w: Array, slopes: Array) -> tuple[Array, Array, Array, Array]:
    """Columns, values, first children and leaf weights of trees, without the room that no tree uses."""
    n_trees, n_nodes = nodes.yes.shape
    inner = nodes.yes != np.arange(n_nodes)
    used = int(max(1, np.where(inner, nodes.yes + 2, 1).max()))
    cells = nodes.cells[:, 0, :used] + np.arange(n_trees)[:, None] * (w.shape[1] // n_trees)
    made = np.zeros((n_trees, used, len(w)))
    for k, own in enumerate(w):
        for r in range(own.shape[1]):
            made[:, :, k] += slopes[r, k] * own[cells, r]
    made[inner[:, :used]] = 0.0
    return nodes.columns[:, :used].copy(), nodes.values[:, :used].copy(), nodes.yes[:, :used].copy(), made


@compiled
def sum_nodes_with_gaps(
    X: Array, columns: Array, values: Array, yes: Array, missing_yes: Array, w: Array, out: Array
) -> None:  # fmt: skip
    """``sum_nodes`` of rows whose values may be missing."""
    for i in range(X.shape[0]):
        for t in range(columns.shape[0]):
            at = leaf_of(X[i], columns[t], values[t], yes[t], missing_yes[t])
            for k in range(w.shape[2]):
                out[i, k] += w[t, at, k]


@compiled
def sum_nodes(X: Array, columns: Array, values: Array, yes: Array, w: Array, out: Array) -> None:
    """``sum_leaves`` with the weights at the nodes."""
    at = np.empty(TOGETHER, np.int32)
    for i in range(X.shape[0]):
        x = X[i]
        for start in range(0, columns.shape[0], TOGETHER):
            count = min(TOGETHER, columns.shape[0] - start)
            go_down(x, columns, values, yes, start, count, at)
            for q in range(count):
                for k in range(w.shape[2]):
                    out[i, k] += w[start + q, at[q], k]
