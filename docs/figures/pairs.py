"""Figures of docs/pairs.md: ranking within queries, differences, many classes.

python docs/figures/pairs.py [folder]
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes, load_digits
from sklearn.metrics import confusion_matrix, r2_score, roc_auc_score

from pairloom.base.typing import Array
from pairloom.cli.figures import COLOURS, FAINT, INK, plain
from pairloom.estimators import PairwiseRanker, PairwiseRegressor
from pairloom.systems import FPOGD

BLUE, _, ORANGE = COLOURS
WASH = LinearSegmentedColormap.from_list("wash", ["white", BLUE])


@dataclass(frozen=True)
class Rows:
    """Shuffled rows: the first ``n_train`` are the stream, the rest the test."""

    X: Array
    y: Array
    n_train: int
    rng: np.random.Generator

    @property
    def test(self) -> tuple[Array, Array]:
        """Rows and labels that no model has seen."""
        return self.X[self.n_train :], self.y[self.n_train :]


def shuffled(data: tuple[Array, Array], n_train: int) -> Rows:
    """Rows in a random order, and the generator after it."""
    X, y = data
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    return Rows(X[order], y[order], n_train, rng)


def marked_digits() -> tuple[Rows, Array, Array]:
    """Return digits, the judge of each training image, and its mark: the digit plus a constant of the judge."""
    rows = shuffled(load_digits(return_X_y=True), n_train=1300)
    judge = np.arange(rows.n_train) // 10
    return rows, judge, rows.y[: rows.n_train] + rows.rng.integers(0, 21, judge.max() + 1)[judge]


def draw_ranking(out: Path) -> None:
    """Draw scores of unseen digits, learned with and without groups."""
    rows, judge, mark = marked_digits()
    X, digit = rows.test
    figure, panels = canvas(
        "Ranking within queries: marks are only comparable within a judge",
        f"{rows.n_train:,} images, ten per judge. The mark is the digit plus a constant of the judge, "
        f"0 to 20. Shown: {len(digit)} unseen images; bar: median.\nScores have no scale: each panel has its own.",
        columns=2,
    )
    for axes, groups, name, colour in ((panels[0], judge, "With", BLUE), (panels[1], None, "Without", ORANGE)):
        model = PairwiseRanker(random_state=0).fit(rows.X[: rows.n_train], mark, groups=groups)
        right = 100 * model.score(X, digit)
        heading(axes, f"{name} groups=", f"{right:.0f} % of the pairs of unseen images in the right order")
        strips(axes, model.predict(X), digit, colour)
        axes.set_xlabel("digit in the image", color=INK, fontsize=9)
    panels[0].set_ylabel("score", color=INK, fontsize=9)
    figure.savefig(out, format="png")


def strips(axes: Axes, scores: Array, kind: Array, colour: str) -> None:
    """The scores of each kind as a strip of points with a bar at the median."""
    jitter = np.random.default_rng(0).uniform(-0.28, 0.28, len(kind))
    axes.scatter(kind + jitter, scores, s=7, color=colour, alpha=0.35, linewidths=0)
    for k in np.unique(kind):
        axes.plot([k - 0.36, k + 0.36], [np.median(scores[kind == k])] * 2, color=INK, linewidth=2)
    axes.set_xticks(np.unique(kind))
    axes.set_yticks([])
    plain(axes)


def draw_differences(out: Path) -> None:
    """Draw predicted against true differences of pairs of unseen patients, and predicted against true labels."""
    rows = shuffled(load_diabetes(return_X_y=True), n_train=330)
    X, y = rows.test
    model = PairwiseRegressor(random_state=0).fit(rows.X[: rows.n_train], rows.y[: rows.n_train])
    a, b = np.triu_indices(len(y), 1)
    figure, panels = canvas(
        "Regression on differences: which patient will be worse, and by how much",
        f"Diabetes, {rows.n_train} patients streamed once; {len(y)} unseen ones shown, {len(a):,} pairs on the left. "
        "Grey line: equal.\nThe model learns differences; the level is the mean residual of the scores.",
        columns=2,
    )
    differences = model.pair_score(X[a], X[b])
    heading(panels[0], "Differences", f"pair_score(X, X2), R² {r2_score(y[a] - y[b], differences):.2f}")
    against(panels[0], y[a] - y[b], differences, 3, 0.12)
    heading(panels[1], "Levels", f"predict(X), R² {model.score(X, y):.2f}")
    against(panels[1], y, model.predict(X), 16, 0.6)
    panels[0].set_ylabel("predicted", color=INK, fontsize=9)
    panels[0].set_xlabel("difference in progression of the disease", color=INK, fontsize=9)
    panels[1].set_xlabel("progression of the disease after a year", color=INK, fontsize=9)
    figure.savefig(out, format="png")


def against(axes: Axes, truth: Array, predicted: Array, size: float, alpha: float) -> None:
    """Draw points and the line of equality, on equal axes."""
    low, high = min(truth.min(), predicted.min()), max(truth.max(), predicted.max())
    axes.plot([low, high], [low, high], color="#bdbdbd", linewidth=1.2, zorder=1)
    axes.scatter(truth, predicted, s=size, color=BLUE, alpha=alpha, linewidths=0, zorder=2)
    axes.set_aspect("equal")
    axes.grid(color="#ececec", linewidth=0.8)
    axes.set_axisbelow(True)
    plain(axes)


def draw_classes(out: Path) -> None:
    """Log-odds and AUC of each digit against the rest, and the confusion of unseen digits."""
    rows = shuffled(load_digits(return_X_y=True), n_train=1300)
    X, digit = rows.test
    model = FPOGD(gamma="median", scale="minmax", average="poly", random_state=0)
    model.fit(rows.X[: rows.n_train], rows.y[: rows.n_train])
    scores, right = model.decision_function(X), 100 * model.score(X, digit)
    own = digit[:, None] == model.classes_
    auc = np.array([roc_auc_score(mine, column) for mine, column in zip(own.T, scores.T, strict=True)])
    figure, panels = canvas(
        "Many classes: one memory, one ranking for each class against the rest",
        f"Digits, {rows.n_train:,} images streamed once, {len(digit)} unseen ones shown. Left: the column of "
        "decision_function for each digit, for images of that digit (blue) and of other digits\n(grey), with its AUC "
        "above. "
        "Right: confusion matrix, with true digits in rows and predicted digits in columns.",
        columns=2,
    )
    heading(panels[0], "Each digit against the rest", f"mean AUC {auc.mean():.3f}")
    separation(panels[0], scores, own, auc)
    panels[0].set_xlabel("digit", color=INK, fontsize=9)
    heading(panels[1], "The most probable digit", f"{right:.0f} % right")
    grid(panels[1], confusion_matrix(digit, model.predict(X)), model.classes_)
    figure.savefig(out, format="png")


def separation(axes: Axes, scores: Array, own: Array, auc: Array) -> None:
    """For each class, the log-odds of its own rows above those of the rest, with the AUC written over them."""
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(scores))
    top = scores.max() + 0.04 * np.ptp(scores)
    for k, (column, mine) in enumerate(zip(scores.T, own.T, strict=True)):
        axes.scatter(k + jitter[~mine], column[~mine], s=4, color=FAINT, alpha=0.3, linewidths=0)
        axes.scatter(k + jitter[mine], column[mine], s=9, color=BLUE, alpha=0.6, linewidths=0)
        axes.text(k, top, f"{auc[k]:.3f}", ha="center", color=INK, fontsize=7.5)
    axes.set_ylim(scores.min() - 0.05 * np.ptp(scores), top + 0.05 * np.ptp(scores))
    axes.axhline(0, color="#bdbdbd", linewidth=1, zorder=0)
    axes.set_xticks(range(len(auc)))
    axes.set_ylabel("log-odds", color=INK, fontsize=9)
    plain(axes)


def grid(axes: Axes, counts: Array, classes: Array) -> None:
    """A confusion matrix, its counts written in; zeros are left out."""
    axes.imshow(counts, cmap=WASH, vmax=1.25 * counts.max())
    for i, j in np.argwhere(counts):
        wrong = i != j
        axes.text(
            j, i, str(counts[i, j]), ha="center", va="center", fontsize=8.5,
            color=ORANGE if wrong else "white", fontweight="bold" if wrong else "normal",
        )  # fmt: skip
    axes.set_xticks(range(len(classes)), classes)
    axes.set_yticks(range(len(classes)), classes)
    axes.set_xlabel("predicted", color=INK, fontsize=9)
    axes.set_ylabel("true", color=INK, fontsize=9)
    plain(axes)


def canvas(title: str, caption: str, columns: int) -> tuple[Figure, list[Axes]]:
    """A titled figure with panels side by side."""
    figure = Figure(figsize=(10, 5.2), dpi=120, facecolor="white")
    FigureCanvasAgg(figure)
    figure.text(0.018, 0.93, title, fontsize=15, fontweight="bold", color=INK)
    figure.text(0.018, 0.018, caption, fontsize=7.5, color=FAINT, va="bottom", linespacing=1.4)
    space = figure.add_gridspec(1, columns, left=0.065, right=0.96, top=0.79, bottom=0.19, wspace=0.24)
    return figure, [figure.add_subplot(space[0, column]) for column in range(columns)]


def heading(axes: Axes, title: str, subtitle: str) -> None:
    """Write a title and a subtitle above a panel."""
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=18)
    axes.text(0, 1.025, subtitle, transform=axes.transAxes, fontsize=8.5, color=FAINT)


FIGURES = {
    "pairs-ranking.png": draw_ranking,
    "pairs-differences.png": draw_differences,
    "pairs-classes.png": draw_classes,
}


def run(folder: Path) -> None:
    """Draw all figures into a folder."""
    for name, draw in FIGURES.items():
        draw(folder / name)
        print(folder / name)


if __name__ == "__main__":
    run(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent)
