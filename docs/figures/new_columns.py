"""Draw docs/river.png: a column that arrives in mid-stream, with and without a spare column; print its table.

python docs/figures/new_columns.py [FOLDER]
"""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import matplotlib
import numpy as np

matplotlib.use("Agg")

from matplotlib import pyplot
from river import linear_model, preprocessing
from sklearn.metrics import roc_auc_score

from pairloom.adapters.river import RiverAUC, as_river
from pairloom.systems import FPOGD

ROWS, LATE, WINDOW, COLUMNS = 7000, 5000, 1000, 20


def rows(late: int) -> Iterator[tuple[dict[str, float], bool]]:
    """Rows of 20 columns, of which the one that matters most arrives at row ``late``."""
    rng = np.random.default_rng(0)
    for t in range(ROWS):
        x = rng.normal(size=COLUMNS)
        y = bool(2 * x[0] + x[1] + 0.5 * rng.normal() > 2.0)
        row = {f"x{k}": float(x[k]) for k in range(1, COLUMNS)}
        if t >= late:
            row["main"] = float(1e3 * x[0] + 5e4)
        yield row, y


def windows(model: RiverAUC, late: int) -> np.ndarray:
    """Return the AUC of each window of rows; each row is scored before it is learned."""
    scores, labels = np.zeros(ROWS), np.zeros(ROWS, dtype=bool)
    for t, (row, y) in enumerate(rows(late)):
        scores[t], labels[t] = model.score_one(row), y
        model.learn_one(row, y)
    return np.array(
        [roc_auc_score(labels[t - WINDOW : t], scores[t - WINDOW : t]) for t in range(WINDOW, ROWS + 1, 250)]
    )


def rates() -> dict[str, float]:
    """Return rows per second of ``learn_one``, in the mean of interleaved blocks of 500 rows: processor time."""
    models = {
        "river, scaler and logistic regression": preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        "as_river(FPOGD(n_components=200), reserve=0)": as_river(FPOGD(n_components=200, random_state=0), reserve=0),
        "as_river(FPOGD(n_components=200))": as_river(FPOGD(n_components=200, random_state=0)),
        "RiverAUC(reserve=0)": RiverAUC(reserve=0),
        "RiverAUC()": RiverAUC(),
    }
    spent, data = dict.fromkeys(models, 0.0), list(rows(0))[:4500]
    for start in range(0, len(data), 500):
        for name, model in models.items():
            began = process_time()
            for row, y in data[start : start + 500]:
                model.learn_one(row, y)
            spent[name] += process_time() - began if start >= 2500 else 0.0
    return {name: 2000 / seconds for name, seconds in spent.items()}


def main(folder: Path) -> None:
    """Draw, save and print."""
    warnings.simplefilter("ignore")
    for name, rate in rates().items():
        print(f"{name:48} {rate:8,.0f} rows per second", flush=True)
    figure, axes = pyplot.subplots(figsize=(7.2, 3.2), layout="constrained")
    lines = {
        "main column from the first row": (RiverAUC(), 0, "#4d4d4d"),
        "arrives at row 5,000: takes a spare column": (RiverAUC(), LATE, "#b8620a"),
        "arrives at row 5,000, reserve=0: ignored": (RiverAUC(reserve=0), LATE, "#0072b2"),
    }
    for name, (model, late, color) in lines.items():
        found = windows(model, late)
        axes.plot(range(WINDOW, ROWS + 1, 250), found, color=color, label=name)
        print(f"{name:48}", " ".join(f"{value:.3f}" for value in found[::4]), flush=True)
    axes.axvline(LATE, color="#999999", lw=0.8, ls=":")
    axes.set(xlabel="rows", ylabel=f"AUC of the newest {WINDOW:,} rows", ylim=(0.5, 1.0))
    axes.legend(frameon=False, loc="lower left", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "river.png", dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
