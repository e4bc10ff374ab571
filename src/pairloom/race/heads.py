"""What learns on a feature map in a race: many models that share the map."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from pairloom.base.checks import check_choice, check_count, check_number, check_numbers
from pairloom.features import FeatureMap
from pairloom.losses import LOSSES
from pairloom.memory import Latest, Strata
from pairloom.memory.base import Space
from pairloom.memory.strata import Representative
from pairloom.models.base import Dtype
from pairloom.models.exact import ROWS
from pairloom.models.exact_path import MANY, ExactPath
from pairloom.models.grid import Grid
from pairloom.models.learner import Learner
from pairloom.models.path import StepPath
from pairloom.pairs import OppositeClass
from pairloom.steps import L2, AdaGrad, Constant

STEP, SWEEP = 130.0, 16.0
"""What a feature costs a gradient step, and for each partner besides, in flops of a product: measured, at D = 8,192."""

SOLUTION, SMALL_APART, LARGE_APART = 1.5e7, 64, 1024
"""What a solution costs besides 4 D^3, and the least rows between two of them while spaces are small, and later."""

CELL = 2000.0
"""What a cell costs a step of several models, for each of the rows of a pair."""


class Head(ABC):
    """What learns on a map: a rule that makes models, and knows what they cost."""

    @property
    @abstractmethod
    def n_models(self) -> int:
        """For each class that has models."""

    @property
    def needs_data(self) -> bool:
        """Whether its models have rules on data, besides those of the map; a race fixes them again."""
        return False

    @abstractmethod
    def learner(
        self, features: FeatureMap, pairs: OppositeClass, *, dtype: Dtype, seed: int | None, **rest: Any
    ) -> Any:
        """A model that is :class:`~pairloom.models.many.Many`: of each class ``n_models``.

        ``rest``: ``since``, the row before which no score is needed; ``max_bytes`` of its state; and ``engine``.
        """

    @abstractmethod
    def flops(self, features: FeatureMap, n_features: int) -> float:
        """Floating-point operations per row, about, besides those of the map."""

    @abstractmethod
    def nbytes(self, features: FeatureMap, n_features: int, n_classes: int, itemsize: int) -> int:
        """Bytes of the models, about, with numbers of ``itemsize`` bytes."""


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
        """For each class that has models."""
        return len(self.alphas)

    def learner(self, features: FeatureMap, pairs: OppositeClass, **rest: Any) -> ExactPath:
        return ExactPath(features=features, pairs=pairs, alphas=self.alphas, **rest)

    def flops(self, features: FeatureMap, n_features: int) -> float:
        """Per row: moments in double precision, and each solution shared out among the rows up to the next."""
        D = features.n_outputs(n_features)
        return 4.0 * D**2 + self.n_models * (SOLUTION + 4.0 * D**3) / (SMALL_APART if D <= MANY else LARGE_APART)

    def nbytes(self, features: FeatureMap, n_features: int, n_classes: int, itemsize: int) -> int:
        """Moments, in double precision; the open block and weights, in numbers of ``itemsize`` bytes."""
        D = features.n_outputs(n_features)
        weights = 2 * n_targets(n_classes) * self.n_models * D
        return 8 * n_classes * D * (D + 1) + itemsize * (ROWS * D + weights)


@dataclass(frozen=True)
class Steps(Head):
    """Gradient steps per coordinate over a map of cells, against the newest rows of the other class, for each eta."""

    etas: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3)
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
        """For each class that has models."""
        return len(self.etas)

    def learner(
        self, features: FeatureMap, pairs: OppositeClass, *, dtype: Dtype, seed: int | None, **rest: Any
    ) -> StepPath:
        loss, memory, step = LOSSES[self.loss], Latest(size=self.partners), AdaGrad(self.etas[0])
        return StepPath(Learner(features, pairs, loss, memory, step=step, dtype=dtype, seed=seed), self.etas)

    def flops(self, features: FeatureMap, n_features: int) -> float:
        return CELL * (1 + self.partners) * features.n_cells

    def nbytes(self, features: FeatureMap, n_features: int, n_classes: int, itemsize: int) -> int:
        """Weights and sums of squares, and the partners."""
        weights = 2 * n_targets(n_classes) * self.n_models * features.n_outputs(n_features)
        return itemsize * (weights + n_classes * self.partners * (n_features + features.n_cells))


@dataclass(frozen=True)
class Descent(Head):
    """Gradient steps against strata of the other class, averaged: ``steps`` (loss, eta) times penalties on one grid."""

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
            raise ValueError(f"block_rows must divide 16, where a race first looks at scores; got {self.block_rows}")

    @property
    def n_models(self) -> int:
        """For each class that has models."""
        return len(self.steps) * len(self.penalties)

    @property
    def needs_data(self) -> bool:
        """Yes: strata have a radius."""
        return True

    def learner(
        self, features: FeatureMap, pairs: OppositeClass, *, dtype: Dtype, seed: int | None, **rest: Any
    ) -> Grid:
        """The models, which share a memory of their own."""
        memory = Strata(max_strata=self.max_strata, representative=self.representative, cluster_in=self.cluster_in)
        same: dict[str, Any] = {"average": "poly", "dtype": dtype, "seed": seed}
        learners = [
            Learner(features, pairs, LOSSES[loss], memory, L2(alpha), step=Constant(eta), **same)
            for (loss, eta), alpha in product(self.steps, self.penalties)
        ]
        return Grid(learners, self.block_rows)

    def flops(self, features: FeatureMap, n_features: int) -> float:
        return (STEP + SWEEP * self.max_strata) * features.n_outputs(n_features) * (1 + self.n_models / 4)

    def nbytes(self, features: FeatureMap, n_features: int, n_classes: int, itemsize: int) -> int:
        """Slots, centres and weights, in numbers of ``itemsize`` bytes; not the rows of the open block, often CSR."""
        D, strata = features.n_outputs(n_features), n_classes * self.max_strata
        centers = D if self.cluster_in == "features" else n_features
        weights = 2 * n_targets(n_classes) * self.n_models * D
        return itemsize * (strata * (D + centers) + weights)


def n_targets(n_classes: int) -> int:
    """Classes that have models: of two classes one speaks for both."""
    return 1 if n_classes == 2 else n_classes
