"""Generated tables of the documentation: ``python -m tests.tables`` updates the pages."""

import json
import re
from pathlib import Path

import numpy as np

from pairloom.race import Boosted, Descent, Exact, Portfolio

ROOT = Path(__file__).parent.parent

DATA = ("diabetes", "german", "usps", "ijcnn1", "a9a", "mnist", "covtype")

RESULTS = {
    "AUCClassifier": ("`AUCClassifier()`, nothing tuned", "one"),
    "LightGBM": ("LightGBM, 500 trees of 31 leaves", "batch"),
    "LightGBM-255": ("LightGBM, 500 trees of 255 leaves", "batch"),
    "ExtraTrees": ("scikit-learn, ExtraTrees", "batch"),
    "ARF": ("river, adaptive random forest, the first 20,000 rows", "one"),
    "logistic": ("scikit-learn, logistic regression", "batch"),
    "FPOGD-tuned": ("FPOGD, tuned for each set", "one"),
}
"""Name of a contestant in docs/accuracy.json -> its name in the readme, and its number of passes."""

COLUMNS = 20
"""Number of columns for the costs in the table of candidates."""


def pipes(head, rule, rows):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))


def results():
    """Return the table of the readme: mean AUC over folds, empty without records, the best of each data set in bold."""
    records = json.loads((ROOT / "docs" / "accuracy.json").read_text())
    found = {}
    for one in records:
        found.setdefault((one["contestant"], one["data"]), []).append(one["auc"])
    shown = {key: f"{np.mean(aucs):.4f}" for key, aucs in found.items() if key[0] in RESULTS}
    best = {data: max(text for (_, where), text in shown.items() if where == data) for data in DATA}
    rows = []
    for name, titles in RESULTS.items():
        texts = [shown.get((name, data), "") for data in DATA]
        rows.append([*titles, *(f"**{t}**" if t == best[data] else t for t, data in zip(texts, DATA, strict=True))])
    return pipes(["", "passes", *DATA], ["---", "---", *["---:"] * len(DATA)], rows)


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


TABLES = {"README.md": results, "docs/race.md": candidates}


def standing(page):
    """Return the current table of a page: the first with the header of the generated one."""
    head = re.escape(TABLES[page]().splitlines()[0])
    return re.search(rf"^{head}\n(\|.*\n)*\|.*", (ROOT / page).read_text(), re.MULTILINE)[0]


if __name__ == "__main__":
    for page, made in TABLES.items():
        path = ROOT / page
        path.write_text(path.read_text().replace(standing(page), made()))
        print(f"{page}: updated the table")
