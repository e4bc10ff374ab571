"""Budget: the time and memory that a race may use."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from pairloom.base.checks import check_count, check_number
from pairloom.base.clock import REFIT_ROWS
from pairloom.race.portfolio import Candidate


@dataclass(frozen=True)
class Budget:
    """Limits on time and memory, enforced from the first row on.

    Parameters
    ----------
    bytes : of all candidates together.
    microseconds : nominal time per example; None is 54 + 15 sqrt(d) for rows of d columns. A nominal microsecond
        is 1e5 flops of a product of float32 matrices, or any operation that takes as long.

    >>> Budget(microseconds=20.0).limit(100), Budget().limit(100)
    (20.0, 204.0)
    """

    bytes: int = 2**30
    microseconds: float | None = None

    def __post_init__(self) -> None:
        check_count("bytes", self.bytes)
        if self.microseconds is not None:
            check_number("microseconds, if not None,", self.microseconds, 0, open_low=True)

    def limit(self, n_features: int) -> float:
        """Return the nominal microseconds per example."""
        return 54.0 + 15.0 * sqrt(n_features) if self.microseconds is None else self.microseconds

    def keeps(self, row: int, n_features: int, itemsize: int = 4) -> bool:
        """Return whether the first rows, kept until the refit at ``row`` is complete, fit in a quarter of the bytes."""
        return REFIT_ROWS[row] * n_features * itemsize <= self.bytes // 4

    def admit(
        self, candidates: Sequence[Candidate], n_features: int, n_classes: int, itemsize: int = 4
    ) -> list[Candidate]:
        """Return the candidates that fit together, in their order, some of them in a smaller form.

        The first is always included. Half of the bytes are reserved for refits.
        """
        admitted: list[Candidate] = []
        for candidate in candidates:
            sized: Candidate | None = candidate
            while sized and admitted and not self._fits([*admitted, sized], n_features, n_classes, itemsize):
                sized = sized.smaller()
            if sized is not None:
                admitted.append(sized)
        return admitted

    def enlarged(
        self, candidate: Candidate, others: Sequence[Candidate], n_features: int, n_classes: int, itemsize: int = 4
    ) -> Candidate | None:
        """Return the candidate in the largest space that fits in addition to the others; None if none does.

        It must have at least twice as many features as now.
        """
        least = 2 * candidate.features.n_outputs(candidate.width(n_features))
        for size, large in candidate.larger(n_features).items():
            if size >= least and self._fits([*others, large], n_features, n_classes, itemsize, share=1):
                return large
        return None

    def _fits(
        self, candidates: Sequence[Candidate], n_features: int, n_classes: int, itemsize: int, share: int = 2
    ) -> bool:
        need = sum(one.nbytes(n_features, n_classes, itemsize) for one in candidates)
        cost = sum(one.microseconds(n_features) for one in candidates)
        return need <= self.bytes // share and cost <= self.limit(n_features)
