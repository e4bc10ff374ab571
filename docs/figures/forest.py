"""Draw docs/forest-kernel.png: the kernel of a forest and a Gaussian kernel.

python docs/figures/forest.py [FOLDER]
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")

from matplotlib import pyplot

from pairloom.base.batch import Batch
from pairloom.features import Forest, Gaussian
from pairloom.features.capabilities import fix_features

POINTS = ((-1.4, 0.1), (1.0, 0.0))


def rows(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A narrow ring of rows on the left, a wide cloud on the right; one class is the ring's inside."""
    angle = rng.uniform(0, 2 * np.pi, n // 2)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.normal(0.6, 0.05, (n // 2, 1)) + [-1.2, 0]
    X = np.vstack([ring, rng.normal([1.0, 0], 0.6, (n - n // 2, 2))])[rng.permutation(n)]
    return X, (np.hypot(X[:, 0] + 1.2, X[:, 1]) < 0.6).astype(np.int64)


def main(folder: Path) -> None:
    """Draw and save."""
    X, y = rows(2000, np.random.default_rng(0))
    side = np.linspace(-2.6, 2.8, 240)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    first = Batch(X, y, np.ones(len(y)), np.zeros(len(y), np.int64))
    figure, axes = pyplot.subplots(len(POINTS), 3, figsize=(9.6, 6.6), layout="constrained", sharex=True, sharey=True)
    for row, point in zip(axes, np.array(POINTS), strict=True):
        kernels = {
            "Gaussian, median width": Gaussian("median")(Gaussian("median").width(2, X), grid, point[None])[:, 0]
        }
        for name, forest in (
            ("forest, random", Forest(300, 32, labels=False)),
            ("forest, grown by labels", Forest(300, 32)),
        ):
            state = fix_features(forest, 2, first, np.random.default_rng(0))
            kernels[name] = (forest.cells(state, grid) == forest.cells(state, point[None])).mean(axis=1)
        for axis, (name, values) in zip(row, kernels.items(), strict=True):
            picture, ends = values.reshape(240, 240), (side[0], side[-1]) * 2
            image = axis.imshow(picture, origin="lower", extent=ends, vmin=0, vmax=1, cmap="Blues")
            axis.plot(*X[:600].T, ".", ms=1.2, color="#555555")
            axis.plot(*point, "x", ms=9, mew=2, color="#d55e00")
            axis.set_title(name, fontsize=11)
    figure.colorbar(image, ax=axes, label="k(x, cross)", shrink=0.7)
    figure.savefig(folder / "forest-kernel.png", dpi=100)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent)
