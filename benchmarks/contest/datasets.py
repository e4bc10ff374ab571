"""The data sets in three groups: shuffled rows, and the usual scaling of their columns."""

import lzma
import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_svmlight_file
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from contest.keel import half, read_keel


@dataclass(frozen=True)
class Data:
    """A binary task. Labels above ``cut`` are positive; ``unit`` is the largest grey value of pixels.

    ``group``: "sets" for all rows of LIBSVM files, "keel" for a KEEL data set, "halves" for the half of the shuffled
    rows of LIBSVM files that was not used for any choice.
    """

    name: str
    title: str
    n_rows: int
    n_features: int
    files: tuple[str, ...] = ()
    cut: float = 0.0
    unit: float | None = None
    group: str = "sets"

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        """Return shuffled rows and labels; for a half, the unseen ones in the same order."""
        X, y = self.in_order()
        order = np.random.default_rng(0).permutation(len(y))
        if self.group == "halves":
            order = order[half(len(y), to_choose=False)]
        return X[order], (y > self.cut)[order].astype(int)

    def in_order(self) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and labels in file order."""
        if self.group == "keel":
            return read_keel(self.name)
        if not self.files:
            X, y = load_breast_cancer(return_X_y=True)
            return X, y
        folder = Path(os.environ["PAIRLOOM_DATA"])
        parts = [self._part(folder / file) for file in self.files]
        return np.vstack([rows for rows, _ in parts]), np.concatenate([labels for _, labels in parts])

    def _part(self, path: Path) -> tuple[np.ndarray, np.ndarray]:
        with lzma.open(path) as stream:
            X, y = load_svmlight_file(stream, n_features=self.n_features, zero_based=False)
        return X.toarray(), y

    def scaler(self) -> Any:
        """Return the scaler for contestants that do not scale: pixels to [-1, 1], other columns standardised."""
        return StandardScaler() if self.unit is None else FunctionTransformer(partial(np.multiply, 1.0 / self.unit))


DATASETS = (
    Data("diabetes", "diabetes", 768, 8, ("diabetes.xz",)),
    Data("german", "german", 1_000, 24, ("german.numer.xz",)),
    Data("usps", "usps, 0-4 against 5-9", 9_298, 256, ("usps.train.xz", "usps.test.xz"), cut=5.5, unit=1.0),
    Data("ijcnn1", "ijcnn1, train", 49_990, 22, ("ijcnn1.train.xz",)),
    Data("a9a", "a9a, train + test", 48_842, 123, ("a9a.xz", "a9a.t.xz")),
    Data("mnist", "mnist, 0-4 against 5-9", 60_000, 784, ("mnist.train.xz",), cut=4.5, unit=255.0),
    Data("covtype", "covtype", 581_012, 54, ("covtype.binary.xz",), cut=1.5),
)
KEEL = tuple(
    Data(name, name, n_rows, n_features, group="keel")
    for name, n_rows, n_features in (
        ("abalone9-18", 731, 10),
        ("crx", 653, 46),
        ("flare-F", 1_066, 19),
        ("mushroom", 5_644, 98),
        ("segment0", 2_308, 19),
        ("titanic", 2_201, 3),
        ("winequality-red-4", 1_599, 11),
    )
)
"""The reported KEEL data sets; columns are counted after one-hot encoding."""

HALVES = tuple(
    replace(one, name=f"{one.name}-half", title=f"{one.title}, unseen half", n_rows=-(-one.n_rows // 2), group="halves")
    for one in DATASETS
    if one.n_rows > 5_000
)
GROUPS = {"sets": DATASETS, "keel": KEEL, "halves": HALVES}
TOY = (Data("toy", "breast cancer", 569, 30, cut=0.5),)
