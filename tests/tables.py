"""Generated tables of the documentation: ``python -m tests.tables`` updates the pages."""

import json
import re
from functools import partial
from pathlib import Path

import numpy as np

from pairloom.race import Boosted, Descent, Exact, Portfolio

ROOT = Path(__file__).parent.parent

SETS = ("diabetes", "german", "usps", "ijcnn1", "a9a", "mnist", "covtype")
RAW = ("adult", "shoppers", "ai4i", "bank", "bank-before", "elec", "weather")

OF_SETS = {
    "AUCClassifier": ("`AUCClassifier()`, nothing tuned", "one"),
    "LightGBM": ("LightGBM, 500 trees of 31 leaves", "batch"),
    "LightGBM-255": ("LightGBM, 500 trees of 255 leaves", "batch"),
    "ARF": ("river, adaptive random forest, the first 20,000 rows", "one"),
    "logistic": ("scikit-learn, logistic regression", "batch"),
    "FPOGD-tuned": ("FPOGD, tuned for each set", "one"),
}
"""Name of a contestant in docs/accuracy.json -> its name in the readme, and its number of passes."""

OF_RAW = {
    "AUCClassifier": ("`AUCClassifier()`", "one"),
    "Boosting": ("`BoostingClassifier()`", "one"),
    "LightGBM-7": ("LightGBM, 300 trees of 7 leaves", "batch"),
    "LightGBM-defaults": ("LightGBM, defaults", "batch"),
    "CatBoost": ("CatBoost, defaults", "batch"),
}

COLUMNS = 20
"""Number of columns for the costs in the table of candidates."""


def pipes(head, rule, rows):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))


def results(data, contestants):
    """Return a table of the readme: mean AUC over folds, empty without records, the best of each data set in bold."""
    records = json.loads((ROOT / "docs" / "accuracy.json").read_text())
    found = {}
    for one in records:
        found.setdefault((one["contestant"], one["data"]), []).append(one["auc"])
    shown = {key: f"{np.mean(aucs):.4f}" for key, aucs in found.items() if key[0] in contestants}
    best = {name: max((text for (_, where), text in shown.items() if where == name), default="") for name in data}
    rows = []
    for name, titles in contestants.items():
        texts = [shown.get((name, where), "") for where in data]
        rows.append([*titles, *(f"**{t}**" if t and t == best[d] else t for t, d in zip(texts, data, strict=True))])
    return pipes(["", "passes", *data], ["---", "---", *["---:"] * len(data)], rows)


def learner(head):
    """Describe a head."""
    if isinstance(head, Exact):
        return f"exact, {len(head.alphas)} penalties"
    if isinstance(head, Descent):
        return f"gradient steps, {head.n_models} models"
    if isinstance(head, Boosted):
        return f"generations of {head.n_trees} trees"
    return f"AdaGrad, {len(head.etas)} step sizes"


def largest(one):
    """Return the candidate with its enlarged map, if it has one."""
    return list(one.larger(COLUMNS).values())[:1]


def candidates():
    """Return the table of docs/race.md: the portfolio, with the cost of each candidate at 20 columns."""
    rows = []
    for one in Portfolio().candidates(COLUMNS):
        for title, sized in ((one.name, one), *((f"{one.name}, enlarged", big) for big in largest(one))):
            cost = f"{sized.microseconds(COLUMNS):.0f}", f"{sized.nbytes(COLUMNS, 2) / 1e6:.1f}"
            rows.append([title, f"{sized.features.n_outputs(COLUMNS):,}", learner(sized.head), *cost])
    head = ["candidate", "features", "training", f"nominal µs, {COLUMNS} columns", "MB"]
    return pipes(head, ["---", "---:", "---", "---:", "---:"], rows)


TABLES = (
    ("README.md", partial(results, SETS, OF_SETS)),
    ("README.md", partial(results, RAW, OF_RAW)),
    ("docs/race.md", candidates),
)


def current(page, made):
    """Return the current table of a page: the first with the header of the generated one."""
    head = re.escape(made().splitlines()[0])
    return re.search(rf"^{head}\n(\|.*\n)*\|.*", (ROOT / page).read_text(), re.MULTILINE)[0]


if __name__ == "__main__":
    for page, made in TABLES:
        path = ROOT / page
        path.write_text(path.read_text().replace(current(page, made), made()))
        print(f"{page}: updated the table")
