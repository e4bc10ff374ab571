"""Learners that keep statistics of the past in place of examples: one small protocol."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.clock import NEVER
from pairloom.base.csr import Rows, csr, is_sparse
from pairloom.base.typing import Array
from pairloom.engines.fused import BLOCK_BYTES
from pairloom.engines.reference import HEAVY, limited
from pairloom.engines.sparse import center_of
from pairloom.engines.sparse_kernels import SIGMA, SQUARE, A, B
from pairloom.engines.state import LazyModel, State
from pairloom.features.growing import refuse_growing
from pairloom.models.base import Mapped, Trouble, linear_scores
from pairloom.pairs import OppositeClass
from pairloom.steps import L2, Average, Penalty, averaging_rate


@dataclass(frozen=True)
class Row:
    """One mapped example as a model sees it: y is +1 or -1, ``eta`` the step times the weight.

    (keep, rate, threshold): what the penalty makes of the step; ``draws``: uniform random numbers.
    """

    z: Array
    y: float
    weight: float
    eta: float
    keep: float
    rate: float
    threshold: float
    draws: Array


class Block(NamedTuple):
    """Many rows, for a compiled loop; fields as in :class:`Row`. The loop takes it as a plain tuple.

    ``Z`` is dense, or data, indices and indptr of CSR rows; ``y`` (n, models); ``steps`` (3, n): keep, rate, threshold;
    ``rho`` (n,): averaging rates. The loop writes each row's scores before the step into ``scores`` (n, models).
    """

    Z: Any
    y: Array
    weight: Array
    eta: Array
    steps: Array
    bound: float
    rho: Array
    averaging: bool
    draws: Array
    scores: Array


@dataclass(frozen=True)
class Rule(ABC):
    """What a system does with a mapped example, given statistics of those before it.

    It is told twice: ``step`` is the specification, one example and one model at a time, in NumPy and float64; ``run``
    is the same over a block of rows, compiled. Statistics are a dataclass of arrays, float64 where they add up over the
    stream, in ``state.memory``; with more than two classes there is one model for each class against the rest, and
    arrays have a first axis for it.
    """

    averages_before: ClassVar[bool] = False
    """Whether the output averages the iterates from which the steps start, not those at which they end."""

    @property
    def takes_csr(self) -> bool:
        """Whether there is a ``run_rows`` for CSR rows; if not, they become dense block by block."""
        return type(self).run_rows is not Rule.run_rows

    @property
    def draws(self) -> int:
        """Uniform random numbers used up by each example."""
        return 0

    @abstractmethod
    def start(self, dim: int, n_models: int) -> Any:
        """Statistics of nothing; ValueError if they would be too large."""

    @abstractmethod
    def step(self, state: State, k: int, row: Row, penalty: Penalty) -> None:
        """Learn one row with model k: change ``state.w[k]``, ``state.memory`` and ``state.tally``."""

    @abstractmethod
    def run(self, state: State, block: Block) -> None:
        """``step``, scores and averaging for the rows of a block and all models."""

    def run_rows(self, state: State, model: LazyModel, block: Block) -> None:
        """``run`` for CSR rows, at the cost of their entries; a rule may go without."""
        raise NotImplementedError(f"{type(self).__name__} learns dense rows")

    def rates(self, state: State, average: Average, t: Array, eta: Array) -> Array:
        """Averaging rates rho_t of rows t; called once for each row, in order."""
        return averaging_rate(average, t)

    @property
    def forgets(self) -> bool:
        """Whether its statistics are of all rows so far, so that there is something to ``forget``."""
        return False

    # Not abstract: a rule without statistics of the past has nothing to forget.
    def forget(self, kept: Any, keep: float) -> None:  # noqa: B027
        """Let the rows so far count ``keep`` times as much in the statistics."""

    @property
    def needs_all_rows(self) -> bool:
        """Whether ``prepare`` looks at all rows before the first step: then there is no learning row by row."""
        return False

    def prepare(self, state: State, rows: Any) -> None:
        """Look at all rows, if ``needs_all_rows``: ``rows()`` gives blocks (Z, y (n, targets), weight)."""
        raise NotImplementedError(f"{type(self).__name__} learns row by row")


@dataclass(frozen=True, kw_only=True)
class RuleLearner(Mapped):
    """A model <w, phi(x)> learned by a :class:`Rule`, one example at a time, in one pass.

    A weight scales the step and the example's share of the statistics. Parameters as in :class:`~pairloom.Learner`.
    """

    large_products: ClassVar[bool] = False

    rule: Rule
    pairs: OppositeClass = field(default_factory=OppositeClass)
    penalty: Penalty = field(default_factory=L2)

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_growing(self.features, type(self).__name__)
        self.penalty.check(self.step.eta)

    @property
    def n_vectors(self) -> int:
        return len(self.pairs.targets)

    @property
    def needs_data(self) -> bool:
        return self.features.needs_data

    def init(self, n_features: int, first: Batch | None) -> State:
        dim = self.features.n_outputs(n_features)
        warm = self.warm(first) if self.rule.needs_all_rows else first
        state = self.begin(n_features, warm, lambda phi, rows: self.rule.start(dim, self.n_vectors))
        if first is not None and self.rule.needs_all_rows:
            blocks = cut(self, state, first[self.features.growers(state.phi) :])
            self.rule.prepare(
                state, lambda: ((self.features.dense(state.phi, b.X), self.pairs.signs(b.y), b.weight) for b in blocks)
            )
        return state

    def run(self, state: State, batch: Batch) -> Scored:
        return self.learn(state, batch)

    def coef(self, state: State) -> Array:
        """The output iterate, one row per target of the pairs."""
        return state.w if self.average == "last" else state.w_bar

    def score(self, state: State, X: Any) -> Array:
        """<w, phi(x)> of each row, with the output iterate."""
        return linear_scores(self.features, state, self.coef(state), X)

    def next_row(self, state: State) -> int:
        return NEVER

    def check_room(self, state: State | None, n: int) -> None:
        """There is room for every row."""

    def trouble(self, state: State, told: float) -> Trouble | None:
        return self.stable(state, told)

    @property
    def forgets(self) -> bool:
        return self.rule.forgets or self.average != "last" or not self.step.steady

    def forget(self, state: State, keep: float) -> None:
        state.forget(keep)
        self.rule.forget(state.memory, keep)


def cut(model: RuleLearner, state: State, batch: Batch) -> list[Batch]:
    """Rows that are mapped together."""
    rows = max(8, BLOCK_BYTES // max(state.w[0].nbytes, 8 * model.rule.draws))
    return [batch[start : start + rows] for start in range(0, len(batch), rows)]


def make_block(model: RuleLearner, state: State, batch: Batch, Z: Any) -> Block:
    """The next rows, with all that a step needs to know; the state counts them."""
    n = len(batch)
    t = state.ages(n)
    eta = model.step.at(t) * np.minimum(batch.weight, HEAVY)
    keep, rate, threshold = model.penalty.at(eta)
    rho = model.rule.rates(state, model.average, t, eta)
    state.t += n
    return Block(
        Z, model.pairs.signs(batch.y), batch.weight, eta, np.array([np.maximum(keep, 0.0), rate, threshold]),
        model.penalty.bound, rho, model.average != "last",
        state.rng.random((n, model.rule.draws)), np.empty((n, len(state.w))),
    )  # fmt: skip


@dataclass(frozen=True)
class RowByRow:
    """The specification: one row and one target at a time, in float64."""

    double: ClassVar[bool] = True
    any_part: ClassVar[bool] = True

    def takes(self, model: RuleLearner, state: State, batch: Batch) -> bool:
        return True

    def run(self, model: RuleLearner, state: State, batch: Batch) -> Array:
        return np.array([self.step(model, state, batch[i : i + 1]) for i in range(len(batch))])

    def step(self, model: RuleLearner, state: State, one: Batch) -> Array:
        """Learn one row."""
        block = make_block(model, state, one, model.features.dense(state.phi, one.X))
        z = block.Z[0]
        scores = (state.w_bar if block.averaging else state.w) @ z
        before = state.w.copy()
        for k in range(len(state.w)):
            keep, rate, threshold = block.steps[:, 0].tolist()
            row = Row(z, block.y[0, k], block.weight[0], block.eta[0], keep, rate, threshold, block.draws[0])
            model.rule.step(state, k, row, model.penalty)
        state.w_bar += block.rho[0] * ((before if model.rule.averages_before else state.w) - state.w_bar)
        return np.asarray(scores)


@dataclass(frozen=True)
class ByEntries:
    """CSR rows, at the cost of their entries; the dense arrays of the state are up to date at the end of a call."""

    double: ClassVar[bool] = False
    any_part: ClassVar[bool] = False

    def takes(self, model: RuleLearner, state: State, batch: Batch) -> bool:
        """CSR points that nothing makes dense. Centring would, and these rules, unlike pairs, see it."""
        linear = model.features.keeps_csr and not center_of(state).size and (is_sparse(batch.X) or state.csr)
        return model.rule.takes_csr and (model.features.sparse or linear)

    def run(self, model: RuleLearner, state: State, batch: Batch) -> Array:
        features = model.features
        state.csr = not features.sparse
        lazy = lazy_model(state, model.average != "last")
        Z = features.rows(state.phi, batch.X) if features.sparse else Rows.of(features.inputs(state.phi, csr(batch.X)))
        block = make_block(model, state, batch, (Z.data, Z.indices, Z.indptr))
        model.rule.run_rows(state, lazy, block)
        state.w[:] = lazy.factors[:, [SIGMA]] * lazy.w_hat
        if block.averaging:
            state.w_bar[:] = lazy.factors[:, [A]] * lazy.w_hat + lazy.factors[:, [B]] * lazy.u_hat
        return block.scores


@dataclass(frozen=True)
class InBlocks:
    """Blocks of dense rows, mapped together and learned by a compiled loop."""

    double: ClassVar[bool] = False
    any_part: ClassVar[bool] = False

    def takes(self, model: RuleLearner, state: State, batch: Batch) -> bool:
        return True

    def run(self, model: RuleLearner, state: State, batch: Batch) -> Array:
        scores = []
        for part in cut(model, state, batch):
            block = make_block(model, state, part, model.features.dense(state.phi, part.X))
            model.rule.run(state, block)
            scores.append(block.scores)
        return np.concatenate(scores)


RuleLearner.engines = {"reference": (RowByRow(),), "fused": (ByEntries(), InBlocks())}


def lazy_model(state: State, averaging: bool) -> LazyModel:
    """w = sigma w_hat, w_bar = a w_hat + b u_hat, made from the dense arrays on the first CSR rows."""
    if state.lazy is None:
        w = state.w.astype(float)
        factors = np.zeros((len(w), 6))
        factors[:, SIGMA] = factors[:, B] = 1.0
        factors[:, SQUARE] = np.square(w).sum(axis=1)
        none = np.zeros((0, 1), np.int32)
        state.lazy = LazyModel(
            w, (state.w_bar if averaging else state.w[:, :0]).astype(float), factors,
            none, none.astype(state.w.dtype), np.zeros(0, np.int64), np.zeros(0, bool),
        )  # fmt: skip
    return state.lazy


def descend(w: Array, v: Array, row: Row, rate: float, bound: float) -> Array:
    """The specification of a step: project(soft(keep w - rate v, threshold))."""
    return limited(row.keep * w - rate * v, row.threshold, bound)
