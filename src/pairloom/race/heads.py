"""Heads: the models that a candidate trains on its feature map."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from pairloom.base.checks import check_choice, check_count, check_number, check_numbers
from pairloom.base.compact import Form
from pairloom.engines.base import Engine, EngineName
from pairloom.features import FeatureMap
from pairloom.losses import LOSSES
from pairloom.memory import Latest, Strata
from pairloom.memory.base import Space
from pairloom.memory.strata import Representative
from pairloom.models.base import Dtype, Many
from pairloom.models.boosting import Boosting
from pairloom.models.boosting_growth import MIN_COLUMNS
from pairloom.models.class_moments import BLOCK_ROWS
from pairloom.models.exact import LARGE_DIM, ExactPath
from pairloom.models.grid import Grid
from pairloom.models.learner import Learner
from pairloom.models.step_path import StepPath
from pairloom.pairs import OppositeClass
from pairloom.steps import L2, AdaGrad, Constant

STEP_FLOPS, PARTNER_FLOPS = 130.0, 16.0
"""Cost of a gradient step per feature, and that of each partner; measured at D = 8,192."""

SOLUTION_FLOPS, SOLUTION_ROWS_SMALL, SOLUTION_ROWS_LARGE = 1.5e7, 64, 1024
"""Cost of a solution besides 4 D^3, and the minimum rows between two solutions in small and in large spaces."""

CELL_FLOPS = 2000.0
"""Cost of a step of several models, per cell and row of a pair."""

BOOSTING_ROWS = 100
"""Rows of the rarest class from which boosting has the same prior weight as other candidates."""

BOOSTING_FLOPS, TRIED_FLOPS, BIN_FLOPS = 1.7e6, 6e4, 1e4
"""Cost of boosting per row: a constant, and terms per column that trees try and per column."""


class Head(ABC):
    """Base class of heads, which make the models of a candidate and estimate their cost."""

    @property
    @abstractmethod
    def n_models(self) -> int:
        """Number of models per target."""

    @property
    def form(self) -> Form | None:
        """The form in which its models receive mixed columns; None: that of the feature map."""
        return None

    @property
    def needs_data(self) -> bool:
        """Whether its models have data-dependent settings in addition to those of the map."""
        return False

    def prior(self, rare: float) -> float:
        """Return the prior weight in the mixture, given the rows of the rarest class on which models are compared."""
        return 1.0

    @abstractmethod
    def learner(
        self, features: FeatureMap, pairs: OppositeClass, *, dtype: Dtype, seed: int | None, **rest: Any
    ) -> Many:
        """Return the models, ``n_models`` per target.

        ``rest``: ``since``, the row before which no score is needed; ``max_bytes`` of the state; and ``engine``.
        """

    @abstractmethod
    def flops(self, features: FeatureMap, n_features: int) -> float:
        """Return the approximate flops per row, besides those of the map."""

    @abstractmethod
    def nbytes(self, features: FeatureMap, n_features: int, n_classes: int, itemsize: int) -> int:
        """Return the approximate bytes of the models, for a dtype of ``itemsize`` bytes."""


@dataclass(frozen=True)
class Exact(Head):
    """All-pairs minimisers of the square loss, one for each penalty ``alphas`` in units of trace(G) / t."""

    alphas: tuple[float, ...] = (1.0, 16.0)

    def __post_init__(self) -> None:
        check_numbers("alphas", self.alphas, 0)
        if not self.alphas:
            raise ValueError("alphas must not be empty")

    @property
    def n_models(self) -> int:
        return len(self.alphas)

    def learner(self, features: FeatureMap, pairs: OppositeClass, **rest: Any) -> ExactPath:
        return ExactPath(features=features, pairs=pairs, alphas=self.alphas, **rest)

    def flops(self, features: FeatureMap, n_features: int) -> float:
        """Moments in float64, and solutions, spread over the rows between them."""
        D = features.n_outputs(n_features)
        rows = SOLUTION_ROWS_SMALL if D <= LARGE_DIM else SOLUTION_ROWS_LARGE
        return 4.0 * D**2 + self.n_models * (SOLUTION_FLOPS + 4.0 * D**3) / rows

    def nbytes(self, features: FeatureMap, n_features: int, n_classes: int, itemsize: int) -> int:
        """Moments in float64; the open block and the weights in ``dtype``."""
        D = features.n_outputs(n_features)
        weights = 2 * n_targets(n_classes) * self.n_models * D
        return 8 * n_classes * D * (D + 1) + itemsize * (BLOCK_ROWS * D + weights)


@dataclass(frozen=True)
class Steps(Head):
    """AdaGrad over a map of cells, against the newest rows of the other class, one model per eta."""

    etas: tuple[float, ...] = (0.01, 0.05, 0.3)
    loss: str = "squared_hinge"
    partners: int = 4

    def __post_init__(self) -> None:
        check_numbers("etas", self.etas, 0, open_low=True)
        if not self.etas:
            raise ValueError("etas must not be empty")
        check_choice("loss", self.loss, LOSSES)
        check_count("partners", self.partners)

    @property
    def n_models(self) -> int:
        return len(self.etas)

    def learner(
        self, features: FeatureMap, pairs: OppositeClass, *, dtype: Dtype, seed: int | None, **rest: Any
    ) -> StepPath:
        loss, memory, step = LOSSES[self.loss], Latest(size=self.partners), AdaGrad(self.etas[0])
        return StepPath(Learner(features, pairs, loss, memory, step=step, dtype=dtype, seed=seed), self.etas)

    def flops(self, features: FeatureMap, n_features: int) -> float:
        return CELL_FLOPS * (1 + self.partners) * n_cells(features)

    def nbytes(self, features: FeatureMap, n_features: int, n_classes: int, itemsize: int) -> int:
        """Weights, sums of squares and partners."""
        weights = 2 * n_targets(n_classes) * self.n_models * features.n_outputs(n_features)
        return itemsize * (weights + n_classes * self.partners * (n_features + n_cells(features)))


@dataclass(frozen=True)
class Boosted(Head):
    """Gradient boosting (:class:`~pairloom.models.Boosting`) on the columns as they are; it needs no feature map.

    Parameters
    ----------
    n_trees : trees of a generation, for each class.
    max_leaves : maximum number of leaves.
    n_rows : newest rows kept.
    """

    n_trees: int = 100
    max_leaves: int = 31
    n_rows: int = 16_384

    def __post_init__(self) -> None:
        Boosting(n_trees=self.n_trees, max_leaves=self.max_leaves, n_rows=self.n_rows, seed=0)  # checks them

    @property
    def n_models(self) -> int:
        return 1

    @property
    def form(self) -> Form:
        return "codes"

    def prior(self, rare: float) -> float:
        """The full weight only with enough rows: until then, simpler models are safer."""
        return min(1.0, (1.0 + rare) / BOOSTING_ROWS)

    def learner(
        self, features: FeatureMap, pairs: OppositeClass, *, dtype: Dtype, seed: int | None,
        engine: EngineName | Engine = "auto", **rest: Any,
    ) -> Boosting:  # fmt: skip
        return Boosting(
            pairs=pairs, n_trees=self.n_trees, max_leaves=self.max_leaves, n_rows=self.n_rows, dtype=dtype, seed=seed,
            engine=engine,
        )  # fmt: skip

    def flops(self, features: FeatureMap, n_features: int) -> float:
        return BOOSTING_FLOPS + TRIED_FLOPS * min(n_features, MIN_COLUMNS) + BIN_FLOPS * n_features

    def nbytes(self, features: FeatureMap, n_features: int, n_classes: int, itemsize: int) -> int:
        """The ring and its bins; the nodes of three generations."""
        nodes = 3 * n_targets(n_classes) * self.n_trees * 2 * self.max_leaves
        return self.n_rows * ((itemsize + 1) * n_features + 8 * (3 + n_targets(n_classes))) + 32 * nodes


@dataclass(frozen=True)
class Descent(Head):
    """Averaged gradient descent against strata of the other class: a grid of ``steps`` (loss, eta) and penalties."""

    representative: Representative = "centroid"
    steps: tuple[tuple[str, float], ...] = field(
        default=(
            ("square", 0.05), ("square", 0.15), ("square", 0.5), ("logistic", 0.5), ("logistic", 2.0), ("logistic", 8.0)
        )
    )  # fmt: skip
    penalties: tuple[float, ...] = (1e-6,)
    max_strata: int = 2
    cluster_in: Space = "features"
    block_rows: int = 16

    def __post_init__(self) -> None:
        if not isinstance(self.steps, tuple) or not self.steps:
            raise ValueError(f"steps must be pairs (loss, eta), such as (('square', 0.1),); got {self.steps!r}")
        for step in self.steps:
            if not isinstance(step, tuple) or len(step) != 2:
                raise ValueError(f"each of steps must be a loss and an eta, such as ('square', 0.1); got {step!r}")
            check_choice("the loss of a step", step[0], LOSSES)
            check_number("the eta of a step", step[1], 0, open_low=True)
        check_numbers("penalties", self.penalties, 0)
        check_choice("representative", self.representative, Representative)
        check_choice("cluster_in", self.cluster_in, Space)
        check_count("max_strata", self.max_strata)
        check_count("block_rows", self.block_rows)
        if 16 % self.block_rows:
            raise ValueError(f"block_rows must divide 16, the row of the first evaluation; got {self.block_rows}")

    @property
    def n_models(self) -> int:
        return len(self.steps) * len(self.penalties)

    @property
    def needs_data(self) -> bool:
        return True  # the radius of strata

    def learner(
        self, features: FeatureMap, pairs: OppositeClass, *, dtype: Dtype, seed: int | None, **rest: Any
    ) -> Grid:
        """Return the models, which share one memory."""
        memory = Strata(max_strata=self.max_strata, representative=self.representative, cluster_in=self.cluster_in)
        same: dict[str, Any] = {"average": "poly", "dtype": dtype, "seed": seed}
        learners = [
            Learner(features, pairs, LOSSES[loss], memory, L2(alpha), step=Constant(eta), **same)
            for (loss, eta), alpha in product(self.steps, self.penalties)
        ]
        return Grid(learners, self.block_rows)

    def flops(self, features: FeatureMap, n_features: int) -> float:
        return (STEP_FLOPS + PARTNER_FLOPS * self.max_strata) * features.n_outputs(n_features) * (1 + self.n_models / 4)

    def nbytes(self, features: FeatureMap, n_features: int, n_classes: int, itemsize: int) -> int:
        """Slots, centres and weights; not the rows of the open block, which are often CSR."""
        D, strata = features.n_outputs(n_features), n_classes * self.max_strata
        centers = D if self.cluster_in == "features" else n_features
        weights = 2 * n_targets(n_classes) * self.n_models * D
        return itemsize * (strata * (D + centers) + weights)


def n_cells(features: FeatureMap) -> int:
    """Return the cells of a row; 0 for a map without cells."""
    return 0 if features.sparse is None else features.sparse.n_cells


def n_targets(n_classes: int) -> int:
    """Return the number of targets: 1 for two classes, otherwise one per class."""
    return 1 if n_classes == 2 else n_classes
