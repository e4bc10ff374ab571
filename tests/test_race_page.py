"""The table of candidates in docs/race.md is the portfolio; the readme's AUCs are the recorded ones."""

import json
from pathlib import Path

import numpy as np

from pairloom.race import Exact, Portfolio, Steps

PAGE = Path(__file__).parent.parent / "docs" / "race.md"


def lines():
    for candidate in Portfolio().candidates(20):
        head = candidate.head
        learner = "exact" if isinstance(head, Exact) else "steps" if isinstance(head, Steps) else "gradient"
        learner += f", {head.n_models} models"
        yield (
            f"| {candidate.name} | {candidate.features.n_outputs(20):,} | {learner} | "
            f"{candidate.microseconds(20):.1f} | {candidate.nbytes(20, 2) / 1e6:.1f} |"
        )


def test_the_readme_says_what_was_measured():
    records = json.loads((PAGE.parent / "accuracy.json").read_text())
    names = {"`AUCClassifier()`": "AUCClassifier", "FPOGD, tuned for each set": "FPOGD-tuned"}
    names |= {"RBFSampler(1024) + SGDClassifier, tuned for each set": "SGD-tuned"}
    names |= {"river, logistic regression": "river", "LightGBM, 500 trees, batch": "LightGBM"}
    readme = (PAGE.parent.parent / "README.md").read_text()
    data = ("diabetes", "german", "usps", "ijcnn1", "a9a", "mnist", "covtype")
    for title, name in names.items():
        means = [
            np.mean([one["auc"] for one in records if (one["data"], one["contestant"]) == (each, name)])
            for each in data
        ]
        assert f"| {title} | " + " | ".join(f"{mean:.4f}" for mean in means) + " |" in readme


def test_the_table_is_the_portfolio():
    table = PAGE.read_text().split("|---|---:|---|---:|---:|\n")[1].split("\n\n")[0]
    assert table.splitlines() == list(lines())
