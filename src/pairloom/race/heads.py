"""What learns on a feature map in a race: many models that share the map."""

from dataclasses import dataclass, field
from itertools import product
from typing import Any

from pairloom.base.checks import check_choice, check_count, check_number, check_numbers
from pairloom.features import FeatureMap
from pairloom.losses import LOSSES
from pairloom.memory import Strata
from pairloom.memory.base import Space
from pairloom.memory.strata import Representative
from pairloom.models.exact import ROWS
from pairloom.models.exact_path import ExactPath
from pairloom.models.grid import Grid
from pairloom.models.learner import Learner
from pairloom.pairs import OppositeClass
from pairloom.steps import L2, Constant

STEP, SWEEP = 130.0, 16.0
"""What a feature costs a gradient step, and for each partner besides, in flops of a product: measured, at D = 8,192."""


@dataclass(frozen=True)
class Exact:
    """All-pairs minimisers of the square loss, one for each penalty ``alphas`` in units of trace(G) / t."""

    alphas: tuple[float, ...] = (0.01, 0.1, 1.0, 4.0, 16.0, 64.0)

    def __post_init__(self) -> None:
        check_numbers("alphas", self.alphas, 0)
        if not self.alphas:
            raise ValueError("alphas must not be empty")

    @property
    def n_models(self) -> int:
        """For each class that has models."""
        return len(self.alphas)

    def learner(self, features: FeatureMap, pairs: OppositeClass, max_bytes: int = 2**30, **rest: Any) -> ExactPath:
        return ExactPath(features=features, pairs=pairs, alphas=self.alphas, max_bytes=max_bytes, **rest)

    def flops(self, n_outputs: int) -> float:
        """Per row; the moments are taken in double precision, at half the speed."""
        return 4.0 * n_outputs**2

    def nbytes(self, n_features: int, n_outputs: int, n_classes: int, itemsize: int) -> int:
        """Moments, in double precision; the open block and weights, in numbers of ``itemsize`` bytes."""
        moments = n_classes * n_outputs * (n_outputs + 1)
        weights = 2 * n_targets(n_classes) * self.n_models * n_outputs
        return 8 * moments + itemsize * (ROWS * n_outputs + weights)


@dataclass(frozen=True)
class Descent:
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
    block_rows: int = 128

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

    @property
    def n_models(self) -> int:
        """For each class that has models."""
        return len(self.steps) * len(self.penalties)

    def learner(self, features: FeatureMap, pairs: OppositeClass, max_bytes: int = 2**30, **rest: Any) -> Grid:
        """The models; ``max_bytes`` is for heads whose memory is not a few vectors."""
        memory = Strata(max_strata=self.max_strata, representative=self.representative, cluster_in=self.cluster_in)
        rest["engine"] = "auto"  # a grid has its own
        learners = [
            Learner(features, pairs, LOSSES[loss], memory, L2(alpha), step=Constant(eta), average="poly", **rest)
            for (loss, eta), alpha in product(self.steps, self.penalties)
        ]
        return Grid(learners, self.block_rows)

    def flops(self, n_outputs: int) -> float:
        """Of one model alone, per row."""
        return (STEP + SWEEP * self.max_strata) * n_outputs

    def nbytes(self, n_features: int, n_outputs: int, n_classes: int, itemsize: int) -> int:
        """Slots, centres and weights, in numbers of ``itemsize`` bytes; not the rows of the open block, often CSR."""
        strata, centers = n_classes * self.max_strata, n_outputs if self.cluster_in == "features" else n_features
        weights = 2 * n_targets(n_classes) * self.n_models * n_outputs
        return itemsize * (strata * (n_outputs + centers) + weights)


Head = Exact | Descent


def n_targets(n_classes: int) -> int:
    """Classes that have models: of two classes one speaks for both."""
    return 1 if n_classes == 2 else n_classes
