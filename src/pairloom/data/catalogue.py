"""Data sets known by name: their files, URLs, shapes and class counts."""

from dataclasses import dataclass
from posixpath import basename

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"


@dataclass(frozen=True)
class Part:
    """One file of a data set.

    Parameters
    ----------
    file : its name in a data folder; the suffix is that of the compression (.xz, .bz2, .gz) or plain text
    url : its URL for download; None if there is none
    """

    file: str
    url: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """File names to search for, in this order.

        >>> DATASETS["ijcnn1"].parts[1].names
        ('ijcnn1.test.xz', 'ijcnn1.t.bz2')
        """
        return (self.file,) if self.url is None else (self.file, basename(self.url))


@dataclass(frozen=True)
class Source:
    """Description of a data set.

    Parameters
    ----------
    parts : its files, in the order of the rows
    n_features : columns
    n_negative, n_positive : rows of each class, over all files
    labels : all labels, increasing; the first half is negative, the second half positive
    sparse : whether the features stay a CSR matrix

    >>> DATASETS["usps"].n_rows
    9298
    """

    name: str
    parts: tuple[Part, ...]
    n_features: int
    n_negative: int
    n_positive: int
    labels: tuple[int, ...] = (-1, 1)
    sparse: bool = False

    @property
    def n_rows(self) -> int:
        """Rows over all files."""
        return self.n_negative + self.n_positive


def _part(file: str, remote: str) -> Part:
    return Part(file, f"{LIBSVM}/{remote}")


_SOURCES = (
    Source("diabetes", (_part("diabetes.xz", "binary/diabetes"),), 8, n_negative=268, n_positive=500),
    Source("german", (_part("german.numer.xz", "binary/german.numer"),), 24, n_negative=700, n_positive=300),
    Source(
        "usps",
        (_part("usps.train.xz", "multiclass/usps.bz2"), _part("usps.test.xz", "multiclass/usps.t.bz2")),
        256, n_negative=5_427, n_positive=3_871, labels=tuple(range(1, 11)),
    ),
    Source(
        "rcv1",
        (_part("rcv1.binary.xz", "binary/rcv1_train.binary.bz2"),),
        47_236, n_negative=9_751, n_positive=10_491, sparse=True,
    ),
    Source("a9a", (_part("a9a.xz", "binary/a9a"),), 123, n_negative=24_720, n_positive=7_841),
    Source(
        "mnist",
        (_part("mnist.train.xz", "multiclass/mnist.bz2"),),
        784, n_negative=30_596, n_positive=29_404, labels=tuple(range(10)),
    ),
    Source(
        "ijcnn1",
        (_part("ijcnn1.train.xz", "binary/ijcnn1.bz2"), _part("ijcnn1.test.xz", "binary/ijcnn1.t.bz2")),
        22, n_negative=128_126, n_positive=13_565,
    ),
    # Label 2 is lodgepole pine. If the labels of a file are swapped, the class counts do not match.
    Source(
        "covtype",
        (_part("covtype.binary.xz", "binary/covtype.libsvm.binary.bz2"),),
        54, n_negative=297_711, n_positive=283_301, labels=(1, 2),
    ),
    Source(
        "rcv1.subset",
        (Part("rcv1.subset.train.xz"), Part("rcv1.subset.test.xz")),
        47_236, n_negative=796, n_positive=704, sparse=True,
    ),
    Source(
        "reuters.moneyfx",
        (Part("reuters.moneyfx.train.xz"), Part("reuters.moneyfx.test.xz")),
        8_315, n_negative=10_352, n_positive=717, sparse=True,
    ),
)  # fmt: skip

DATASETS = {source.name: source for source in _SOURCES}
"""The paper's eight data sets, in its order, then two more sparse ones."""
