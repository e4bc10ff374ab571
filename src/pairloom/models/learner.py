"""A model composed of parts: min_w sum_t sum_{j in B_t} p_j l(<w, phi(x_t) - phi(x_j)>; y_t, y_j) + Omega(w)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.clock import NEVER
from pairloom.base.csr import is_sparse
from pairloom.base.graph import Value
from pairloom.base.spec import StateSpec, WrongState
from pairloom.base.typing import Array
from pairloom.engines import cells, fused, gram, reference, sparse
from pairloom.engines.arguments import objective_of
from pairloom.engines.base import Engine, always_runs
from pairloom.engines.state import State
from pairloom.features import FeatureMap, RandomFourier
from pairloom.features.base import dense_features
from pairloom.features.capabilities import Change, scores_onnx
from pairloom.features.contributions import Explainable
from pairloom.losses import Loss, Residual, Square
from pairloom.memory import Example, Memory, MemoryState, Slots, Strata
from pairloom.models.mapped import Mapped, classes, explainable_scores, linear_scores
from pairloom.models.merging import at_pace, merge_memories, merge_states, row_counts
from pairloom.pairs import NO_QUERY
from pairloom.steps import L2, Penalty


class Partners(NamedTuple):
    """The slots that an example is paired with: ``points`` phi(x_j), their ``labels``, and their ``weights`` p_j."""

    points: Array
    labels: Array
    weights: Array


@dataclass(frozen=True)
class Learner(Mapped):
    """A model <w, phi(x)> learned from pairs, one example at a time, in one pass.

    Each symbol of the objective is one part; a published system is a choice of parts. A learner is an immutable
    description of the model; a :class:`~pairloom.Stream` does the learning.

    Parameters
    ----------
    features : phi.
    pairs : which pairs are used, and how their scores should differ.
    loss : l.
    memory : B_t and p_j.
    step : eta_t; ``AdaGrad`` has one step size per coordinate, and keeps one more number per weight.
    penalty : Omega.
    average : the iterate that scores: "last" (the paper), "mean", or "poly" (forgets the start).
    dtype : dtype of the mapped examples and the weights.
    seed : seed of all randomness; None draws a fresh seed.
    engine : "fused" (compiled; the default of "auto"), "reference" (NumPy in float64, the specification), or a custom
        engine (:class:`~pairloom.engines.base.Engine`).

    If a part depends on data ("median", "auto", scaling, landmarks), the first 1,024 rows are kept (more, if
    ``features.warm_rows`` is larger). At rows 1, 4, 16, ..., 1024 the data-dependent settings are refitted to all rows
    so far, and these rows are learned again from the start. So the state is always exactly one pass with the current
    rules, regardless of the split of the stream into calls.

    >>> from pairloom import Stream
    >>> from pairloom.features import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(500, 2)), np.ones(500)
    >>> y[(X ** 2).sum(axis=1) > 2] = -1
    >>> learner = Learner(features=RandomFourier(64, Gaussian("median")), seed=0)
    >>> stream = Stream(learner).partial_fit(X, y)
    >>> bool(stream.score(X[y > 0]).mean() > stream.score(X[y < 0]).mean())
    True
    """

    engines: ClassVar[Mapping[str, Sequence[Engine]]] = {
        "reference": (reference,),
        "fused": (cells, sparse, gram, fused),
    }
    adapts: ClassVar[bool] = True

    features: FeatureMap = field(default_factory=RandomFourier)
    loss: Loss = field(default_factory=Square)
    memory: Memory = field(default_factory=Strata)
    penalty: Penalty = field(default_factory=L2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.step.per_coordinate:  # a step per coordinate is never too long: keep is at least 0
            self.penalty.check(self.step.eta)
        if not self.memory.joint and self.pairs.n_groups == 0:
            raise ValueError(
                f"{type(self.memory).__name__} keeps slots for each class, but {type(self.pairs).__name__} pairs "
                "have no classes: use a memory that mixes them, such as Latest('previous') or "
                "Strata(by='joint', normalization='history')"
            )
        if self.pairs.exact and self.loss.name != "square":
            raise ValueError(f"{type(self.pairs).__name__} pairs need an exact difference of scores: use loss=Square()")
        if self.memory.weighting == "sum" and not self.pairs.opposite:
            raise ValueError("normalization='sum' counts the rows of the other class: use pairs=OppositeClass()")
        if self.features.growing is not None and not self.memory.holds_rows:
            raise ValueError(
                "with features that grow, a memory must keep past rows, and cluster them by x, not phi(x): use "
                "Strata(cluster_in='input') with representative='fifo' or 'reservoir', or another memory, such as "
                f"Latest(); got {self.memory}"
            )
        if self.step.sequential and self.loss.name != "hinge":
            raise ValueError(f"{type(self.step).__name__} steps end where the hinge loss is 0: use loss=Hinge()")

    @property
    def needs_data(self) -> bool:
        return self.features.needs_data or self.memory.needs_data

    @property
    def takes_nan(self) -> bool:
        """Whether the map supports missing values, and the memory does not cluster rows by them."""
        return self.features.takes_nan and self.memory.space != "input"

    @property
    def by_cells(self) -> bool:
        """Whether points are kept as lists of cells (:mod:`pairloom.engines.cells`)."""
        return always_runs(self, cells)

    @cached_property
    def objective(self) -> tuple[Any, ...]:
        """``engines.arguments.Objective`` as a plain tuple."""
        return objective_of(self)

    @cached_property
    def steady_step(self) -> Array | None:
        """(keep, rate, threshold) of a row of weight 1, and 0 (6, 1); None if it is not the same for all rows."""
        if not self.step.steady:
            return None
        table = np.zeros((6, 1))
        table[:3, 0] = np.concatenate(self.penalty.at(self.step.at(np.ones(1))))
        return table

    @property
    def pair_loss(self) -> Loss:
        """The loss as a function of the margin of a pair."""
        return Residual() if self.pairs.exact else self.loss

    def init(self, n_features: int, first: Batch | None) -> State:
        state = self.begin(n_features, first, lambda phi, rows: self.start_memory(n_features, phi, rows))
        if self.memory.weighting == "sum":
            state.totals = np.zeros((len(state.w), 2))
        if self.step.per_coordinate:
            state.squares = np.zeros_like(state.w)
        slots = state.memory.slots
        if self.by_cells:
            assert self.features.sparse is not None
            state.cells = np.zeros((len(slots.mass), self.features.sparse.n_cells), np.int32)
        if self.features.growing is not None:
            slots.rows = np.zeros((len(slots.mass), n_features), self.work)
        return state

    def run(self, state: State, batch: Batch) -> Scored:
        catch_up(self, state)
        made: Scored = at_pace(self, state.pace).learn(state, batch)
        growing = self.features.growing
        if growing is not None:
            growing.remember(state.phi, batch, made.scores)
        return made

    def coef(self, state: State) -> Array:
        """Return the output iterate, one row per target of the pairs."""
        return state.w if self.average == "last" else state.w_bar

    def score(self, state: State, X: Any) -> Array:
        """Return <w, phi(x)> of each row, with the output iterate."""
        return linear_scores(self.features, state, self.coef(state), X)

    def explainable(self, state: State) -> Explainable | None:
        return explainable_scores(self.features, state, self.coef(state))

    def to_onnx(self, state: State, x: Value) -> Value:
        return scores_onnx(self.features, state.phi, self.coef(state), x)

    def partners(self, state: State, y: float, k: int = 0) -> Partners:
        """Return B_t and p_j: the current partners of an example with code ``y`` for weight vector ``k``.

        >>> from pairloom import Stream
        >>> from pairloom.features import Identity
        >>> from pairloom.memory import Latest
        >>> learner = Learner(features=Identity(), memory=Latest("opposite", 2), seed=0)
        >>> stream = Stream(learner).partial_fit([[1.0], [2.0], [3.0]], [-1, -1, 1])
        >>> points, labels, weights = learner.partners(stream.learned, 1.0)
        >>> points.ravel().tolist(), labels.tolist(), weights.tolist()
        ([1.0, 2.0], [0.0, 0.0], [0.5, 0.5])
        """
        slots = self._slots(state)
        at, p = reference.partners_of(self, state, k, _example(np.zeros(slots.points.shape[1]), y))
        return Partners(slots.points[at], slots.labels[at], np.zeros(len(at)) if p is None else p)

    def pair_gradient(
        self, state: State, z: Array, y: float, *, w: Array | None = None, k: int = 0
    ) -> tuple[float, Array]:
        """Return loss g and gradient v of an example phi(x) = ``z`` with code ``y`` against its partners, in float64.

        They are computed at the weights ``w``, by default those of the state; both are 0 if there is no partner. A step
        moves along -v.
        """
        slots, example = self._slots(state), _example(np.asarray(z, float), y)
        at, p = reference.partners_of(self, state, k, example)
        w = np.asarray(state.w[k] if w is None else w, float)
        return (0.0, np.zeros(len(w))) if p is None else reference.gradient(self, slots, w, k, example, at, p)

    def memory_spec(self, n_features: int, dim: int) -> StateSpec:
        spec, sparse_map = self.memory.state_spec(self.pairs.n_groups), self.features.sparse
        by_input, dense = self.memory.space == "input", self.by_specification or sparse_map is None
        # Points have p numbers (0: no dense form), points for clustering have u, and their centres have q.
        sizes = {"p": dim if dense else 0, "u": n_features if by_input else dim}
        sizes |= {"q": n_features if by_input else sizes["p"], "m": 0 if sparse_map is None else sparse_map.n_cells}
        sizes |= {"o": self.n_vectors if self.memory.weighting == "sum" else 0}
        if "S" in spec.symbols:
            sizes["l"] = spec.symbols["S"]
        return replace(spec, symbols={**sizes, **spec.symbols})

    def check_state(self, t: int, state: State) -> None:
        state.check_rows(t)
        adapts = self.step.per_coordinate
        state.check_absent(squares=not adapts, cells=not self.by_cells)
        if state.lazy is not None and (state.lazy.squares is not None) != adapts:
            raise WrongState("must be an array" if adapts else "must be absent", "lazy.squares")
        if state.combination is not None and not gram.can_combine(self, state):
            raise WrongState("must be absent", "combination")
        if (state.memory.slots.rows is None) != (self.features.growing is None):
            raise WrongState("must be present if and only if features grow", "memory.slots.rows")

    def next_row(self, state: State) -> int:
        """Return a row up to which the features do not change."""
        growing = self.features.growing
        return NEVER if growing is None else growing.next_change(state.phi, state.t + 1)

    @property
    def limited(self) -> "Learner | None":
        return None if self.memory.limited is None else self

    def check_room(self, state: State | None, n: int) -> None:
        if self.memory.limited is not None:
            self.memory.limited.check_room(None if state is None else state.memory, n)

    @property
    def forgetting(self) -> "Learner | None":
        parts = self.memory.forgetting is not None or self.features.forgetting is not None
        return self if parts or self.average != "last" or not self.step.steady else None

    def forget(self, state: State, keep: float) -> None:
        state.forget(keep)
        if self.memory.forgetting is not None:
            self.memory.forgetting.forget(state.memory, keep)
        if self.features.forgetting is not None:
            self.features.forgetting.forget(state.phi, keep)

    def merge(self, base: State, parts: Sequence[State]) -> State:
        """Merge weights by their squared gradients or, without these, by rows; memories and maps by rules of theirs."""
        return merge_learners(self, base, list(parts))

    def _slots(self, state: State) -> Slots:
        """Return the slots; raise ValueError unless their points are dense arrays."""
        slots: Slots = state.memory.slots
        if slots.points.shape[1] != state.w.shape[1] or state.cells is not None:
            raise ValueError(
                f"compiled engines keep the points of {type(self.features).__name__} as lists of entries, not as "
                "arrays: use engine='reference'"
            )
        return slots

    def start_memory(self, n_features: int, phi: Any, rows: Any) -> MemoryState:
        """Return the memory before the first row, with data-dependent settings fixed from the first rows."""
        by_input, dim = self.memory.space == "input", self.features.n_outputs(n_features)
        sparse_points = self.features.sparse is not None and not self.by_specification
        points = None
        if rows is not None and self.memory.needs_data:
            points = (self.features.inputs if by_input else self.features.apply)(phi, rows)
            points = sparse.two_points_at_mean_distance(points) if is_sparse(points) else points
        u_dim = n_features if by_input else dim
        size, dtype = self.pairs.n_groups, np.dtype(self.dtype)
        csr = self.memory.csr if sparse_points else None
        if csr is not None:
            return csr.start_csr(u_dim, size, dtype, points)
        return self.memory.start(0 if sparse_points else dim, u_dim, size, dtype, points)


def _example(z: Array, y: float) -> Example:
    """Return an example of weight 1 without a query, for lookups."""
    return Example(z, z, float(y), 1.0, NO_QUERY, np.empty(0))


def catch_up(learner: Learner, state: State) -> None:
    """Update growing features to those of the next row."""
    growing, changed = learner.features.growing, False
    while growing is not None and growing.next_change(state.phi, state.t) == state.t:
        change_map(learner, state, growing.change(state.phi, state.t, classes(learner.pairs), learner.pairs.exact))
        changed = True
    if changed:
        map_kept_rows(learner, state)


def merge_learners(learner: Learner, base: State, parts: list[State]) -> State:
    """Return the merged state of a learner; a map that grows then changes as often as is due by its new row."""
    state = merge_states(learner, base, parts)
    merge_memories(learner, state, base, parts)
    growing = learner.features.growing
    if growing is not None:
        rows, labels = row_counts(base, parts), classes(learner.pairs)
        phi, changes = growing.merge(base.phi, [part.phi for part in parts], rows, labels, learner.pairs.exact)
        for change in changes:
            change_all_weights(state, change)
        state.phi = learner.rounded(phi)
        map_kept_rows(learner, state)
    return state


def change_map(learner: Learner, state: State, change: Change) -> None:
    """Update the map and the weights to the features of the next row."""
    state.phi = state.phi if change.phi is state.phi else learner.rounded(change.phi)
    change_all_weights(state, change)


def change_all_weights(state: State, change: Change) -> None:
    """Update the weights to the features of the next row."""
    state.w = change_weights(change.weights, state.w)
    if state.w_bar.shape[1]:
        state.w_bar = change_weights(change.weights, state.w_bar)
    if state.squares is not None:
        state.squares = change_weights(change.squares, state.squares)


def map_kept_rows(learner: Learner, state: State) -> None:
    """Map the rows of the memory to the features of the next row."""
    by_cells, slots = learner.features.sparse, state.memory.slots
    if by_cells is None or learner.by_specification:
        slots.points = dense_features(learner.features, state.phi, slots.rows)
    elif state.cells is None:
        sparse.rebuild_lazy(learner, state)
    else:
        state.cells = by_cells.cells(state.phi, slots.rows)


def change_weights(change: Callable[[Array], Array], weights: Array) -> Array:
    """Apply a change of weights (targets, D, models) to weights of several models or of one."""
    return change(weights) if weights.ndim == 3 else change(weights[:, :, None])[:, :, 0]
