"""The data sets in five groups: shuffled rows, and the usual scaling of their columns."""

import lzma
import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_svmlight_file
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from contest.keel import CHOSEN_BY, REPORTED, half, read_keel, read_raw
from contest.records import FOLDS
from contest.tables import made_table, one_hot, read_rare, read_table, take

READERS = {"tables": read_table, "streams": read_table, "rare": read_rare, "KEEL": read_raw}
MAX_ROWS = 60_000
"""Of a data set with raw columns; those above ``TWO_FOLDS`` rows have two folds instead of three."""
TWO_FOLDS = 30_000


@dataclass(frozen=True)
class Data:
    """A binary task. Labels above ``cut`` are positive; ``unit`` is the largest grey value of pixels.

    ``group``: "sets" for all rows of LIBSVM files, "keel" for a KEEL data set, "halves" for the half of the shuffled
    rows of LIBSVM files that was not used for any choice. ``window``: rows of a window, if rows are scored and then
    learned in file order.
    """

    name: str
    title: str
    n_rows: int
    n_features: int
    files: tuple[str, ...] = ()
    cut: float = 0.0
    unit: float | None = None
    group: str = "sets"
    window: int | None = None

    @property
    def folds(self) -> int:
        return FOLDS

    def read(self) -> tuple[Any, np.ndarray]:
        """Return shuffled rows and labels; for a half, its own in the same order."""
        X, y = self.in_order()
        rows = self.rows(len(y))
        return take(X, rows), (y > self.cut)[rows].astype(int)

    def rows(self, n: int) -> np.ndarray:
        """Return which of the n rows take part, in the order in which they are learned."""
        order = np.random.default_rng(0).permutation(n)
        return order[half(n, to_choose=False)] if self.group == "halves" else order

    def in_order(self) -> tuple[Any, np.ndarray]:
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


@dataclass(frozen=True)
class Raw(Data):
    """A data set with its raw columns: text and missing values where it has them.

    ``group``: "choosing" if rules may be chosen with it, otherwise "reporting"; ``kind``: "tables", "streams" (tables
    in their own order), "rare" (ADBench), "KEEL" or "halves" (of LIBSVM files). ``source``: the name of the file, or
    empty for simulated payments; ``without``: columns that are left out.
    """

    kind: str = "tables"
    source: str = ""
    without: tuple[str, ...] = ()

    @property
    def folds(self) -> int:
        return 1 if self.window else 2 if self.n_rows > TWO_FOLDS else 3

    def rows(self, n: int) -> np.ndarray:
        if self.window:
            return np.arange(n)
        order = super().rows(n)
        if self.kind == "halves":
            order = order[half(n, to_choose=self.group == "choosing")]
        return order[:MAX_ROWS]

    def in_order(self) -> tuple[Any, np.ndarray]:
        if self.files:
            return super().in_order()
        X, y = READERS[self.kind](self.source) if self.source else made_table()
        return X.drop(columns=[*self.without]) if self.without else X, y

    def scaler(self) -> Any:
        return super().scaler() if self.kind in ("halves", "rare") else one_hot()


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

KEEL_SHAPES = {
    "abalone9-18": (731, 8), "car-good": (1_728, 6), "contraceptive": (1_473, 9), "crx": (653, 15),
    "ecoli3": (336, 7), "flare-F": (1_066, 11), "haberman": (306, 3), "kddcup-land_vs_satan": (1_610, 41),
    "kr-vs-k-zero_vs_eight": (1_460, 6), "magic": (19_020, 10), "mushroom": (5_644, 22), "page-blocks0": (5_472, 10),
    "phoneme": (5_404, 5), "poker-8-9_vs_6": (1_485, 10), "segment0": (2_308, 19), "spambase": (4_597, 57),
    "titanic": (2_201, 3), "vehicle1": (846, 18), "winequality-red-4": (1_599, 11), "yeast1": (1_484, 8),
    "yeast4": (1_484, 8),
}  # fmt: skip
"""Rows and raw columns of all KEEL data sets."""

HALVES = tuple(
    replace(one, name=f"{one.name}-half", title=f"{one.title}, unseen half", n_rows=-(-one.n_rows // 2), group="halves")
    for one in DATASETS
    if one.n_rows > 5_000
)


def _keel(names: tuple[str, ...], group: str) -> tuple[Raw, ...]:
    shapes = [KEEL_SHAPES[name] for name in names]
    return tuple(
        Raw(f"{name}-raw", f"{name}, raw columns", *shape, group=group, kind="KEEL", source=name)
        for name, shape in zip(names, shapes, strict=True)
    )


def _halves(ending: str, title: str, group: str) -> tuple[Raw, ...]:
    return tuple(
        Raw(**vars(one) | {
            "name": one.name.replace("half", ending), "title": one.title.replace("unseen half", title),
            "n_rows": min(one.n_rows, MAX_ROWS), "group": group, "kind": "halves",
        })
        for one in HALVES
    )  # fmt: skip


CHOOSING = (
    Raw("adult", "adult", 32_561, 14, group="choosing", source="adult"),
    Raw("shoppers", "shoppers", 12_330, 17, group="choosing", source="shoppers"),
    Raw("ai4i", "ai4i", 10_000, 6, group="choosing", source="ai4i", without=("UDI", "Product ID")),
    Raw("ALOI", "ALOI", 49_534, 27, group="choosing", kind="rare", source="ALOI"),
    Raw("mammography", "mammography", 11_183, 6, group="choosing", kind="rare", source="mammography"),
    Raw("annthyroid", "annthyroid", 7_200, 6, group="choosing", kind="rare", source="annthyroid"),
    *_keel(CHOSEN_BY, "choosing"),
    *_halves("choose", "half for choices", "choosing"),
)
"""Rules and defaults may be chosen with these."""

REPORTING = (
    Raw("bank", "bank", 41_188, 16, group="reporting", source="bank"),
    Raw("bank-before", "bank without duration", 41_188, 15, group="reporting", source="bank", without=("duration",)),
    Raw("elec", "elec, in order", 45_312, 6, group="reporting", window=1_000, kind="streams", source="elec"),
    Raw("weather", "weather, in order", 18_159, 8, group="reporting", window=1_000, kind="streams", source="weather"),
    Raw("shuttle", "shuttle", 49_097, 9, group="reporting", kind="rare", source="shuttle"),
    Raw("fault", "fault", 1_941, 27, group="reporting", kind="rare", source="fault"),
    *_keel(REPORTED, "reporting"),
    *_halves("report", "unseen half, raw", "reporting"),
)
"""No rule or default may be chosen with these."""

PANELS = tuple(one for one in (*CHOOSING, *REPORTING) if one.kind in ("tables", "streams", "rare"))
"""Those of the figure."""

GROUPS = {"sets": DATASETS, "keel": KEEL, "halves": HALVES, "choosing": CHOOSING, "reporting": REPORTING}
TOY = (Data("toy", "breast cancer", 569, 30, cut=0.5),)
TOY_RAW = (
    Raw("toy-table", "payments", 300, 3, group="choosing"),
    Raw("toy-stream", "payments, in order", 300, 3, group="choosing", window=100, kind="streams"),
)
