"""For benchmarks/forest.py: a figure, and two rules that are not in the library.

Both move the cells of the newest row only, with AdaGrad's steps: against the mean score of the other class, or by its
own label alone.
"""

import time
from pathlib import Path
from typing import Any

import numba
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from pairloom.base.batch import Batch

SLOW = 1e-3
"""Share of the newest row in the mean score of its class, at least."""

MARKERS = {"forest, grown once": "o", "forest, renewed": "s", "forest, boosted": "^", "forest, random": "D"}


@numba.njit(cache=False)
def _learn(cells: Any, y: Any, eta: float, by_mean: bool, w: Any, squares: Any, means: Any, counts: Any) -> None:
    value = 1.0 / np.sqrt(cells.shape[1])
    for i in range(len(y)):
        s = 0.0
        for c in cells[i]:
            s += w[c]
        s *= value
        own = 1 if y[i] > 0 else 0
        if by_mean:
            # Squared hinge on the difference to the other class's mean score.
            slope = -2.0 * max(0.0, 1.0 - y[i] * (s - means[1 - own])) if counts[1 - own] > 0 else 0.0
            counts[own] += 1
            means[own] += max(1.0 / counts[own], SLOW) * (s - means[own])
        else:
            slope = -1.0 / (1.0 + np.exp(y[i] * (s + means[0])))
            counts[0] += slope * slope
            means[0] -= 10 * eta * y[i] * slope / np.sqrt(counts[0] + 1e-30)
        v = y[i] * slope * value
        for c in cells[i] if v != 0 else cells[i, :0]:
            squares[c] += v * v
            w[c] -= eta * v / np.sqrt(squares[c])


def _run(learner: Any, rows: Any, test: Any, eta: float, by_mean: bool) -> tuple[np.ndarray, float]:
    """Test scores and CPU microseconds per row, growing included; trees are grown once, by the first rows."""
    X, y = rows
    forest, start = learner.features, time.process_time()
    first = Batch(X[: forest.n_rows], (y[: forest.n_rows] > 0).astype(float), np.ones(len(y[: forest.n_rows])),
                  np.zeros(len(y[: forest.n_rows]), int))  # fmt: skip
    state = learner.init(X.shape[1], first)
    w, squares = state.w[0].astype(float), np.zeros(state.w.shape[1])
    means, counts = np.zeros(2), np.zeros(2)
    for at in range(len(first), len(y), 512):
        cells = forest.cells(state.phi, X[at : at + 512])
        _learn(cells, y[at : at + 512].astype(float), eta, by_mean, w, squares, means, counts)
    spent = (time.process_time() - start) / len(y) * 1e6
    parts = [forest.cells(state.phi, test[at : at + 4096]) for at in range(0, len(test), 4096)]
    return np.concatenate([w[cells].sum(axis=1) for cells in parts]), spent


def mean_partner(learner: Any, rows: Any, test: Any) -> tuple[np.ndarray, float]:
    """Against the mean score of the other class, squared hinge."""
    return _run(learner, rows, test, learner.step.eta, True)


def one_point(learner: Any, rows: Any, test: Any) -> tuple[np.ndarray, float]:
    """Pointwise logistic regression with an intercept; its steps are twice as long."""
    return _run(learner, rows, test, 2 * learner.step.eta, False)


def draw_auc_against_time(found: list[tuple[str, str, float, float]], out: Path) -> None:
    """One panel for each set: test AUC of each map against time per row."""
    sets = list(dict.fromkeys(data for data, *_ in found))
    figure = Figure(figsize=(11, 5.4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 4).ravel()
    for axis, name in zip(axes, sets, strict=False):
        for data, what, auc, spent in found:
            if data == name:
                axis.plot(spent, auc, MARKERS.get(what, "x"), ms=8, color="black" if what in MARKERS else "#d55e00",
                          mfc="#0072b2" if what in MARKERS else "none", mew=1.2)  # fmt: skip
        axis.set_title(name, fontsize=10)
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.margins(0.25)
        axis.tick_params(labelsize=8)
    for axis in axes[len(sets) :]:
        axis.axis("off")
    for name, marker in (*MARKERS.items(), ("Fourier, in the time of the random forest", "x")):
        axes[-1].plot([], [], marker, ms=8, color="#d55e00" if marker == "x" else "black", mew=1.2, label=name,
                      mfc="none" if marker == "x" else "#0072b2")  # fmt: skip
    axes[-1].legend(loc="center", frameon=False, fontsize=9)
    figure.supxlabel("microseconds per row, growing included (log scale)", fontsize=10)
    figure.supylabel("test AUC", fontsize=10)
    figure.savefig(out)
