"""What a race may cost."""

from dataclasses import dataclass

from pairloom.checks import check_count, check_number
from pairloom.race.portfolio import Candidate, Portfolio

SMALLEST = 128
"""Components below which finalists are not made smaller."""


@dataclass(frozen=True)
class Budget:
    """Limits that the user states.

    Parameters
    ----------
    bytes : of all candidates together, about.
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

    def sized(self, portfolio: Portfolio, n_features: int, n_classes: int) -> Portfolio:
        """The portfolio with finalists small enough for one to fit by its time, and all by their memory."""
        while portfolio.n_components > SMALLEST:
            finalists = portfolio.finalists(portfolio.scales[0], 1.0)
            fast = any(one.microseconds(n_features) <= self.limit(n_features) for one in finalists)
            if not finalists or (fast and sum(one.nbytes(n_features, n_classes) for one in finalists) <= self.bytes):
                break
            portfolio = portfolio.halved()
        return portfolio

    def warm_rows(self, portfolio: Portfolio, n_features: int) -> int:
        """Rows to keep at the start: a power of two, a quarter of the memory at most."""
        most = max(256, self.bytes // (16 * n_features))
        return min(portfolio.warm_rows, 1 << (most.bit_length() - 1))

    def admit(
        self, candidates: list[Candidate], n_features: int, n_classes: int, share: float = 1.0
    ) -> list[Candidate]:
        """The candidates, in order, that fit into a share of the memory together; the first always does.

        None may cost more by itself than four times what the settled race may: a stream may end before that.
        """
        admitted, total = candidates[:1], sum(one.nbytes(n_features, n_classes) for one in candidates[:1])
        for candidate in candidates[1:]:
            need = candidate.nbytes(n_features, n_classes)
            fast = candidate.microseconds(n_features) <= 4.0 * self.limit(n_features)
            if fast and total + need <= share * self.bytes:
                admitted.append(candidate)
                total += need
        return admitted
