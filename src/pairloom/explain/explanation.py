"""The contributions of columns to the scores of rows, as an object for users."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pairloom.base.extras import import_extra
from pairloom.base.typing import Array
from pairloom.explain.sentences import Cells, sentence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEFAULT_TOP = 4
"""Reasons per row, unless another number is requested: as many as lenders in the US give at most."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """The contributions of the columns to the scores of rows, compared with background rows.

    Attributes
    ----------
    columns : names of the columns, as the user passed them.
    values : contributions (rows, columns) to the score, in log-odds for classifiers; those of a row add up to
        ``scores`` minus ``base``.
    base : mean score of the background rows, for each row: with several classes, rows may have different backgrounds.
    scores : score of each row.
    error : standard errors of the values; 0 where they are exact.
    labels : class whose score is explained, for each row; None without classes.
    background_hash : identifies the background rows, which determine the values.
    top_n : number of reasons that ``top`` and ``plot`` show by default.
    """

    columns: list[str]
    values: Array
    base: Array
    scores: Array
    error: Array
    labels: list[Any] | None
    background_hash: str
    top_n: int = DEFAULT_TOP
    cells: Cells = field(default=None, repr=False)  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        shape = f"{len(self):,} rows, {len(self.columns)} columns, background {self.background_hash}"
        return f"<Explanation: {shape}>"

    def order(self, row: int) -> list[int]:
        """Return the columns that explain why a row is above its background (or below it), the largest first.

        These are the columns with positive contributions if the score is above ``base``, otherwise those with negative
        ones.
        """
        own = self.values[row] if self.scores[row] >= self.base[row] else -self.values[row]
        return [j for j in np.argsort(-own, kind="stable").tolist() if own[j] > 0]

    def top(self, n: int | None = None) -> list[list[str]]:
        """Return the n main reasons of each row as sentences; fewer if fewer columns contribute to its side."""
        n = self.top_n if n is None else n
        return [
            [sentence(self.columns[j], self.cells, i, j, float(self.values[i, j])) for j in self.order(i)[:n]]
            for i in range(len(self))
        ]

    def top_columns(self, n: int | None = None) -> list[list[str]]:
        """Return the names of the columns of ``top``."""
        n = self.top_n if n is None else n
        return [[self.columns[j] for j in self.order(i)[:n]] for i in range(len(self))]

    def importance(self) -> dict[str, float]:
        """Return the mean absolute contribution of each column, the largest first."""
        mean = np.abs(self.values).mean(axis=0)
        return {self.columns[j]: float(mean[j]) for j in np.argsort(-mean, kind="stable").tolist()}

    def to_frame(self) -> Any:
        """Return the values as a pandas data frame, one column per column."""
        return import_extra("pandas", "explain", "to_frame").DataFrame(self.values, columns=self.columns)

    def to_shap(self) -> Any:
        """Return a ``shap.Explanation``, for the plots of the package shap."""
        shap = import_extra("shap", "explain", "to_shap")
        return shap.Explanation(self.values, self.base, self.cells.shown(), feature_names=self.columns)

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Plot one row as bars, many rows as one dot per row and column; the most important columns on top."""
        from pairloom.explain.figures import plot_bars, plot_dots

        return (plot_bars if len(self) == 1 else plot_dots)(self, axes)


def joined(parts: Sequence[tuple[Array, Explanation]], n: int) -> Explanation:
    """Return the explanation of n rows from those of some of them, with their places."""
    first = parts[0][1]
    places = np.concatenate([at for at, _ in parts])
    order = np.argsort(places)

    def rows(name: str) -> Array:
        return np.concatenate([getattr(one, name) for _, one in parts])[order]

    labels = [label for _, one in parts for label in (one.labels or [None] * len(one))]
    hashes = "+".join(one.background_hash for _, one in parts)
    return Explanation(
        first.columns, rows("values"), rows("base"), rows("scores"), rows("error"),
        None if first.labels is None else [labels[i] for i in order.tolist()], hashes, first.top_n,
        Cells.joined([one.cells for _, one in parts], order),
    )  # fmt: skip
