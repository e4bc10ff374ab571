"""Draw docs/architecture.png: the way of a row, and back.

python docs/figures/architecture.py
"""

from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

BOXES = [
    ("estimator", "validates once:\nrows, labels, weights", "#e8eef7"),
    ("stream", "cuts by the clock,\nreplays the first rows,\nowns the state", "#d5e8d4"),
    ("model", "a frozen value:\ninit, run, score", "#fff2cc"),
    ("engine", "maps a block, plans\nthe memory, runs the\ncompiled loop", "#f8e0d8"),
    ("weights", "w moves", "#eeeeee"),
]
WIDTH, GAP, HEIGHT = 2.3, 0.75, 1.5


def main() -> None:
    """Draw and save."""
    figure, ax = pyplot.subplots(figsize=(11.5, 4.4), layout="constrained")
    left = [k * (WIDTH + GAP) for k in range(len(BOXES))]
    for x, (name, what, colour) in zip(left, BOXES, strict=True):
        box(ax, x, 2.2, WIDTH, HEIGHT, colour)
        ax.text(x + WIDTH / 2, 2.2 + HEIGHT - 0.28, name, ha="center", va="center", weight="bold", size=12)
        ax.text(x + WIDTH / 2, 2.2 + HEIGHT / 2 - 0.22, what, ha="center", va="center", size=9.5)
    for start, end in pairwise(left):
        arrow(ax, (start + WIDTH, 3.1), (end, 3.1), "black")
    ax.text(left[0] - 0.55, 3.1, "row", ha="right", va="center", size=11, style="italic")
    arrow(ax, (left[0] - 0.5, 3.1), (left[0], 3.1), "black")
    middle = left[1] + WIDTH / 2
    arrow(ax, (left[3] + WIDTH / 2, 2.2), (middle + 0.3, 2.2), "#b03060", "arc3,rad=-0.32")
    ax.text(left[2] - 0.1, 0.92, "scores, each given before its row was learned", color="#b03060", size=10)
    box(ax, left[1] - 0.15, 0.1, WIDTH + 0.3, 0.95, "#f3e3f0")
    ax.text(middle, 0.77, "hooks", ha="center", va="center", weight="bold", size=11)
    ax.text(middle, 0.38, "newest scores, log-odds, ...", ha="center", va="center", size=9)
    arrow(ax, (middle - 0.3, 2.2), (middle - 0.3, 1.05), "#b03060")
    box(ax, left[2], 4.25, 2 * WIDTH + GAP, 0.85, "#ffffff", dashed=True)
    ax.text(left[2] + WIDTH + GAP / 2, 4.67, "parts: phi  l  (y, y')  (B, p)  (eta, Omega)", ha="center", va="center",
            size=10.5)  # fmt: skip
    for k in (2, 3):
        arrow(ax, (left[k] + WIDTH / 2, 4.25), (left[k] + WIDTH / 2, 3.7), "#777777")
    ax.set_xlim(-1.3, left[-1] + WIDTH + 0.2)
    ax.set_ylim(0, 5.2)
    ax.set_aspect("equal")
    ax.axis("off")
    figure.savefig(Path(__file__).parent.parent / "architecture.png", dpi=110)


def box(ax, x, y, width, height, colour, dashed=False):
    """A rounded box."""
    form, style = "round,pad=0.02,rounding_size=0.12", "--" if dashed else "-"
    ax.add_patch(FancyBboxPatch((x, y), width, height, form, fc=colour, ec="#555555", ls=style))


def arrow(ax, start, end, colour, bend="arc3"):
    """From one point to another."""
    ax.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=15, color=colour, lw=1.4, connectionstyle=bend)
    )


if __name__ == "__main__":
    main()
