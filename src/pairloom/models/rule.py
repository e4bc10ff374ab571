"""Learners that keep statistics of past rows instead of examples."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.capabilities import Forgets
from pairloom.base.csr import CSRRows, is_sparse, to_csr
from pairloom.base.graph import Value
from pairloom.base.merging import MergesSums, cannot_merge
from pairloom.base.spec import StateSpec, return_type
from pairloom.base.typing import Array
from pairloom.engines import sparse
from pairloom.engines.base import cache_blocks
from pairloom.engines.reference import MAX_WEIGHT, threshold_and_project
from pairloom.engines.state import LazyModel, State
from pairloom.features.base import dense_features
from pairloom.features.capabilities import check_not_growing, rows_used_to_grow, scores_onnx
from pairloom.features.contributions import Explainable
from pairloom.models.mapped import InBlocks, Mapped, RowByRow, explainable_scores, linear_scores
from pairloom.models.merging import at_pace, merge_states, row_counts
from pairloom.pairs import OppositeClass
from pairloom.steps import L2, Average, Penalty
from pairloom.steps.schedules import averaging_rate


@dataclass(frozen=True)
class Row:
    """One mapped example for one model: y is +1 or -1, ``eta`` the step times the weight.

    (keep, rate, threshold): the penalty's step; ``draws``: uniform random numbers.
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
    """Many rows for a compiled loop, passed as a plain tuple; fields as in :class:`Row`.

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
    """The update of a system by a mapped example, given statistics of earlier examples.

    It is written twice: ``step`` is the specification, one example and one model at a time, in NumPy and float64;
    ``run`` is the same for a block of rows, compiled. Statistics are a dataclass of arrays in ``state.memory``, float64
    for sums over the stream. With more than two classes there is one model for each class against the rest, and the
    first axis of arrays is over models. Optional features are capabilities (``CSRRule``, ``PreparedRule``): properties
    that are None, or the rule itself.
    """

    averages_before: ClassVar[bool] = False
    """Whether the output averages the iterates before the steps, not those after them."""

    @property
    def draws(self) -> int:
        """Number of uniform random numbers per example."""
        return 0

    @abstractmethod
    def start(self, dim: int, n_models: int) -> Any:
        """Return the empty statistics; raise ValueError if they would be too large."""

    def state_spec(self, dim: int) -> StateSpec:
        """Return the specification of the statistics, for rows of ``dim`` features."""
        return StateSpec(return_type(type(self).start))

    @abstractmethod
    def step(self, state: State, k: int, row: Row, penalty: Penalty) -> None:
        """Learn one row with model k: change ``state.w[k]``, ``state.memory`` and ``state.tally``."""

    @abstractmethod
    def run(self, state: State, block: Block) -> None:
        """Compute scores, apply ``step`` and average the iterates, for the rows of a block and all models."""

    def rates(self, state: State, average: Average, t: Array, eta: Array) -> Array:
        """Return averaging rates rho_t of rows t; called once for each row, in order."""
        return averaging_rate(average, t)

    @property
    def csr(self) -> "CSRRule | None":
        """The rule, if it learns CSR rows at a cost linear in their entries; otherwise they become dense in blocks."""
        return None

    @property
    def prepared(self) -> "PreparedRule | None":
        """The rule, if it needs all rows before the first step: it cannot learn row by row."""
        return None

    @property
    def forgetting(self) -> Forgets | None:
        """The rule, if its statistics are of all rows so far."""
        return None

    @property
    def merging(self) -> MergesSums | None:
        """The rule, if the statistics of several parts can be merged."""
        return None


class CSRRule(Rule):
    """A rule that learns CSR rows at a cost linear in their entries."""

    @property
    def csr(self) -> "CSRRule | None":
        return self

    @abstractmethod
    def run_rows(self, state: State, model: LazyModel, block: Block) -> None:
        """Do the same as ``run`` for CSR rows."""


class PreparedRule(Rule):
    """A rule that needs all rows before the first step."""

    @property
    def prepared(self) -> "PreparedRule | None":
        return self

    @abstractmethod
    def prepare(self, state: State, rows: Any) -> None:
        """Prepare with all rows: ``rows()`` yields blocks (Z, y (n, targets), weight)."""


@dataclass(frozen=True, kw_only=True)
class RuleLearner(Mapped):
    """A model <w, phi(x)> learned by a :class:`Rule`, one example at a time, in one pass.

    A weight scales the step and the example's share of the statistics. Parameters as in :class:`~pairloom.Learner`.
    """

    rule: Rule
    pairs: OppositeClass = field(default_factory=OppositeClass)
    penalty: Penalty = field(default_factory=L2)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_growing(self.features, type(self).__name__)
        self.penalty.check(self.step.eta)

    def init(self, n_features: int, first: Batch | None) -> State:
        dim = self.features.n_outputs(n_features)
        prepared = self.rule.prepared
        warm = first if prepared is None else self.warm(first)
        state = self.begin(n_features, warm, lambda phi, rows: self.rule.start(dim, self.n_vectors))
        if first is not None and prepared is not None:
            rest = first[rows_used_to_grow(self.features, state.phi) :]
            blocks = [rest[rows] for rows in self.blocks(state, rest.X)]
            prepared.prepare(
                state,
                lambda: (
                    (dense_features(self.features, state.phi, b.X), self.pairs.signs(b.y), b.weight) for b in blocks
                ),
            )
        return state

    def run(self, state: State, batch: Batch) -> Scored:
        scored: Scored = at_pace(self, state.pace).learn(state, batch)
        return scored

    def blocks(self, state: State, X: Any) -> list[slice]:
        """Return blocks of rows that are mapped together."""
        return cache_blocks(X.shape[0], max(state.w[0].nbytes, 8 * self.rule.draws))

    def learn_row(self, state: State, one: Batch) -> Array:
        """Learn one row by the specification, one target at a time; return its scores."""
        block = self.make_block(state, one, dense_features(self.features, state.phi, one.X))
        z = block.Z[0]
        scores = (state.w_bar if block.averaging else state.w) @ z
        before = state.w.copy()
        for k in range(len(state.w)):
            keep, rate, threshold = block.steps[:, 0].tolist()
            row = Row(z, block.y[0, k], block.weight[0], block.eta[0], keep, rate, threshold, block.draws[0])
            self.rule.step(state, k, row, self.penalty)
        state.w_bar += block.rho[0] * ((before if self.rule.averages_before else state.w) - state.w_bar)
        return np.asarray(scores)

    def learn_rows(self, state: State, batch: Batch) -> Array:
        """Learn a block of dense rows by a compiled loop; return their scores."""
        block = self.make_block(state, batch, dense_features(self.features, state.phi, batch.X))
        self.rule.run(state, block)
        return block.scores

    def make_block(self, state: State, batch: Batch, Z: Any) -> Block:
        """Return the next rows with all inputs of a step; count them in the state."""
        n = len(batch)
        t = state.ages(n)
        eta = self.step.at(t) * np.minimum(batch.weight, MAX_WEIGHT)
        keep, rate, threshold = self.penalty.at(eta)
        rho = self.rule.rates(state, self.average, t, eta)
        state.t += n
        return Block(
            Z, self.pairs.signs(batch.y), batch.weight, eta, np.array([np.maximum(keep, 0.0), rate, threshold]),
            self.penalty.bound, rho, self.average != "last",
            state.rng.random((n, self.rule.draws)), np.empty((n, len(state.w))),
        )  # fmt: skip

    def coef(self, state: State) -> Array:
        """Return the output iterate, one row per target of the pairs."""
        return state.w if self.average == "last" else state.w_bar

    def score(self, state: State, X: Any) -> Array:
        """Return <w, phi(x)> of each row, with the output iterate."""
        return linear_scores(self.features, state, self.coef(state), X)

    def explainable(self, state: State) -> Explainable | None:
        return explainable_scores(self.features, state, self.coef(state))

    def merge(self, base: State, parts: Sequence[State]) -> State:
        """Merge the statistics by the rule, and the weights by the rows of each part."""
        if self.rule.merging is None or self.rule.prepared is not None:
            raise cannot_merge(str(self.rule), "its statistics are not sums of rows")
        state = merge_states(self, base, parts)
        state.memory = self.rule.merging.merge(base.memory, [part.memory for part in parts], row_counts(base, parts))
        return state

    def to_onnx(self, state: State, x: Value) -> Value:
        return scores_onnx(self.features, state.phi, self.coef(state), x)

    def memory_spec(self, n_features: int, dim: int) -> StateSpec:
        return self.rule.state_spec(dim)

    def check_state(self, t: int, state: State) -> None:
        state.check_rows(t)
        state.check_absent(squares=True, cells=True)

    @property
    def forgetting(self) -> "RuleLearner | None":
        fades = self.rule.forgetting is not None or self.average != "last" or not self.step.steady
        return self if fades else None

    def forget(self, state: State, keep: float) -> None:
        state.forget(keep)
        if self.rule.forgetting is not None:
            self.rule.forgetting.forget(state.memory, keep)


@dataclass(frozen=True)
class ByEntries:
    """Engine for CSR rows, linear in their entries; the dense arrays are up to date at the end of a call."""

    double: ClassVar[bool] = False
    any_part: ClassVar[bool] = False

    def takes(self, model: RuleLearner, state: State, batch: Batch) -> bool:
        """Return True for CSR points that are not made dense, so without centring, on which these rules depend."""
        linear = model.features.keeps_csr and not sparse.center_of(state).size and (is_sparse(batch.X) or state.csr)
        return model.rule.csr is not None and (model.features.sparse is not None or linear)

    def run(self, model: RuleLearner, state: State, batch: Batch) -> Array:
        features, by_cells, averaging = model.features, model.features.sparse, model.average != "last"
        assert model.rule.csr is not None
        state.csr = by_cells is None
        lazy = sparse.lazy_weights(state, averaging)
        Z = (
            CSRRows.of(features.inputs(state.phi, to_csr(batch.X)))
            if by_cells is None
            else by_cells.rows(state.phi, batch.X)
        )
        block = model.make_block(state, batch, (Z.data, Z.indices, Z.indptr))
        model.rule.csr.run_rows(state, lazy, block)
        sparse.write_weights(state, lazy, averaging)
        return block.scores


RuleLearner.engines = {"reference": (RowByRow(),), "fused": (ByEntries(), InBlocks())}


def descend(w: Array, v: Array, row: Row, rate: float, bound: float) -> Array:
    """Return project(soft(keep w - rate v, threshold)), the specification of a step."""
    return threshold_and_project(row.keep * w - rate * v, row.threshold, bound)
