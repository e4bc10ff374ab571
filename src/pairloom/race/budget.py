"""What a race may cost."""

from dataclasses import dataclass

from pairloom.checks import check_count, check_number
from pairloom.race.portfolio import FLOPS, Candidate


@dataclass(frozen=True)
class Budget:
    """Limits that the user states.

    Parameters
    ----------
    bytes : of all candidates together, about.
    microseconds : nominal time per example once the race is settled; None is six times that of scikit-learn's
        ``RBFSampler(1024)`` and ``SGDClassifier``: 27 + 0.12 d. A nominal microsecond is 1e5 flops of a product.

    >>> Budget(microseconds=20.0).limit(100), round(Budget().limit(100), 1)
    (20.0, 39.3)
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
        return 6.0 * (4.5 + 2048.0 * n_features / FLOPS)

    def admit(self, candidates: list[Candidate], n_features: int, n_classes: int) -> list[Candidate]:
        """The candidates, in order, that fit into the memory together; the first always does.

        None may cost more by itself than four times what the settled race may: a stream may end before that.
        """
        admitted, total = candidates[:1], candidates[0].nbytes(n_features, n_classes)
        for candidate in candidates[1:]:
            need = candidate.nbytes(n_features, n_classes)
            if total + need <= self.bytes and candidate.microseconds(n_features) <= 4.0 * self.limit(n_features):
                admitted.append(candidate)
                total += need
        return admitted
