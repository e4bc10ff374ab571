"""AUC of models learned in 8 shards and merged in rounds, relative to one pass over the same rows.

python benchmarks/shards.py [--toy] [--system AUCClassifier] [--rounds 1,3,10] [--sets ijcnn1,a9a]

A quarter of the rows, at most 20,000, are held out; at most 110,000 others are learned, in random order. Sets with
fewer than 40,000 rows, except a9a and adult, are repeated. The shards are those of pairloom.dask, in this process.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from sklearn.metrics import roc_auc_score

from common.script import make_parser, make_table, require_data
from pairloom.base.tree import copy
from pairloom.dask import estimators
from pairloom.dask.plan import even_sizes, pace_of, pieces_of, shards_of
from pairloom.dask.tasks import Rows, begin, learn, merge
from pairloom.data import load_dataset

SETS = "ijcnn1,a9a,covtype,adult,page-blocks0,magic,phoneme"
SHARDS, HELD_OUT, MOST, FEW = 8, 20_000, 110_000, 40_000


def load(name: str) -> tuple[Any, Any]:
    """Return the rows and labels of a set; of a table, the rarer class is positive."""
    if name == "toy":
        X = np.random.default_rng(0).normal(size=(9000, 4))
        return X, (np.square(X).sum(axis=1) > 6).astype(int)
    if name in ("ijcnn1", "a9a", "covtype"):
        data = load_dataset(name)
        X = data.X.toarray() if hasattr(data.X, "toarray") else data.X
        return np.asarray(X, np.float32), np.asarray(data.y)
    home = Path(os.environ["PAIRLOOM_DATA"])
    path = next(p for p in (home / "tables" / f"{name}.csv.xz", home / "keel" / f"{name}.csv.xz") if p.exists())
    frame = pd.read_csv(path, na_values=["?"])
    labels = frame.iloc[:, -1].astype(str).str.strip()
    X = frame.iloc[:, :-1]
    numbers = all(dtype.kind in "iufb" for dtype in X.dtypes)
    return X.to_numpy(float) if numbers else X, (labels == labels.value_counts().idxmin()).to_numpy().astype(int)


def take(X: Any, rows: Any) -> Any:
    """Return some rows of a frame or an array."""
    return X.iloc[rows].reset_index(drop=True) if hasattr(X, "iloc") else X[rows]


def split(name: str) -> tuple[Any, Any, Any, Any]:
    """Return rows and labels to learn, and those held out."""
    X, y = load(name)
    order = np.random.default_rng(0).permutation(len(y))
    held = min(len(y) // 4, HELD_OUT)
    test, own = order[:held], order[held:][:MOST]
    if len(own) < FEW and name not in ("a9a", "adult", "toy"):
        own = np.concatenate([np.random.default_rng(k).permutation(own) for k in range(-(-48_000 // len(own)))])
    return take(X, own), y[own], take(X, test), y[test]


def merged(base: Any, parts: list[Rows], heads: list[int], rounds: int) -> Any:
    """Return the model of shards that are merged in rounds."""
    sizes = [len(part) for part in parts]
    groups = shards_of([n - used for n, used in zip(sizes, heads, strict=True)], SHARDS)
    pieces, model = [pieces_of(group, sizes, heads, rounds) for group in groups], base
    for r in range(rounds):
        pace, learned = pace_of([sum(map(len, piece[r])) for piece in pieces]), []
        for number, piece in enumerate(pieces):
            part = model
            for k, one in enumerate(piece[r]):
                rows = parts[one.partition]
                part = learn(part, number, pace, one, rows.X, rows.y, {}, first=k == 0)
            learned += [part] if piece[r] else []
        model = merge(model, learned)
    return model


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--system", default="AUCClassifier", choices=["AUCClassifier", "FPOGD", "ExactAUC"])
    parser.add_argument("--rounds", default="1,2,3,5,10")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--scale", default=None, help="scaling of FPOGD and ExactAUC")
    options = parser.parse_args()
    system, names, turns = options.system, options.sets.split(","), [int(r) for r in options.rounds.split(",")]
    if options.toy:
        system, names, turns = "FPOGD", ["toy"], [1, 2]
    else:
        require_data()
    scale = {"scale": options.scale} if options.scale else {}
    headings = ["rows", "base", "one pass", *(f"{r} round{'s' * (r > 1)}" for r in turns)]
    table = make_table(f"{system}: AUC of {SHARDS} shards, minus that of one pass", ["set"], headings)
    for name in names:
        X, y, Xt, yt = split(name)
        task = getattr(estimators, system)(random_state=0, **scale).task()
        task = estimators.Spec(task.model, task.base_rows, sorted(set(y.tolist())))
        cuts = [k * len(y) // SHARDS for k in range(SHARDS + 1)]
        bounds = [slice(cuts[k], cuts[k + 1]) for k in range(SHARDS)]
        parts = [Rows(k, take(X, own), y[own], {}) for k, own in enumerate(bounds)]
        heads = even_sizes([len(part) for part in parts], task.base_rows)
        base = begin(task, [part.part(slice(0, n)) for part, n in zip(parts, heads, strict=True)])
        one = base.with_state(copy(base.state_))
        for part, n in zip(parts, heads, strict=True):
            if len(part) > n:
                one.partial_fit(take(part.X, slice(n, None)), part.y[n:])
        models = [base, one, *(merged(base, parts, heads, r) for r in turns)]
        first, best, *others = (roc_auc_score(yt == m.classes_[1], m.decision_function(Xt)) for m in models)
        table.add_row(name, f"{len(y):,}", f"{first:.4f}", f"{best:.4f}", *(f"{area - best:+.4f}" for area in others))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
