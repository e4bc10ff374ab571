"""Draw docs/explain-row.png, docs/explain-rows.png and docs/explain-stream.png: reasons for scores of payments.

python docs/figures/explain.py [FOLDER]
"""

import sys
from pathlib import Path

import matplotlib
import pandas as pd

matplotlib.use("Agg")

from matplotlib import pyplot

from pairloom import AUCClassifier
from pairloom.data import payments
from pairloom.explain import ImportanceHistory


def main(folder: Path) -> None:
    """Draw and save."""
    columns, y = payments(6_000, positive=0.03)
    frame = pd.DataFrame(columns)
    model = AUCClassifier(random_state=0).fit(frame[:5_000], y[:5_000])
    newest = frame[5_000:]
    highest = newest.iloc[[int(model.score_many(newest).argmax())]]
    for name, rows in (("explain-row", highest), ("explain-rows", newest)):
        save(model.explain(rows).plot(), folder / f"{name}.png")
    columns, y = payments(12_000, positive=0.03, change=0.5)
    frame, history = pd.DataFrame(columns), ImportanceHistory()
    model = AUCClassifier(random_state=0)
    for start in range(0, len(y), 500):
        model.partial_fit(frame[start : start + 500], y[start : start + 500])
        history.add(model)
    save(history.plot(), folder / "explain-stream.png")


def save(axes: object, path: Path) -> None:
    figure = axes.figure  # type: ignore[attr-defined]
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent)
