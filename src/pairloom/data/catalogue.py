"""The data sets that are known by name: their files, where these come from, and the counts they must have."""

from dataclasses import dataclass
from posixpath import basename

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"


@dataclass(frozen=True)
class Part:
    """One file of a data set.

    Parameters
    ----------
    file : its name in a data folder; the suffix says how it is compressed (.xz, .bz2, .gz, otherwise plain text)
    url : where it can be downloaded, under the name that the address ends in; None: nowhere
    """

    file: str
    url: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """File names under which it is looked for, in this order.

        >>> DATASETS["ijcnn1"].parts[1].names
        ('ijcnn1.test.xz', 'ijcnn1.t.bz2')
        """
        return (self.file,) if self.url is None else (self.file, basename(self.url))


@dataclass(frozen=True)
class Source:
    """What is known of a data set before it is read.

    Parameters
    ----------
    parts : its files, to be read one after the other
    n_features : columns
    n_negative, n_positive : rows of each class, over all files
    labels : all labels that the files hold, rising; the first half is negative, the second half positive
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


def _binary(file: str, remote: str) -> Part:
    return Part(file, f"{LIBSVM}/binary/{remote}")


def _multiclass(file: str, remote: str) -> Part:
    return Part(file, f"{LIBSVM}/multiclass/{remote}")


_SOURCES = (
    Source("diabetes", (_binary("diabetes.xz", "diabetes"),), 8, n_negative=268, n_positive=500),
    Source("german", (_binary("german.numer.xz", "german.numer"),), 24, n_negative=700, n_positive=300),
    Source(
        "usps",
        (_multiclass("usps.train.xz", "usps.bz2"), _multiclass("usps.test.xz", "usps.t.bz2")),
        256, n_negative=5_427, n_positive=3_871, labels=tuple(range(1, 11)),
    ),
    Source(
        "rcv1",
        (_binary("rcv1.binary.xz", "rcv1_train.binary.bz2"),),
        47_236, n_negative=9_751, n_positive=10_491, sparse=True,
    ),
    Source("a9a", (_binary("a9a.xz", "a9a"),), 123, n_negative=24_720, n_positive=7_841),
    Source(
        "mnist",
        (_multiclass("mnist.train.xz", "mnist.bz2"),),
        784, n_negative=30_596, n_positive=29_404, labels=tuple(range(10)),
    ),
    Source(
        "ijcnn1",
        (_binary("ijcnn1.train.xz", "ijcnn1.bz2"), _binary("ijcnn1.test.xz", "ijcnn1.t.bz2")),
        22, n_negative=128_126, n_positive=13_565,
    ),
    # Label 2 is lodgepole pine. Should LIBSVM's own file have the two labels the other way round, the counts tell.
    Source(
        "covtype",
        (_binary("covtype.binary.xz", "covtype.libsvm.binary.bz2"),),
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
