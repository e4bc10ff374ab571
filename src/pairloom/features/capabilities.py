"""Capabilities of feature maps. A map inherits from the class of each of its capabilities."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.compact import Form
from pairloom.base.csr import CSRRows
from pairloom.base.graph import HasGraph, Value, is_current, no_graph
from pairloom.base.merging import RowCounts, cannot_merge
from pairloom.base.spec import Size
from pairloom.base.tree import OPTIONAL, node
from pairloom.base.typing import Array
from pairloom.features.base import FeatureMap
from pairloom.features.contributions import Explainable


@dataclass(frozen=True)
class Change(ABC):
    """The new state ``phi`` of a map, and its weights: arrays (targets, D, models), possibly modified in place."""

    phi: Any

    @abstractmethod
    def weights(self, w: Array) -> Array:
        """Return the weights for the new map."""

    @abstractmethod
    def squares(self, squares: Array) -> Array:
        """Return the sums of squared gradients of these weights."""


class GrowingMap(FeatureMap):
    """A map that changes during the stream: after certain row numbers, by ``change``."""

    @property
    def growing(self) -> "GrowingMap | None":
        return self

    @abstractmethod
    def next_change(self, state: Any, t: int) -> int:
        """Return the first row, not before row t, after which the map changes."""

    @abstractmethod
    def change(self, state: Any, t: int, targets: Array, exact: bool = False) -> Change:
        """Return the change after row t; ``targets`` and ``exact`` as in ``LabelledMap.first_weights``."""

    def merge(
        self, base: Any, parts: list[Any], rows: RowCounts, targets: Array, exact: bool = False
    ) -> tuple[Any, list[Change]]:
        """Return the map of a base after all changes due by its new row, on rows that the parts stored; and these.

        TypeError if maps cannot be merged; ValueError, naming the part, if it has changed since it was copied.
        """
        raise cannot_merge(str(self), "each part would grow features of its own")

    # Not abstract: few maps use past rows.
    def remember(self, state: Any, batch: Batch, scores: Array) -> None:
        """Store learned rows and the scores (rows, targets) that they had on arrival."""


def check_not_growing(features: FeatureMap, who: str) -> None:
    """Raise ValueError if ``features`` grow; for models that need a fixed feature space."""
    if features.growing is not None:
        raise ValueError(
            f"{who} needs features that stay as they are; got {features}. Features that grow are for Learner, FPOGD, "
            "OGD, OLP, OAM, PairwiseRanker and PairwiseRegressor"
        )


class SparseMap(FeatureMap):
    """A map to CSR rows: phi(x) is 1 / sqrt(m) in m of its coordinates, its cells, and 0 in all others.

    The weights are the only dense vectors of length D in an engine.
    """

    @property
    def sparse(self) -> "SparseMap | None":
        return self

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """Number m of nonzero coordinates of a row."""

    @abstractmethod
    def cells(self, state: Any, X: Any) -> Array:
        """Return the nonzero coordinates of phi(X), in order: (rows, m)."""

    @abstractmethod
    def rows(self, state: Any, X: Any) -> CSRRows:
        """Return phi(X) for compiled code, with the entries of each row sorted by column."""

    def apply(self, state: Any, X: Any) -> Any:
        from scipy.sparse import csr_array

        rows = self.rows(state, X)
        return csr_array((rows.data, rows.indices, rows.indptr), shape=(len(rows), self.n_outputs(X.shape[1])))


class LabelledMap(FeatureMap):
    """A map that is fixed with the labels of the first rows, which may also give initial weights."""

    @property
    def labelled(self) -> "LabelledMap | None":
        return self

    @abstractmethod
    def fix_on(self, n_features: int, first: Batch, rng: np.random.Generator) -> Any:
        """Return the state, as ``fix`` does, given the labels and weights of the first rows as well."""

    @abstractmethod
    def rows_used_to_grow(self, state: Any) -> int:
        """Return how many of the first rows fixed the map with their labels. A model must not learn them again."""

    @abstractmethod
    def first_weights(self, state: Any, first: Batch, targets: Array, exact: bool = False) -> Array | None:
        """Return initial weights (targets, D) derived from the labels; None for zeros.

        ``targets``: the classes that have a model, empty for real labels; ``exact``: differences of scores estimate
        differences of labels.
        """


def fix_features(features: FeatureMap, n_features: int, first: Batch | None, rng: np.random.Generator) -> Any:
    """Return the state of a map, given the first rows and, if the map uses them, their labels."""
    labelled = features.labelled
    if labelled is None or first is None:
        return features.fix(n_features, None if first is None else first.X, rng)
    return labelled.fix_on(n_features, first, rng)


def rows_used_to_grow(features: FeatureMap, state: Any) -> int:
    """Return how many of the first rows fixed the map with their labels; 0 for a map without labels."""
    labelled = features.labelled
    return 0 if labelled is None else labelled.rows_used_to_grow(state)


class Cost(NamedTuple):
    """The approximate cost of a map: floating-point operations per row, and numbers in the arrays of its state.

    A sine counts as 50 operations, an exponential as 20. The cost of cell lookups and of growing is included.
    """

    flops: float
    numbers: int


class FrozenShare(NamedTuple):
    """The first fields of a :class:`FrozenSum`."""

    name: str
    weight: float
    offset: Array


@node
class FrozenSum(HasGraph, ABC):
    """A candidate of a race that only predicts, with a copy of all its arrays.

    ``weight``: the weight of the candidate in the mixture; ``offset`` (classes,): the constant part of its score;
    ``form``: the form in which it reads mixed columns.
    """

    graph_forms: ClassVar[Mapping[str, str]] = {"add": "to_onnx"}

    name: str
    weight: Size
    offset: Annotated[Array, "f8 v"]
    form: Form = field(default="numbers", kw_only=True, metadata=OPTIONAL)

    @abstractmethod
    def add(self, X: Array, out: Array) -> None:
        """Add the scores of dense rows, without the offset, to ``out`` (rows, classes)."""

    @property
    def explainable(self) -> Explainable | None:
        """The sum, if it can compute the contributions of columns."""
        return None

    def to_onnx(self, x: Value) -> Value:
        """Return the scores of ``add`` in an ONNX graph: f8."""
        return no_graph(self)


class LinearSum(Protocol):
    """The sum over models m of slopes_m <w_m, phi(x)>, in arrays shared with the map and its models.

    It may have a property ``explainable``, as a :class:`FrozenSum` has.
    """

    def add(self, X: Array, out: Array) -> None:
        """Add the sum for each dense row to ``out`` (rows, classes)."""

    def frozen(self, share: FrozenShare) -> FrozenSum:
        """Return the same sum with a copy of all arrays."""


def explainable_of(total: LinearSum | None) -> Explainable | None:
    """Return a sum, if it can compute the contributions of columns; None otherwise."""
    found: Explainable | None = getattr(total, "explainable", None)
    return found


def summed_weights(w: Array, slopes: Array) -> Array:
    """Return one weight for each feature and class (D, classes), summed over models: ``w`` (models, classes, D)."""
    return np.asarray(np.einsum("rk,rkd->dk", slopes, w.astype(float)))


class RacingMap(FeatureMap):
    """A map with a custom cost, a smaller version, or a single loop for the sum of several models."""

    @property
    def racing(self) -> "RacingMap | None":
        return self

    def cost(self, n_features: int) -> Cost:
        """Return the cost, by default that of a product with a matrix (d, D)."""
        return product_cost(self, n_features)

    def halved(self) -> FeatureMap | None:
        """Return a map of the same kind and half the size; None if it has no size or is already small."""
        return None

    def linear_sum(self, state: Any, w: Array, slopes: Array) -> LinearSum | None:
        """Return the sum over models m of slopes_m <w_m, phi(x)> as one loop; None if the map has no such loop.

        ``w`` (models, classes, D) and ``slopes`` (models, classes). Without a loop, scores are computed from ``apply``,
        and a race over this map cannot be frozen.
        """
        return None


def scores_onnx(features: FeatureMap, state: Any, coef: Array, x: Value) -> Value:
    """Return <w, phi(x)> of each row w of ``coef`` in an ONNX graph: (rows, weights), f8."""
    racing, total = features.racing, None
    if racing is not None and is_current(racing, "linear_sum", "apply"):
        total = racing.linear_sum(state, coef[None], np.ones((1, len(coef))))
    if total is not None:
        return total.frozen(FrozenShare("", 1.0, np.zeros(len(coef)))).to_onnx(x)
    return features.to_onnx(state, x).to("f8") @ coef.T


def cost_of(features: FeatureMap, n_features: int) -> Cost:
    """Return the cost of any map; by default that of a product with a matrix."""
    racing = features.racing
    return product_cost(features, n_features) if racing is None else racing.cost(n_features)


def product_cost(features: FeatureMap, n_features: int) -> Cost:
    """Return the cost of a product with a matrix (d, D)."""
    numbers = n_features * features.n_outputs(n_features)
    return Cost(2.0 * numbers, numbers)
