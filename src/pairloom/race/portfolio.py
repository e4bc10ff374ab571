"""What takes part in a race: which maps, which widths, which learners on them."""

from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from pairloom.features import FeatureMap, Gaussian, Identity, Nystroem, OrthogonalFourier, Whitened
from pairloom.features.kernels import Gamma
from pairloom.features.scaling import Scaling
from pairloom.grid import Grid
from pairloom.pairs import OppositeClass
from pairloom.race.exact_path import ExactPath
from pairloom.race.heads import Descent, Exact, Head

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

    def nbytes(self, n_features: int, n_classes: int) -> int:
        """Bytes of its arrays, about."""
        D = self.features.n_outputs(n_features)
        return 4 * (self.features.numbers(n_features) + self.head.numbers(D, n_classes))


@dataclass(frozen=True)
class Portfolio:
    """The candidates of a race: ``scouts`` find scaling and width, ``finalists`` are large spaces around them.

    Parameters
    ----------
    scales : scalings of the columns.
    gamma : rule of the kernel's width.
    widths : factors of that width that the scouts try.
    fourier_widths, nystroem_widths : factors of the best scout's width that the finalists try.
    scout_landmarks, scout_rank : m and D of the scouts' Nystroem maps.
    n_components : D of the finalists' Fourier maps.
    n_landmarks : m of the finalists' Nystroem maps.
    rank : their D, at most.
    whitening : rank of the whitening of each of these.
    exact, descent : what learns; ``descent`` with the newest members of strata on Fourier maps, and with their
        centroids on Nystroem maps.
    max_exact : columns up to which the linear scout is an exact one.

    Replace what you like, or make a subclass with other ``scouts`` and ``finalists``.

    >>> small = Portfolio(widths=(1.0, 4.0), scales=("standard",))
    >>> [candidate.name for candidate in small.scouts(10)]
    ['linear, standard', 'nystroem 256, width 1, standard', 'nystroem 256, width 4, standard']
    """

    scales: tuple[Scaling, ...] = ("standard", "minmax")
    gamma: Gamma = "median"
    widths: tuple[float, ...] = (1.0, 2.0, 0.5, 4.0, 0.25, 8.0, 16.0, 32.0)
    fourier_widths: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)
    nystroem_widths: tuple[float, ...] = (1.0, 2.0)
    scout_landmarks: int = 256
    scout_rank: int = 128
    n_components: int = 8192
    n_landmarks: tuple[int, ...] = (1024, 2048)
    rank: int = 1024
    whitening: tuple[int, ...] = (64, 256)
    exact: Exact = field(default_factory=Exact)
    descent: Descent = field(default_factory=Descent)
    max_exact: int = 512

    @property
    def warm_rows(self) -> int:
        """Rows that the scouts see, and that the finalists learn again."""
        return max(1024, *self.n_landmarks)

    def scouts(self, n_features: int) -> list[Candidate]:
        """The candidates from the first row on."""
        small = replace(self.descent, block_rows=16)
        linear: Head = self.exact if n_features <= self.max_exact else small
        return [
            Candidate(f"linear, {self.scales[0]}", Identity(scale=self.scales[0]), linear),
            *(
                Candidate(
                    f"nystroem {self.scout_landmarks}, width {c:g}, {scale}",
                    Nystroem(self.scout_landmarks, Gaussian(self.gamma, c), self.scout_rank, scale=scale),
                    self.exact,
                    c,
                )
                for c, scale in product(self.widths, self.scales)
            ),
        ]

    def finalists(self, scale: Scaling, factor: float) -> list[Candidate]:
        """The candidates that join at ``warm_rows``, the best scout with a kernel having this scaling and width."""
        near = replace(self.descent, cluster_in="input")
        central = replace(self.descent, representative="centroid")
        found = [
            Candidate(
                f"fourier {self.n_components}, width {c * factor:g}, {scale}",
                OrthogonalFourier(self.n_components, Gaussian(self.gamma, c * factor), scale=scale),
                near,
                c * factor,
            )
            for c in self.fourier_widths
        ]
        for (m, k), c in product(zip(self.n_landmarks, self.whitening, strict=True), self.nystroem_widths):
            inner = Nystroem(m, Gaussian(self.gamma, c * factor), min(m, self.rank), scale=scale)
            name = f"nystroem {m}, width {c * factor:g}, {scale}, whitened {k}"
            found.append(Candidate(name, Whitened(inner, k), central, c * factor))
        return found
