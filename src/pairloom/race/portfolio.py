"""What takes part in a race: which maps, which widths, which learners on them."""

from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from pairloom.base.checks import check_count, check_numbers
from pairloom.features import FeatureMap, Gaussian, Identity, Nystroem, OrthogonalFourier, Whitened
from pairloom.features.kernels import Gamma
from pairloom.features.scaling import Scaling, check_scaling
from pairloom.memory.strata import Representative
from pairloom.models.exact_path import ExactPath
from pairloom.models.grid import Grid
from pairloom.pairs import OppositeClass
from pairloom.race.evidence import RAW, WINDOW_ROWS
from pairloom.race.heads import Descent, Exact, Head, n_targets
from pairloom.stream.observers import RECENT

FLOPS = 1e5
"""Of one core in a nominal microsecond: products of float32 matrices."""


@dataclass(frozen=True)
class Candidate:
    """A feature map and what learns on it; ``factor`` is that of the kernel's width, None if it has no kernel."""

    name: str
    features: FeatureMap
    head: Head
    factor: float | None = None

    def learner(self, pairs: OppositeClass, **rest: Any) -> Grid | ExactPath:
        """The models of this candidate."""
        return self.head.learner(self.features, pairs, **rest)

    def microseconds(self, n_features: int) -> float:
        """Nominal time per example of one of its models."""
        return (self.features.flops(n_features) + self.head.flops(self.features.n_outputs(n_features))) / FLOPS

    def nbytes(self, n_features: int, n_classes: int, itemsize: int = 4) -> int:
        """Bytes of its arrays, about, in numbers of ``itemsize`` bytes where it is not float64 always."""
        return self.space(n_features, n_classes, itemsize) + self.scores(n_classes)

    def space(self, n_features: int, n_classes: int, itemsize: int = 4) -> int:
        """Bytes of its map and its models."""
        D = self.features.n_outputs(n_features)
        return itemsize * self.features.numbers(n_features) + self.head.nbytes(n_features, D, n_classes, itemsize)

    def scores(self, n_classes: int) -> int:
        """Bytes of the scores that a race keeps of its models, however small these are."""
        return 8 * (RECENT + RAW * WINDOW_ROWS) * n_targets(n_classes) * self.head.n_models


@dataclass(frozen=True)
class Portfolio:
    """The candidates of a race: ``scouts`` find scaling and width, ``finalists`` are large spaces around them.

    Parameters
    ----------
    scales : scalings of the columns.
    gamma : rule of the kernel's width.
    widths : factors of that width that the scouts try.
    near_widths : the finalists' factors of the best scout's width, up to the largest of ``widths``.
    far_widths : more factors of the width, whoever won: with more rows narrower kernels win. Fourier maps have all of
        both, Nystroem maps the first of each.
    scout_landmarks, scout_rank : m and D of the scouts' Nystroem maps.
    n_components : D of the Fourier map with the last of ``far_widths``; the other finalists' Fourier maps have half.
    n_landmarks : m of the finalists' Nystroem maps.
    rank : their D, at most.
    whitening : rank of the whitening of each of these.
    exact_rank : D of the finalist with exact minimisers, at most.
    exact, descent : what learns: exact minimisers (None: no one), and gradient steps against the centroids of strata;
        on the smaller Nystroem maps against their newest members.
    max_exact : columns up to which the linear scout is an exact one.

    Replace what you like, or make a subclass with other ``scouts`` and ``finalists``.

    >>> small = Portfolio(widths=(1.0, 4.0), scales=("standard",))
    >>> [candidate.name for candidate in small.scouts(10)]
    ['linear, standard', 'nystroem 256, width 1, standard', 'nystroem 256, width 4, standard']
    """

    scales: tuple[Scaling, ...] = ("wide", "minmax")
    gamma: Gamma = "median"
    widths: tuple[float, ...] = (1.0, 2.0, 0.5, 4.0, 0.25, 8.0, 16.0, 32.0)
    near_widths: tuple[float, ...] = (1.0, 4.0)
    far_widths: tuple[float, ...] = (2.0, 8.0, 16.0)
    scout_landmarks: int = 256
    scout_rank: int = 128
    n_components: int = 16_384
    n_landmarks: tuple[int, ...] = (1024, 2048)
    rank: int = 1024
    whitening: tuple[int, ...] = (64, 256)
    exact_rank: int = 512
    exact: Exact | None = field(default_factory=Exact)
    descent: Descent = field(default_factory=Descent)
    max_exact: int = 512

    def __post_init__(self) -> None:
        for name in ("n_landmarks", "whitening"):
            sizes = getattr(self, name)
            if not isinstance(sizes, tuple) or len(sizes) != 2:
                raise ValueError(f"{name} must have two sizes, such as {(64, 256)}; got {sizes!r}")
            for size in sizes:
                check_count(f"each of {name}", size)
        for name in ("scout_landmarks", "scout_rank", "n_components", "rank", "exact_rank", "max_exact"):
            check_count(name, getattr(self, name))
        for name in ("widths", "near_widths", "far_widths"):
            check_numbers(name, getattr(self, name), 0, open_low=True)
        for name in ("scales", "widths", "near_widths"):
            if not getattr(self, name):
                raise ValueError(f"{name} must not be empty")
        for scale in self.scales:
            check_scaling(scale)
        Gaussian(self.gamma)
        if not isinstance(self.descent, Descent) or not isinstance(self.exact, Exact | None):
            raise ValueError(f"descent must be a Descent, exact an Exact or None; got {self.descent!r}, {self.exact!r}")

    @property
    def warm_rows(self) -> int:
        """Rows that the scouts see, and that the finalists learn again: a power of two, where mixtures change."""
        return 1 << (max(1024, *self.n_landmarks) - 1).bit_length()

    def scouts(self, n_features: int) -> list[Candidate]:
        """The candidates from the first row on."""
        small = self.exact or replace(self.descent, block_rows=16)
        linear = small if n_features <= self.max_exact else replace(self.descent, block_rows=16)
        found = [Candidate(f"linear, {self.scales[0]}", Identity(scale=self.scales[0]), linear)]
        for c, scale in product(self.widths, self.scales):
            features = self._nystroem(self.scout_landmarks, self.scout_rank, c, scale)
            found.append(Candidate(f"nystroem {self.scout_landmarks}, width {c:g}, {scale}", features, small, c))
        return found

    def finalists(self, scale: Scaling, factor: float) -> list[Candidate]:
        """The candidates that join at ``warm_rows``, the best scout with a kernel having this scaling and width."""
        near = [min(factor * c, max(factor, *self.widths)) for c in self.near_widths]
        members: tuple[Representative, ...] = ("fifo", "centroid")
        sizes = zip(self.n_landmarks, self.whitening, members, strict=True)
        return [
            *(self._fourier(scale, c, self.n_components // 2) for c in sorted({*near, *self.far_widths})),
            *(self._fourier(scale, c, self.n_components) for c in self.far_widths[-1:]),
            *self._exact(scale, factor),
            *(self._whitened(*size, scale, c) for size, c in product(sizes, sorted({*near[:1], *self.far_widths[:1]}))),
        ]

    def halved(self) -> "Portfolio":
        """Finalists of half the size."""
        return replace(
            self,
            n_components=2 * max(1, self.n_components // 4),
            n_landmarks=tuple(max(1, m // 2) for m in self.n_landmarks),
            rank=max(1, self.rank // 2),
            whitening=tuple(max(1, k // 2) for k in self.whitening),
            exact_rank=max(1, self.exact_rank // 2),
        )

    def _nystroem(self, m: int, rank: int, factor: float, scale: Scaling) -> Nystroem:
        return Nystroem(m, Gaussian(self.gamma, factor), min(m, rank), scale=scale)

    def _fourier(self, scale: Scaling, factor: float, size: int) -> Candidate:
        features = OrthogonalFourier(size, Gaussian(self.gamma, factor), scale=scale)
        head = replace(self.descent, cluster_in="input")
        return Candidate(f"fourier {size}, width {factor:g}, {scale}", features, head, factor)

    def _exact(self, scale: Scaling, factor: float) -> list[Candidate]:
        if self.exact is None:
            return []
        features = self._nystroem(self.n_landmarks[0], self.exact_rank, factor, scale)
        return [Candidate(f"nystroem {self.n_landmarks[0]}, width {factor:g}, {scale}", features, self.exact, factor)]

    def _whitened(self, m: int, k: int, representative: Representative, scale: Scaling, factor: float) -> Candidate:
        features = Whitened(self._nystroem(m, self.rank, factor, scale), k)
        head = replace(self.descent, representative=representative)
        return Candidate(f"nystroem {m}, width {factor:g}, {scale}, whitened {k}", features, head, factor)


@dataclass(frozen=True)
class OneMap(Portfolio):
    """A race of learners on one feature map, without finalists."""

    features: FeatureMap = field(default_factory=Identity)

    def scouts(self, n_features: int) -> list[Candidate]:
        small = replace(self.descent, block_rows=16)
        heads: list[Head] = [small, replace(small, representative="fifo")]
        if self.exact is not None and self.features.n_outputs(n_features) <= self.max_exact:
            heads.insert(0, self.exact)
        return [Candidate(f"{type(head).__name__.lower()} {k}", self.features, head) for k, head in enumerate(heads)]

    def finalists(self, scale: Scaling, factor: float) -> list[Candidate]:
        return []
