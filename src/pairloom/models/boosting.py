"""Gradient boosting in one pass: generations of small trees, grown on the newest rows while rows arrive."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.capabilities import decay_factors
from pairloom.base.checks import check_count, check_number, check_part
from pairloom.base.compact import Form
from pairloom.base.csr import is_sparse
from pairloom.base.graph import Value
from pairloom.base.randomness import fresh_seed, generator
from pairloom.base.spec import StateSpec, WrongState
from pairloom.base.tree import copy
from pairloom.base.typing import Array
from pairloom.engines import boosting, boosting_reference
from pairloom.engines.base import Engine, EngineName, check_engine, engines_of, run_engine
from pairloom.engines.boosting import BLOCK_TREES
from pairloom.features.capabilities import FrozenShare
from pairloom.features.encoding import Encoding
from pairloom.models.base import Dtype, Many
from pairloom.models.boosting_growth import FIRST_LEAVES, begin, next_step, work
from pairloom.models.boosting_merging import merge_boosting
from pairloom.models.boosting_state import BoostingState, Growing, Ring
from pairloom.models.boosting_sum import BoostedSum, binned, check_bins
from pairloom.pairs import OppositeClass

MAX_ROWS = 16_384
"""Maximum number of rows in the ring: histograms hold the sums of this many rows."""

DRIFT, ROWS_SINCE_CHANGE, MIN_ROWS_KEPT = 0.5, 4.0, 1024
"""If forgetting keeps less than this share of the past, the stream has changed. Then only the newest rows are kept,
four times as many as all rows so far shall count as, but at least 1,024."""


@dataclass(frozen=True)
class ByLoops:
    """An engine: the loops of a module, compiled or not."""

    loops: Any
    any_part: bool
    double: ClassVar[bool] = False

    def takes(self, model: "Boosting", state: BoostingState, batch: Batch) -> bool:
        return True

    def run(self, model: "Boosting", state: BoostingState, batch: Batch) -> Array:
        return model.learn(state, batch, self.loops)


@dataclass(frozen=True, kw_only=True)
class Boosting(Many):
    r"""Gradient boosting on a stream: small trees that minimise the logistic loss, in one pass and bounded memory.

    .. math::

        s(x) = b + \sum_{m=1}^{M} \rho\, v_m(\ell_m(x)), \qquad
        v = -\frac{\sum_i g_i}{\sum_i h_i + \alpha}

    The newest ``n_rows`` rows are kept, of each class at least the newest ``n_rows`` / (2 classes). A generation of
    trees starts at rows 16, 32, ..., 256, 362, ..., and later every ``n_rows`` / 2 rows. Its trees are grown one by
    one, spread over the following rows, so that no row waits for more than a few small trees or one large tree. An
    arriving row is first scored by the trees so far, which have not seen it, and then joins the rows on which the next
    trees grow. These scores show how many trees are best: the sum is cut there when the generation is complete. It then
    replaces the one before it, and its leaves continue to learn with small steps.

    Missing values (NaN) have a bin of their own. Splits on categories sort them by their mean slope in the node.

    Parameters
    ----------
    pairs : the classes; with more than two, there is one sum of trees for each.
    n_trees : maximum number of trees of a generation, for each class.
    learning_rate : factor of each tree's values.
    max_leaves : maximum number of leaves; trees start with 7, and become larger if that reduces the loss.
    min_rows : minimum number of rows in a leaf.
    alpha : L2 penalty of the values of leaves.
    n_rows : number of newest rows kept, at most 16,384.
    eta : step size (AdaGrad) in the leaves of a complete generation; 0: they stay as they are.
    categories : the columns that are categories; their values are codes.

    Cost: 10 to 40 microseconds per row up to 40 columns; 5 d bytes for each of the ``n_rows`` rows. After a drift
    alarm only the newest rows are kept, and generations start over.

    >>> from pairloom import Stream
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 2))
    >>> y = np.where((X ** 2).sum(axis=1) > 2, 1, -1)
    >>> stream = Stream(Boosting(seed=0)).partial_fit(X, y)
    >>> bool(stream.auc() > 0.97)
    True
    """

    engines: ClassVar[Mapping[str, Sequence[Engine]]] = {
        "fused": (ByLoops(boosting, any_part=False),),
        "reference": (ByLoops(boosting_reference, any_part=True),),
    }

    pairs: OppositeClass = field(default_factory=OppositeClass)
    n_trees: int = 100
    learning_rate: float = 0.1
    max_leaves: int = 31
    min_rows: int = 20
    alpha: float = 1.0
    n_rows: int = MAX_ROWS
    eta: float = 0.01
    categories: tuple[int, ...] = ()
    dtype: Dtype = "float32"
    seed: int | None = None
    engine: EngineName | Engine = "auto"

    def __post_init__(self) -> None:
        check_part("pairs", self.pairs, OppositeClass)
        for name in ("n_trees", "max_leaves", "min_rows", "n_rows"):
            check_count(name, getattr(self, name))
        if self.n_rows > MAX_ROWS or self.max_leaves < 2:
            raise ValueError(
                f"n_rows must be at most {MAX_ROWS:,}, and max_leaves at least 2; "
                f"got n_rows={self.n_rows} and max_leaves={self.max_leaves}"
            )
        check_number("learning_rate", self.learning_rate, 0, open_low=True)
        check_number("alpha", self.alpha, 0)
        check_number("eta", self.eta, 0)
        check_engine(self)
        if self.seed is None:
            object.__setattr__(self, "seed", fresh_seed())

    def __len__(self) -> int:
        return 1

    @property
    def n_vectors(self) -> int:
        return len(self.pairs.targets)

    @property
    def takes_nan(self) -> bool:
        return True

    @property
    def form(self) -> Form:
        return "codes"

    def reading(self, encoding: Encoding) -> Self:
        return replace(self, categories=encoding.categories)

    def category(self, d: int) -> Array:
        """Return which of d columns are categories."""
        found = np.zeros(d, bool)
        found[list(self.categories)] = True
        return found

    def init(self, n_features: int, first: Batch | None) -> BoostingState:
        if self.categories and max(self.categories) >= n_features:
            raise ValueError(f"categories={self.categories} names a column beyond the {n_features} columns of the rows")
        assert self.seed is not None
        leaves = min(FIRST_LEAVES, self.max_leaves)
        state = BoostingState(
            Ring.empty(0, n_features, self.dtype), generator(self.seed), [], [], None, None,
            np.zeros(self.pairs.n_groups), self.n_trees, leaves, 0,
        )  # fmt: skip
        begin(self, state)
        return state

    def run(self, state: BoostingState, batch: Batch) -> Scored:
        batch = replace(batch, X=batch.X.toarray()) if is_sparse(batch.X) else batch
        scores = run_engine(self, state, batch)
        return Scored(state.t, scores, batch.y, batch.weight, batch.query)

    def learn(self, state: BoostingState, batch: Batch, loops: Any) -> Array:
        """Score rows, learn them, and do what is due after the last one."""
        bins = [binned(one, batch.X, loops) for one in state.bins]
        scores = self._score_and_learn_leaves(state, batch, bins, loops)
        self._put(state, batch, bins, loops)
        np.add.at(state.came, batch.y.astype(np.int64), batch.weight)  # row by row: the chunking must not matter
        state.t += len(batch)
        state.age += len(batch)
        work(self, state, loops)
        return scores

    def put(self, state: BoostingState, batch: Batch) -> None:
        """Put rows into the ring, and score them by the growing trees; nothing else is learned."""
        loops = engines_of(self)[0].loops  # type: ignore[attr-defined]
        self._put(state, batch, [binned(one, batch.X, loops) for one in state.bins], loops)

    def _put(self, state: BoostingState, batch: Batch, bins: list[Array], loops: Any) -> None:
        slots = state.ring.add(batch.X, batch.y, batch.weight, state.t)
        if bins:
            state.ring_bins[:, slots] = bins[-1].T
        if state.growing is not None and not state.fixed:
            self._arrive(state.growing, batch, slots, bins[-1], loops)

    def _score_and_learn_leaves(self, state: BoostingState, batch: Batch, bins: list[Array], loops: Any) -> Array:
        """Return the mean score of the generations, and let the leaves of the newest one learn."""
        total = np.zeros((len(batch), self.n_vectors))
        if not state.generations:
            return total
        *older, newest = state.generations
        for one in older:
            total += one.base
            loops.walk(bins[one.bins], one.trees.arrays, one.trees.grown, total)
        scores = np.empty_like(total)
        loops.learn_leaves(
            bins[newest.bins], batch.y, batch.weight / newest.unit, self.pairs.targets, newest.base,
            newest.trees.arrays, newest.trees.grown, self.eta, scores,
        )  # fmt: skip
        return (total + scores) / len(state.generations)

    def _arrive(self, growing: Growing, batch: Batch, slots: Array, bins: Array, loops: Any) -> None:
        """Score new rows of the ring by the growing trees."""
        made, scores = growing.generation, np.empty((len(batch), self.n_vectors))
        positive = batch.y[:, None] == self.pairs.targets
        factors = (batch.weight / made.unit)[:, None] * np.where(positive, growing.factors, 1.0)
        loops.arrive(
            bins, batch.y, factors, self.pairs.targets, made.base, made.trees.arrays, made.trees.grown, scores,
            growing.curve.drops, growing.curve.mass,
        )  # fmt: skip
        growing.scores[slots] = scores

    def score(self, state: BoostingState, X: Any) -> Array:
        """Return the mean score of the generations; 0 before the first is complete."""
        out = np.zeros((X.shape[0], self.n_vectors))
        self.linear_sum(state, np.ones((1, self.n_vectors))).add(X.toarray() if is_sparse(X) else X, out)
        return out

    def to_onnx(self, state: BoostingState, x: Value) -> Value:
        share = FrozenShare("", 1.0, np.zeros(self.n_vectors))
        return self.linear_sum(state, np.ones((1, self.n_vectors))).frozen(share).to_onnx(x)

    def linear_sum(self, state: BoostingState, slopes: Array) -> BoostedSum:
        return BoostedSum(state.bins, state.generations, slopes)

    def explainable(self, state: BoostingState) -> BoostedSum:
        return self.linear_sum(state, np.ones((1, self.n_vectors)))

    def shaped(self, scores: Array) -> Array:
        """Reshape scores for users: a column per class, or one dimension for two classes."""
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def next_row(self, state: BoostingState) -> int:
        return state.t + max(1, next_step(state)[0] - state.age)

    def pick(self, index: int) -> Self:
        """Return the model."""
        return self

    def only(self, index: int, state: BoostingState) -> tuple[BoostingState, Array]:
        """Return a copy of the state, and all columns of its scores."""
        return copy(state), np.arange(self.n_vectors)

    def recode(self, state: BoostingState, codes: dict[int, Array]) -> None:
        X = state.ring.X
        for k, new in codes.items():
            own = np.flatnonzero((X[:, k] >= 0) & (X[:, k] < len(new)))
            X[own, k] = new[X[own, k].astype(np.int64)]
        state.replace_ring(state.ring)

    def merge(self, base: BoostingState, parts: Sequence[BoostingState]) -> BoostingState:
        """Merge the leaves, and let generations grow on the newest rows of all parts in turn."""
        return merge_boosting(self, base, list(parts))

    @property
    def forgetting(self) -> Self:
        return self

    def forget(self, state: BoostingState, keep: float) -> None:
        """Reduce the weight of the rows so far; after a change, keep only the newest ones and start over."""
        ring = state.ring
        state.came *= decay_factors(state.came, keep)
        if keep >= DRIFT:
            ring.weight *= decay_factors(ring.weight, keep)
            return
        kept = max(MIN_ROWS_KEPT, int(ROWS_SINCE_CHANGE * keep * state.age))
        state.bins = state.bins[: 1 + max((one.bins for one in state.generations), default=-1)]
        state.replace_ring(ring.newest(kept))  # ``begin`` makes room for the rows of the next period
        state.came = state.ring.class_weights
        state.age = state.end = state.ring.count
        state.fitted, state.growing, state.curve = 0, None, None
        state.goal, state.max_leaves = self.n_trees, min(FIRST_LEAVES, self.max_leaves)
        for one in state.generations:
            one.rows = 0
        begin(self, state)

    def state_spec(self, n_features: int, t: int, room: int) -> StateSpec:
        spec = super().state_spec(n_features, t, room)
        return replace(
            spec, symbols={**spec.symbols, "B": -(-self.n_trees // BLOCK_TREES)}, check=partial(check_state, self, t)
        )


def check_state(model: Boosting, t: int, state: BoostingState) -> None:
    """Raise ValueError unless this is a possible state after t rows."""
    ring, growing = state.ring, state.growing
    if state.t != t or state.age > t or (state.age >= state.end and not state.fixed):
        raise WrongState(f"must be the state of {t} rows", "t")
    if len(ring.y) != min(model.n_rows, state.end) or ring.count != min(state.age, len(ring.y)):
        raise WrongState(f"must have room for {min(model.n_rows, state.end)} rows, and the newest of them", "ring")
    if len(state.generations) > 2 or len(state.bins) > 3:
        raise WrongState("must be at most two", "generations")
    check_bins(state.generations, state.bins)
    if growing is None:
        return
    made = growing.generation
    d, total = ring.X.shape[1], growing.goal * model.n_vectors
    trees, leaves = made.trees.columns.shape[1], (made.trees.columns.shape[2] + 1) // 2
    if made.bins + 1 != len(state.bins) or growing.binned > d or len(growing.scores) != len(ring.y):
        raise WrongState("must have the newest bins, and scores of the ring", "growing")
    if trees != growing.goal or not 0 < growing.goal <= model.n_trees or growing.curve.max_leaves != leaves:
        raise WrongState("must have room for its trees", "growing")
    if state.fixed:
        return
    turn, last = max(0, growing.done - 1) // model.n_vectors, -(-growing.done // model.n_vectors)
    if growing.done > total or (made.trees.grown > last).any() or not growing.start <= state.age < next_step(state)[0]:
        raise WrongState(f"must have the trees of row {t}, {turn} or more", "growing")
