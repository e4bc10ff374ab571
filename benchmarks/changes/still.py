"""Streams that do not change: the cost of a detector where there is nothing to detect."""

from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from changes.learners import OURS, Estimator
from common.script import make_table
from contest.datasets import Data


def tried(data: Data, seed: int, how: dict[str, Any]) -> tuple[float, int]:
    """Return the AUC on a fifth of the rows after one pass over the others, shuffled by ``seed``, and the alarms."""
    X, y = data.read()
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
    model = Estimator(OURS.make(**how), classes=(0, 1))
    model.learn(X, y)
    return float(roc_auc_score(y_test, model.score(X_test))), len(model.alarms)


def table_of_still(sets: tuple[Data, ...], seeds: list[int], target: float = 0.002) -> Table:
    """Tabulate the loss of AUC with ``drift="auto"``, which should be less than ``target``."""
    how = {"drift": "auto"}
    title = f"rows in random order, one pass, AUC on a fifth held out, {len(seeds)} seeds"
    systems = [OURS.title({"drift": None}), OURS.title(how)]
    headings = ["rows", *systems, "difference", "worst", "alarms", f"above -{target}"]
    table = make_table(title, ["data"], headings)
    for data in track(sets, "no change", console=Console(stderr=True)):
        plain = [tried(data, seed, {"drift": None})[0] for seed in seeds]
        watched, alarms = zip(*(tried(data, seed, how) for seed in seeds), strict=True)
        apart = np.subtract(watched, plain)
        table.add_row(data.name, f"{data.n_rows:,}", f"{np.mean(plain):.4f}", f"{np.mean(watched):.4f}",
                      f"{apart.mean():+.4f}", f"{apart.min():+.4f}", str(sum(alarms)),
                      "yes" if apart.mean() > -target else "NO")  # fmt: skip
    return table
