"""What a race may cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt

from pairloom.base.checks import check_count, check_number
from pairloom.race.portfolio import Candidate, Portfolio

SMALLEST = 128
"""Components below which finalists are not made smaller."""

SPARE = 1.125
"""Times its bytes a budget may need for a moment, while a map is fixed in float64."""


@dataclass(frozen=True)
class Budget:
    """Limits that the user states.

    Parameters
    ----------
    bytes : of all candidates together; an eighth more for a moment, while the large spaces join.
    microseconds : nominal time per example once the race is settled; None is six times that of scikit-learn's
        ``RBFSampler(1024)`` and ``SGDClassifier`` in float32: 39 + 0.18 d. A nominal microsecond is 1e5 flops of a
        product.

    >>> Budget(microseconds=20.0).limit(100), round(Budget().limit(100), 1)
    (20.0, 57.0)
    """

    bytes: int = 2**30
    microseconds: float | None = None

    def __post_init__(self) -> None:
        check_count("bytes", self.bytes)
        if self.microseconds is not None:
            check_number("microseconds, if not None,", self.microseconds, 0, open_low=True)

    def limit(self, n_features: int) -> float:
        """Nominal microseconds per example."""
        if self.microseconds is not None:
            return self.microseconds
        return 6.0 * (6.5 + 0.03 * n_features)

    def sized(self, portfolio: Portfolio, n_features: int, n_classes: int, itemsize: int = 4) -> Portfolio:
        """The portfolio with finalists small enough for one to fit by its time, and all by their memory."""
        while portfolio.n_components > SMALLEST:
            finalists = portfolio.finalists(portfolio.scales[0], 1.0)
            fast = any(one.microseconds(n_features) <= self.limit(n_features) for one in finalists)
            need = sum(one.space(n_features, n_classes, itemsize) for one in finalists)
            if not finalists or (fast and need <= self.bytes):
                break
            portfolio = portfolio.halved()
        return portfolio

    def exact(self, portfolio: Portfolio, n_classes: int) -> Portfolio:
        """The portfolio with exact scouts only where their moments fit: the first scout is always admitted."""
        return replace(portfolio, max_exact=min(portfolio.max_exact, isqrt(self.bytes // (8 * n_classes))))

    def warm_rows(self, portfolio: Portfolio, n_features: int, itemsize: int = 4) -> int:
        """Rows to keep at the start: a power of two, a quarter of the memory at most."""
        most = max(256, self.bytes // (4 * itemsize * n_features))
        return min(portfolio.warm_rows, 1 << (most.bit_length() - 1))

    def admit(
        self,
        candidates: list[Candidate],
        n_features: int,
        n_classes: int,
        share: float = 1.0,
        *,
        held: Sequence[Candidate] = (),
        itemsize: int = 4,
    ) -> list[Candidate]:
        """The candidates, in order, that fit into a share of the memory together with those already ``held``.

        The first always does. None may cost more by itself than four times what the settled race may: a stream may end
        before that. They enter in the order of ``largest_first``, and there must be room for each while it is made.
        """
        before = sum(one.nbytes(n_features, n_classes, itemsize) for one in held)
        admitted = candidates[:1]
        for candidate in candidates[1:]:
            total, peak = before, 0
            for one in largest_first([*admitted, candidate], n_features):
                total += one.nbytes(n_features, n_classes, itemsize)
                peak = max(peak, total + one.features.fixing(n_features))
            fast = candidate.microseconds(n_features) <= 4.0 * self.limit(n_features)
            if fast and total <= share * self.bytes and peak <= SPARE * self.bytes:
                admitted.append(candidate)
        return admitted


def largest_first(candidates: Sequence[Candidate], n_features: int) -> list[Candidate]:
    """Those that need most while they are made, before others are there."""
    return sorted(candidates, key=lambda one: one.features.fixing(n_features), reverse=True)
