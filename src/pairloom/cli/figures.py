"""Figures of the command: curves of a ranking, and what a model has inside."""

from pathlib import Path
from typing import Any

import numpy as np

from pairloom.base.extras import needed
from pairloom.base.files import replacing
from pairloom.base.typing import Array
from pairloom.metrics.auc import weighted_auc
from pairloom.metrics.curve import average_precision, mass_above

INK, FAINT, COLOURS = "#333333", "#8c8c8c", ("#0072b2", "#d55e00")


def _figure(width: float, height: float) -> Any:
    """An empty figure, for a file and not for a screen."""
    needed("matplotlib", "plot", "A figure")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def _save(figure: Any, out: Path) -> None:
    """Under exactly this name, which matplotlib would complete; all of it or nothing."""
    with replacing(out) as file:
        figure.savefig(file, format=out.suffix[1:].lower() or "png", dpi=150)


def draw_curves(scores: Array, positive: Array, weights: Array, out: Path, title: str) -> None:
    """ROC, and precision against recall, side by side."""
    own, other = mass_above(scores, positive, weights)
    tpr, fpr = own / own[-1], other / other[-1]
    precision, chance = own[1:] / (own + other)[1:], own[-1] / (own[-1] + other[-1])
    figure = _figure(9, 4.4)
    left, right = figure.subplots(1, 2)
    area = float(weighted_auc(scores[:, None], positive, weights)[0])
    left.plot(fpr, tpr, color=COLOURS[0], linewidth=2)
    left.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8, linestyle=":")
    right.step(tpr[1:], precision, where="pre", color=COLOURS[1], linewidth=2)
    right.axhline(chance, color=FAINT, linewidth=0.8, linestyle=":")
    words = (
        (left, f"AUC {area:.4f}", "share of the negatives above", "share of the positives above"),
        (right, f"average precision {average_precision(scores, positive, weights):.4f}", "recall", "precision"),
    )
    for axes, name, x, y in words:
        axes.set_title(name, fontsize=10, color=INK, loc="left")
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.set_xlim(-0.01, 1.01)
        axes.set_ylim(-0.01, 1.01)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=11, color=INK)
    _save(figure, out)


def draw_race(model: Any, out: Path, title: str) -> None:
    """The candidates of an AUCClassifier along the stream."""
    figure = _figure(8, 6)
    axes = figure.subplots(2, sharex=True, gridspec_kw={"height_ratios": [3, 2]})
    model.plot_race(axes)
    figure.suptitle(title, fontsize=11, color=INK)
    _save(figure, out)


def draw_strata(sizes: dict[str, Array], out: Path, title: str) -> None:
    """The shares of the strata of each class, the largest first."""
    figure = _figure(8, 4)
    for axes, (name, own) in zip(
        np.atleast_1d(figure.subplots(1, len(sizes), sharey=True)), sizes.items(), strict=True
    ):
        axes.bar(np.arange(1, len(own) + 1), np.sort(own)[::-1] / max(own.sum(), 1e-300), color=COLOURS[0])
        axes.set_title(name, fontsize=10, color=INK, loc="left")
        axes.set_xlabel("stratum")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("share of the class")
    figure.suptitle(title, fontsize=11, color=INK)
    _save(figure, out)
