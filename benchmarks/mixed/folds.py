"""Raw data frames against manual encoding, fold by fold, with all values and with a tenth of them removed."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from common.script import make_table
from contest.keel import Rows, read_raw
from pairloom import AUCClassifier
from pairloom.data import fraud_like
from pairloom.features import Forest
from pairloom.systems import FPOGD

NAMES = ("crx", "mushroom", "car-good", "flare-F", "kr-vs-k-zero_vs_eight")
SYSTEMS: dict[str, Callable[[], Any]] = {
    "AUCClassifier": lambda: AUCClassifier(random_state=0),
    "FPOGD": lambda: FPOGD(gamma="median", scale="standard", eta=0.25, average="poly", random_state=0),
    "FPOGD on a forest": lambda: FPOGD(features=Forest(50), schedule="adagrad", eta=0.1, random_state=0),
}


def toy() -> Iterator[tuple[str, Rows]]:
    columns, y = fraud_like(300, positive=0.3)
    yield "toy", (pd.DataFrame(columns)[["amount", "ip_risk", "channel"]], y)


def with_gaps(frame: pd.DataFrame, seed: int, share: float = 0.1) -> pd.DataFrame:
    """Return the frame with a share of its values removed."""
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < share)


def by_hand(train: pd.DataFrame, test: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """One-hot encode by the training part, with "missing" as a category; missing numbers become its means."""
    text = [name for name in train if not pd.api.types.is_numeric_dtype(train[name])]
    means = train.drop(columns=text).mean()
    made = []
    for part in (train, test):
        filled = part.fillna(means.to_dict()).astype(dict.fromkeys(text, object))
        filled[text] = filled[text].fillna("missing")
        made.append(pd.get_dummies(filled, columns=text, dtype=float))
    aligned = made[1].reindex(columns=made[0].columns, fill_value=0.0)
    return made[0].to_numpy(np.float32), aligned.to_numpy(np.float32)


def differences(rows: Rows, make: Callable[[], Any], seeds: int, folds: int, gaps: bool) -> np.ndarray:
    """Return the AUC of raw frames and of manual encoding, one row for each fold."""
    found, (whole, y) = [], rows
    for seed in range(seeds):
        frame = with_gaps(whole, seed) if gaps else whole
        for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(frame, y):
            train = np.random.default_rng(seed).permutation(train)  # the files are often sorted
            ours = make().fit(frame.iloc[train], y[train]).decision_function(frame.iloc[test])
            X, X_test = by_hand(frame.iloc[train], frame.iloc[test])
            theirs = make().fit(X, y[train]).decision_function(X_test)
            found.append([roc_auc_score(y[test], scores) for scores in (ours, theirs)])
    return np.array(found)


def table_of_folds(sets: Iterator[tuple[str, Rows]], seeds: int, folds: int) -> Table:
    """Tabulate the paired differences, and whether raw frames are worse by more than one standard error."""
    title = f"AUC of raw frames and of manual one-hot encoding, {folds} folds x {seeds} seeds"
    headings = ["raw", "manual", "difference", "its error", "not below"]
    table = make_table(title, ["data", "removed", "system"], headings)
    passed = total = 0
    for name, rows in sets:
        for gaps in (False, True):
            for system, make in SYSTEMS.items():
                pairs = differences(rows, make, seeds, folds, gaps)
                apart = pairs[:, 0] - pairs[:, 1]
                mean, error = apart.mean(), apart.std(ddof=1) / np.sqrt(len(apart))
                passed, total = passed + (mean >= -error), total + 1
                cells = [*(f"{auc:.4f}" for auc in pairs.mean(axis=0)), f"{mean:+.4f}", f"{error:.4f}"]
                removed = "a tenth" if gaps else "none"
                table.add_row(name, removed, system, *cells, "yes" if mean >= -error else "NO")
        table.add_section()
    table.caption = f"not below by more than one standard error of the paired difference: {passed} of {total}"
    return table


def sets_of_keel() -> Iterator[tuple[str, Rows]]:
    return ((name, read_raw(name)) for name in NAMES)
