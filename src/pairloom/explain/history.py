"""The importance of columns over a stream."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pairloom.base.checks import check_count
from pairloom.base.extras import import_extra
from pairloom.base.typing import Array
from pairloom.explain.sentences import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_SHOWN = 6
"""Columns with a line of their own."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


class ImportanceHistory:
    """The importance of columns at some rows of a stream: which columns matter now, and which mattered before.

    Call ``add`` with the model now and then, for example after each ``partial_fit``. At most ``max_entries`` entries
    are kept: when there are more, every other one is dropped.

    Cost: that of ``model.importance()`` for each call of ``add``.

    >>> from pairloom.systems import ExactAUC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> model, history = ExactAUC(half_life=200), ImportanceHistory()
    >>> for start in range(0, 2000, 500):
    ...     rows = X[start : start + 500]
    ...     which = 0 if start < 1000 else 1
    ...     history.add(model.partial_fit(rows, rows[:, which] > 0.5))
    >>> history.rows, [max(one, key=one.get) for one in history.entries]
    ([500, 1000, 1500, 2000], ['x0', 'x0', 'x1', 'x1'])
    """

    def __init__(self, max_entries: int = 256) -> None:
        check_count("max_entries", max_entries)
        self.max_entries = max_entries
        self.rows: list[int] = []
        self.entries: list[dict[str, float]] = []

    def add(self, model: Any) -> None:
        """Add the importance of the columns of a model now."""
        self.entries.append(model.importance())
        self.rows.append(model.n_seen_)
        if len(self.rows) > self.max_entries:
            self.rows, self.entries = self.rows[1::2], self.entries[1::2]

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Plot the share of each column in the importance of all, over the rows; the largest columns have a colour."""
        if not self.rows:
            raise ValueError("there is no entry yet: call add(model) first")
        names, shares = self._shares()
        if axes is None:
            pyplot = import_extra("matplotlib.pyplot", "plot", "Drawing the importance of columns")
            axes = pyplot.subplots(figsize=(8, 3.2), layout="constrained")[1]
        chosen = np.argsort(-shares.max(axis=0), kind="stable")
        for j in chosen[MAX_SHOWN:].tolist():
            axes.plot(self.rows, shares[:, j], color="#c8c8c8", linewidth=0.9)
        for j, colour in zip(chosen[:MAX_SHOWN].tolist(), COLOURS, strict=False):
            label = printable(names[j]).replace("$", r"\$")
            axes.plot(self.rows, shares[:, j], color=colour, linewidth=1.8, marker="o", markersize=3, label=label)
        axes.set_xlabel("rows")
        axes.set_title("share of each column in the contributions to the score", loc="left", fontsize="medium")
        axes.set_ylim(0, None)
        axes.xaxis.set_major_formatter(lambda row, _: f"{row:,.0f}")
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#ececec")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize="small")
        return axes

    def _shares(self) -> tuple[list[str], Array]:
        names = list(dict.fromkeys(name for one in self.entries for name in one))
        values = np.array([[one.get(name, 0.0) for name in names] for one in self.entries])
        return names, values / np.maximum(values.sum(axis=1, keepdims=True), 1e-300)
