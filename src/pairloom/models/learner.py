"""The parts put together: min_w sum_t sum_{j in B_t} p_j l(<w, phi(x_t) - phi(x_j)>; y_t, y_j) + Omega(w)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.csr import is_sparse
from pairloom.base.typing import Array
from pairloom.engines import cells, fused, reference, sparse
from pairloom.engines.base import Engine, always_runs
from pairloom.engines.state import State
from pairloom.features import FeatureMap, RandomFourier
from pairloom.features.base import Change
from pairloom.losses import Loss, Residual, Square
from pairloom.memory import Example, Memory, MemoryState, Slots, Strata
from pairloom.models.base import Mapped, Trouble, classes, linear_scores
from pairloom.pairs import NO_QUERY
from pairloom.steps import L2, Penalty


class Partners(NamedTuple):
    """The slots with which an example makes pairs: ``points`` phi(x_j), their ``labels``, and the ``weights`` p_j."""

    points: Array
    labels: Array
    weights: Array


@dataclass(frozen=True)
class Learner(Mapped):
    """A model <w, phi(x)> learned from pairs, one example at a time, in one pass.

    Each symbol of the objective is one part; a system of the literature is a choice of parts. A learner is a value: it
    says how to learn, and a :class:`~pairloom.Stream` learns.

    Parameters
    ----------
    features : phi.
    pairs : which pairs count, and what is asked of them.
    loss : l.
    memory : B_t and p_j.
    step : eta_t; with ``AdaGrad`` a step for each coordinate, and as many more numbers as there are weights.
    penalty : Omega.
    average : the iterate that scores: "last" (the paper), "mean", or "poly" (forgets the start).
    dtype : of the mapped examples and the weights.
    seed : of all randomness; None takes a fresh one.
    engine : "fused" (compiled; what "auto" takes), "reference" (NumPy in float64, the specification), or an engine of
        your own (:class:`~pairloom.engines.base.Engine`).

    If a part holds a rule on data ("median", "auto", scaling, landmarks), the first 1,024 rows are kept (more, if
    ``features.warm_rows`` says so); at rows 1, 4, 16, ..., 1024 the rules are fixed anew from all rows so far and these
    are learned again from the start. So at every moment the state is exactly one pass with the present rules, however
    the stream was cut into calls.

    >>> from pairloom import Gaussian, Stream
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(500, 2)), np.ones(500)
    >>> y[(X ** 2).sum(axis=1) > 2] = -1
    >>> learner = Learner(features=RandomFourier(64, Gaussian("median")), seed=0)
    >>> stream = Stream(learner).partial_fit(X, y)
    >>> bool(stream.score(X[y > 0]).mean() > stream.score(X[y < 0]).mean())
    True
    """

    engines: ClassVar[Mapping[str, Sequence[Engine]]] = {"reference": (reference,), "fused": (cells, sparse, fused)}
    large_products: ClassVar[bool] = False
    adapts: ClassVar[bool] = True

    features: FeatureMap = field(default_factory=RandomFourier)
    loss: Loss = field(default_factory=Square)
    memory: Memory = field(default_factory=Strata)
    penalty: Penalty = field(default_factory=L2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.step.per_coordinate:  # no coordinate's step is too long: what is kept of it is at least 0
            self.penalty.check(self.step.eta)
        if not self.memory.joint and self.pairs.n_groups == 0:
            raise ValueError(
                f"{type(self.memory).__name__} keeps slots for each class, but {type(self.pairs).__name__} pairs "
                "have no classes: use a memory that mixes them, such as Latest('previous') or "
                "Strata(by='joint', normalization='history')"
            )
        if self.pairs.exact and self.loss.name != "square":
            raise ValueError(f"{type(self.pairs).__name__} pairs ask for an exact difference: use loss=Square()")
        if self.memory.weighting == "sum" and not self.pairs.opposite:
            raise ValueError("normalization='sum' counts the rows of the other class: use pairs=OppositeClass()")
        if self.features.grows and not self.memory.holds_rows:
            raise ValueError(
                "where features grow, a memory must keep past rows, and cluster them by x, not phi(x): use "
                "Strata(cluster_in='input') with representative='fifo' or 'reservoir', or another memory, such as "
                f"Latest(); got {self.memory}"
            )
        if self.step.sequential and self.loss.name != "hinge":
            raise ValueError(f"{type(self.step).__name__} steps end where the hinge loss does: use loss=Hinge()")

    @property
    def n_vectors(self) -> int:
        return len(self.pairs.targets)

    @property
    def needs_data(self) -> bool:
        return self.features.needs_data or self.memory.needs_data

    @property
    def by_cells(self) -> bool:
        """Whether points are kept as lists of cells: see :mod:`pairloom.engines.cells`."""
        return always_runs(self, cells)

    @property
    def pair_loss(self) -> Loss:
        """The loss as a function of the margins that the pairs have."""
        return Residual() if self.pairs.exact else self.loss

    def init(self, n_features: int, first: Batch | None) -> State:
        state = self.begin(n_features, first, lambda phi, rows: self.start_memory(n_features, phi, rows))
        if self.memory.weighting == "sum":
            state.totals = np.zeros((len(state.w), 2))
        if self.step.per_coordinate:
            state.squares = np.zeros_like(state.w)
        slots = state.memory.slots
        if self.by_cells:
            state.cells = np.zeros((len(slots.mass), self.features.n_cells), np.int32)
        if self.features.grows:
            slots.rows = np.zeros((len(slots.mass), n_features), self.work)
        return state

    def run(self, state: State, batch: Batch) -> Scored:
        catch_up(self, state)
        made = self.learn(state, batch)
        if self.features.grows:
            self.features.remember(state.phi, batch, made.scores)
        return made

    def coef(self, state: State) -> Array:
        """The output iterate, one row per target of the pairs."""
        return state.w if self.average == "last" else state.w_bar

    def score(self, state: State, X: Any) -> Array:
        """<w, phi(x)> of each row, with the output iterate."""
        return linear_scores(self.features, state, self.coef(state), X)

    def partners(self, state: State, y: float, k: int = 0) -> Partners:
        """B_t and p_j: what an example with the code ``y`` would be paired with, now; ``k``: by which weight vector.

        >>> from pairloom import Identity, Latest, Stream
        >>> learner = Learner(features=Identity(), memory=Latest("opposite", 2), seed=0)
        >>> stream = Stream(learner).partial_fit([[1.0], [2.0], [3.0]], [-1, -1, 1])
        >>> points, labels, weights = learner.partners(stream.learned, 1.0)
        >>> points.ravel().tolist(), labels.tolist(), weights.tolist()
        ([1.0, 2.0], [0.0, 0.0], [0.5, 0.5])
        """
        slots = self._slots(state)
        at, p = reference.partners_of(self, state, k, _newest(np.zeros(slots.points.shape[1]), y))
        return Partners(slots.points[at], slots.labels[at], np.zeros(len(at)) if p is None else p)

    def pair_gradient(
        self, state: State, z: Array, y: float, *, w: Array | None = None, k: int = 0
    ) -> tuple[float, Array]:
        """Loss g and gradient v of an example phi(x) = ``z`` with the code ``y`` against its partners, in float64.

        At the weights ``w``, by default those of the state; both are 0 where there is no partner. A step descends v.
        """
        slots, example = self._slots(state), _newest(np.asarray(z, float), y)
        at, p = reference.partners_of(self, state, k, example)
        w = np.asarray(state.w[k] if w is None else w, float)
        return (0.0, np.zeros(len(w))) if p is None else reference.gradient(self, slots, w, k, example, at, p)

    def next_row(self, state: State) -> int:
        """The last row that is learned with the features of the next one, or one before it."""
        return self.features.next_change(state.phi, state.t + 1)

    def check_room(self, state: State | None, n: int) -> None:
        self.memory.check_room(None if state is None else state.memory, n)

    def trouble(self, state: State, told: float) -> Trouble | None:
        return self.stable(state, told)

    @property
    def forgets(self) -> bool:
        parts = self.memory.forgets or self.features.forgets
        return parts or self.average != "last" or not self.step.steady

    def forget(self, state: State, keep: float) -> None:
        state.forget(keep)
        self.memory.forget(state.memory, keep)
        self.features.forget(state.phi, state.t, keep)

    def _slots(self, state: State) -> Slots:
        """The slots, if their points are arrays."""
        slots: Slots = state.memory.slots
        if slots.points.shape[1] != state.w.shape[1] or state.cells is not None:
            raise ValueError(
                f"compiled engines keep the points of {type(self.features).__name__} as lists of entries, not as "
                "arrays: use engine='reference'"
            )
        return slots

    def start_memory(self, n_features: int, phi: Any, rows: Any) -> MemoryState:
        """The memory before the first row, with rules fixed from the first rows."""
        by_input, dim = self.memory.space == "input", self.features.n_outputs(n_features)
        sparse_points = self.features.sparse and not self.by_specification
        points = None
        if rows is not None and self.memory.needs_data:
            points = (self.features.inputs if by_input else self.features.apply)(phi, rows)
            points = sparse.stand_ins(points) if is_sparse(points) else points
        u_dim = n_features if by_input else dim
        start = self.memory.start_csr if sparse_points else self.memory.start
        return start(dim, u_dim, self.pairs.n_groups, np.dtype(self.dtype), points)


def _newest(z: Array, y: float) -> Example:
    """An example that is only looked at."""
    return Example(z, z, float(y), 1.0, NO_QUERY, np.empty(0))


def catch_up(learner: Learner, state: State) -> None:
    """Let features that grow become those of the next row."""
    features, changed = learner.features, False
    while features.grows and features.next_change(state.phi, state.t) == state.t:
        follow(learner, state, features.change(state.phi, state.t, classes(learner.pairs), learner.pairs.exact))
        changed = True
    if changed:
        map_anew(learner, state)


def follow(learner: Learner, state: State, change: Change) -> None:
    """Bring the weights to the features of the next row."""
    state.phi = state.phi if change.phi is state.phi else learner.rounded(change.phi)
    state.w = side_by_side(change.weights, state.w)
    if state.w_bar.shape[1]:
        state.w_bar = side_by_side(change.weights, state.w_bar)
    if state.squares is not None:
        state.squares = side_by_side(change.squares, state.squares)


def map_anew(learner: Learner, state: State) -> None:
    """Bring the kept rows to the features of the next row."""
    features, slots = learner.features, state.memory.slots
    if state.cells is not None:
        state.cells = features.cells(state.phi, slots.rows)
    elif features.sparse and not learner.by_specification:
        sparse.relist(learner, state)
    else:
        slots.points = features.dense(state.phi, slots.rows)


def side_by_side(change: Callable[[Array], Array], weights: Array) -> Array:
    """A change of (targets, D, models), for weights of several models or of one."""
    return change(weights) if weights.ndim == 3 else change(weights[:, :, None])[:, :, 0]
