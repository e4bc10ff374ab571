"""Streams with one sudden change, each with further rows of the new concept."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from pairloom.data import drift, imbalanced


@dataclass(frozen=True)
class Length:
    """Rows ``before`` and ``after`` the change; the minimum rows of a ``window`` and of its ``positives``."""

    before: int = 20_000
    after: int = 40_000
    window: int = 1_000
    positives: int = 50


@dataclass(frozen=True)
class Sudden:
    """Rows X, y whose concept changes ``at`` a row; ``more``: further rows of the new concept, for the goal.

    ``window``: rows over which AUC is computed, of which about 50 or more are positive.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    more: tuple[np.ndarray, np.ndarray]
    at: int
    window: int

    @property
    def rest(self) -> int:
        """Rows after the change."""
        return len(self.y) - self.at


def reversed_rule(seed: int, length: Length, positive: float) -> tuple[np.ndarray, np.ndarray]:
    """Return 10 columns; what ranked first before the change ranks last after it."""
    n = length.before + 2 * length.after
    return drift(n, 10, at=length.before / n, positive=positive, seed=seed)


def moved_ring(seed: int, length: Length) -> tuple[np.ndarray, np.ndarray]:
    """Return a rare class that surrounds the other in the first two columns, then in the next two."""
    X, y = imbalanced(length.before, 10, seed=seed)
    X_new, y_new = imbalanced(2 * length.after, 10, seed=1_000_000 + seed)
    order = [2, 3, 0, 1, *range(4, 10)]
    return np.vstack([X, X_new[:, order]]), np.concatenate([y, y_new])


def two_of_ten(seed: int, length: Length, positive: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose positives have the largest <a, x>; two of the 10 equal weights a change their sign."""
    n, rng = length.before + 2 * length.after, np.random.default_rng(seed)
    a = rng.choice([-1.0, 1.0], 10) / np.sqrt(10)
    X, changed = rng.normal(size=(n, 10)), np.where(np.arange(10) < 2, -a, a)
    score = np.where(np.arange(n) < length.before, X @ a, X @ changed)
    return X, np.where(score > NormalDist().inv_cdf(1 - positive), 1, -1)


Generator = Callable[[int, Length], tuple[np.ndarray, np.ndarray]]
GENERATORS: dict[str, Generator] = {
    "reversed, 5 % positive": lambda seed, length: reversed_rule(seed, length, 0.05),
    "reversed, 50 % positive": lambda seed, length: reversed_rule(seed, length, 0.5),
    "another ring": moved_ring,
    "two of ten columns": two_of_ten,
    "reversed, 1 % positive": lambda seed, length: reversed_rule(seed, length, 0.01),
    "reversed, 0.5 % positive": lambda seed, length: reversed_rule(seed, length, 0.005),
}


def sudden(name: str, seed: int, length: Length | None = None) -> Sudden:
    """Return one of ``GENERATORS``, by default 60,000 rows that change at row 20,000.

    >>> stream = sudden("another ring", seed=0)
    >>> len(stream.y), stream.at, stream.window
    (60000, 20000, 1000)
    """
    length = length or Length()
    X, y = GENERATORS[name](seed, length)
    n = length.before + length.after
    # Blocks end at multiples of 100.
    window = max(length.window, int(round(length.positives / np.mean(y == 1), -2)))
    return Sudden(name, X[:n], y[:n], (X[n:], y[n:]), length.before, window)
