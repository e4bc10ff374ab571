"""What takes part in a race: which maps, and which learners on them."""

from dataclasses import dataclass, field, replace
from typing import Any

from pairloom.base.checks import check_count, check_number, check_part
from pairloom.features import FeatureMap, Forest, Gaussian, Identity, Landmarks
from pairloom.features.kernels import Gamma
from pairloom.features.scaling import Scaling, check_scaling
from pairloom.pairs import OppositeClass
from pairloom.race.evidence import RAW, WINDOW_ROWS
from pairloom.race.heads import Descent, Exact, Head, Steps, n_targets
from pairloom.stream.observers import RECENT

FLOPS = 1e5
"""Of one core in a nominal microsecond: products of float32 matrices."""

OVERHEAD = 3.0
"""Nominal microseconds of any candidate, however small."""


@dataclass(frozen=True)
class Candidate:
    """A feature map and what learns on it.

    The candidates of a ``family`` are alike, and have one share of the mixture between them before anything is known.
    ``large``: a larger map, to which the best of the family goes on when rows justify it.
    """

    name: str
    family: str
    features: FeatureMap
    head: Head
    large: FeatureMap | None = None

    @property
    def refits(self) -> bool:
        """Whether it has rules on data, which are fixed anew as the first rows come in."""
        return self.features.needs_data or self.head.needs_data

    def larger(self, n_features: int) -> "dict[int, Candidate]":
        """What it may go on to, by the number of features: with the larger map, and halves of that."""
        found: dict[int, Candidate] = {}
        features = self.large
        while features is not None:
            found[features.n_outputs(n_features)] = replace(self, features=features, large=None)
            features = features.halved()
        return found

    def model(self, pairs: OppositeClass, **rest: Any) -> Any:
        """The models of this candidate; ``rest`` as in :meth:`Head.learner`."""
        return self.head.learner(self.features, pairs, **rest)

    def microseconds(self, n_features: int) -> float:
        """Nominal time per example."""
        of_map = self.features.flops(n_features) + self.features.upkeep(n_features)
        return OVERHEAD + (of_map + self.head.flops(self.features, n_features)) / FLOPS

    def nbytes(self, n_features: int, n_classes: int, itemsize: int = 4) -> int:
        """Bytes of its arrays, about, in numbers of ``itemsize`` bytes where it is not float64 always."""
        return self.space(n_features, n_classes, itemsize) + self.scores(n_classes)

    def space(self, n_features: int, n_classes: int, itemsize: int = 4) -> int:
        """Bytes of its map and its models."""
        of_map = itemsize * self.features.numbers(n_features)
        return of_map + self.head.nbytes(self.features, n_features, n_classes, itemsize)

    def scores(self, n_classes: int) -> int:
        """Bytes of the scores that a race keeps of its models, however small these are."""
        return 8 * (RECENT + RAW * WINDOW_ROWS) * n_targets(n_classes) * self.head.n_models

    def smaller(self) -> "Candidate | None":
        """With a map of half the size; None if there is none."""
        features = self.features.halved()
        return None if features is None else replace(self, features=features)


@dataclass(frozen=True)
class Portfolio:
    """The candidates of a race: few, and of different kinds.

    Parameters
    ----------
    forests : maps of cells, each with a path of ``steps``.
    kernels : scaling of the columns, and factor of the kernel's width, of each small kernel space.
    gamma : rule of the kernel's width.
    n_landmarks : m of the small kernel spaces, all of which learn from the first rows on.
    large_landmarks : m of the space to which the best of them goes on at row 1,024, if the budget allows it.
    scale : scaling of the columns of the linear model.
    exact, steps, descent : what learns: exact minimisers (None: no one) on linear and kernel maps, steps per coordinate
        on forests, and gradient steps on a linear map of more than ``max_exact`` columns.
    max_exact : columns up to which the linear model is an exact one.
    max_grown : columns up to which forests take part. Where there are more, most are empty in most rows: trees take
        long to find one that is not. There, a second linear model takes the columns as they are: scaling would make the
        rarest of them the largest.

    Replace what you like, or make a subclass with other ``candidates``.

    >>> [candidate.name for candidate in Portfolio(kernels=(("wide", 1.0),)).candidates(10)]
    ['linear', 'forest, renewed', 'forest, boosted', 'kernel, width 1, wide']
    """

    forests: tuple[Forest, ...] = (
        Forest(100, max_leaves=4096, growth="renewed", pace=8, deep_rows=8192),
        Forest(100, max_leaves=1024, growth="boosted"),
    )
    kernels: tuple[tuple[Scaling, float], ...] = (("wide", 1.0), ("minmax", 4.0))
    gamma: Gamma = "median"
    n_landmarks: int = 128
    large_landmarks: int = 1024
    scale: Scaling = "wide"
    exact: Exact | None = field(default_factory=Exact)
    steps: Steps = field(default_factory=Steps)
    descent: Descent = field(default_factory=Descent)
    max_exact: int = 200
    max_grown: int = 2000

    def __post_init__(self) -> None:
        for name in ("n_landmarks", "large_landmarks", "max_exact", "max_grown"):
            check_count(name, getattr(self, name))
        if not isinstance(self.forests, tuple):
            raise ValueError(f"forests must be a tuple of Forest maps; got {self.forests!r}")
        for forest in self.forests:
            check_part("each of forests", forest, Forest)
        pairs = isinstance(self.kernels, tuple) and all(isinstance(k, tuple) and len(k) == 2 for k in self.kernels)
        if not pairs:
            raise ValueError(f"kernels must be pairs (scale, factor), such as (('wide', 1.0),); got {self.kernels!r}")
        for scale, factor in self.kernels:
            check_scaling(scale)
            check_number("the factor of a kernel", factor, 0, open_low=True)
        check_scaling(self.scale)
        Gaussian(self.gamma)
        if self.exact is not None:
            check_part("exact", self.exact, Exact)
        check_part("steps", self.steps, Steps)
        check_part("descent", self.descent, Descent)

    @property
    def takes_nan(self) -> bool:
        """Whether values of a row may be missing: all candidates must take them."""
        return False

    def candidates(self, n_features: int) -> list[Candidate]:
        """All of them, in the order in which the budget is spent; the first always takes part."""
        head = self.exact if self.exact is not None and n_features <= self.max_exact else self.descent
        found = [Candidate("linear", "linear", Identity(scale=self.scale), head)]
        if n_features > self.max_grown and self.scale is not None:
            found.append(Candidate("linear, unscaled", "linear", Identity(), self.descent))
        for k, forest in enumerate(self.forests if n_features <= self.max_grown else ()):
            twin = any(other.growth == forest.growth for other in self.forests[:k])
            name = f"forest, {forest.growth}" + (f", {k + 1}" if twin else "")
            found.append(Candidate(name, name, forest, self.steps))
        if self.exact is not None:
            for scale, factor in self.kernels:
                small, large = (
                    Landmarks(m, Gaussian(self.gamma, factor), scale=scale)
                    for m in (self.n_landmarks, self.large_landmarks)
                )
                larger = large if self.large_landmarks > self.n_landmarks else None
                name = f"kernel, width {factor:g}, {scale}"
                found.append(Candidate(name, "kernel", small, self.exact, larger))
        return found


@dataclass(frozen=True)
class OneMap(Portfolio):
    """A race of learners on one feature map."""

    features: FeatureMap = field(default_factory=Identity)

    @property
    def takes_nan(self) -> bool:
        return self.features.takes_nan

    def candidates(self, n_features: int) -> list[Candidate]:
        if self.features.n_cells:
            return [Candidate("steps", "steps", self.features, self.steps)]
        heads: list[Head] = [self.descent, replace(self.descent, representative="fifo")]
        if self.exact is not None and self.features.n_outputs(n_features) <= self.max_exact:
            heads.insert(0, self.exact)
        names = [f"{type(head).__name__.lower()} {k}" for k, head in enumerate(heads)]
        return [Candidate(name, name, self.features, head) for name, head in zip(names, heads, strict=True)]
