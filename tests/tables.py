"""Tables of the docs that are made, not written: ``python -m tests.tables`` puts both in their places."""

import json
import re
from pathlib import Path

import numpy as np

from pairloom.race import Descent, Exact, Portfolio

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
"""A contestant's name in docs/accuracy.json -> what the readme calls it, and how often it sees a row."""

COLUMNS = 20
"""Of the rows that the costs in the table of candidates are for."""


def pipes(head, rule, rows):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))


def results():
    """The readme's table: mean AUC over folds, empty where nothing is recorded, the best of each set in bold."""
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
    """What learns, in words."""
    if isinstance(head, Exact):
        return f"exact, {len(head.alphas)} penalties"
    if isinstance(head, Descent):
        return f"gradient steps, {head.n_models} of them"
    return f"steps per coordinate, {len(head.etas)} lengths"


def largest(one):
    """The candidate with its larger map, if it has one."""
    return list(one.larger(COLUMNS).values())[:1]


def candidates():
    """The table of docs/race.md: the portfolio, with what each candidate costs at 20 columns."""
    rows = []
    for one in Portfolio().candidates(COLUMNS):
        for title, sized in ((one.name, one), *((f"{one.name}, enlarged", big) for big in largest(one))):
            cost = f"{sized.microseconds(COLUMNS):.0f}", f"{sized.nbytes(COLUMNS, 2) / 1e6:.1f}"
            rows.append([title, f"{sized.features.n_outputs(COLUMNS):,}", learner(sized.head), *cost])
    head = ["candidate", "features", "learns by", f"nominal µs, {COLUMNS} columns", "MB"]
    return pipes(head, ["---", "---:", "---", "---:", "---:"], rows)


TABLES = {"README.md": results, "docs/race.md": candidates}


def standing(page):
    """The table of a page, as it stands there: the first whose head is that of the one that is made."""
    head = re.escape(TABLES[page]().splitlines()[0])
    return re.search(rf"^{head}\n(\|.*\n)*\|.*", (ROOT / page).read_text(), re.MULTILINE)[0]


if __name__ == "__main__":
    for page, made in TABLES.items():
        path = ROOT / page
        path.write_text(path.read_text().replace(standing(page), made()))
        print(f"{page}: its table is made anew")
