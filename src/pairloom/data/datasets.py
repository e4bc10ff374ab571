"""Data sets by name: found or downloaded, read, binarised, and checked against what is known of them."""

import bz2
import gzip
import lzma
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from pairloom.base.checks import check_choice
from pairloom.base.typing import Array
from pairloom.data.catalogue import DATASETS, Part, Source
from pairloom.data.download import check_unchanged, fetch
from pairloom.data.places import VARIABLE, Places, usual_places

OPENERS: dict[str, Any] = {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set in memory.

    Parameters
    ----------
    X : raw features, float64; a CSR matrix for the sparse sets, otherwise an array
    y : -1 or +1 for each row
    source : the file or files that were read, in the order of the rows
    """

    name: str
    X: Any = field(repr=False)
    y: Array = field(repr=False)
    n_features: int
    n_positive: int
    n_negative: int
    source: tuple[Path, ...]


def load_dataset(name: str, *, data_home: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """One of the paper's eight data sets, or of two more, with raw features and labels -1 and +1.

    Rows come in the order of the files, which is often sorted: shuffle before you call it a stream. Features are
    neither scaled nor normalised. Of the sorted labels, the first half is negative and the second half positive.

    ========= ======= ====== ========================================= ======================================
    name         rows      d positive (+1)                             files
    ========= ======= ====== ========================================= ======================================
    diabetes      768      8 500: **no** diabetes, the sign of LIBSVM  unscaled
    german      1,000     24 300: bad credit risk                      unscaled
    usps        9,298    256 3,871: digits 5 to 9                      train, then test
    rcv1       20,242 47,236 10,491: topics CCAT and ECAT              train; CSR
    a9a        32,561    123 7,841: income over 50K                    train
    mnist      60,000    784 29,404: digits 5 to 9                     train, 0 to 255; LIBSVM counts 780
                                                                       columns, the last four are always 0
    ijcnn1    141,691     22 13,565                                    train, then test
    covtype   581,012     54 283,301: lodgepole pine                   unscaled
    ========= ======= ====== ========================================= ======================================

    Two more sparse sets (CSR), train then test, are read from a data folder only: ``rcv1.subset`` (1,500 x 47,236, 704
    positive: topic CCAT) and ``reuters.moneyfx`` (11,069 x 8,315, 717 positive: topic money-fx). Do not take
    ``rcv1.subset`` for the paper's rcv1: it has another task, other weights, and 1,500 documents.

    A file is looked for in ``data_home``, in the folder that the environment variable ``PAIRLOOM_DATA`` names, and in
    the user's cache; otherwise it is downloaded from the LIBSVM page into the cache. The SHA-256 of a download is
    recorded, and checked whenever the file is used again. Rows, columns and class counts are checked after reading.

    Parameters
    ----------
    name
        A key of ``DATASETS``.
    data_home
        A folder of LIBSVM files, looked at first.
    download
        Whether a file that is in none of the places may be downloaded.

    Raises
    ------
    FileNotFoundError : a file is in none of the places and was not downloaded; says what is expected where
    ImportError : a download needs pooch, which is not installed; says how to get it
    ValueError : unknown name, or a file that does not hold what it should

    Example
    -------
    With the file at hand, or a network::

        data = load_dataset("german")
        order = np.random.default_rng(0).permutation(len(data.y))
        FPOGD(scale="minmax").fit(data.X[order], data.y[order])
    """
    check_choice("name", name, DATASETS)
    return load(DATASETS[name], usual_places(data_home), may_download=download)


def load(source: Source, places: Places, *, may_download: bool = True) -> Dataset:
    """Read and check all files of a source, which need not be in the catalogue."""
    from scipy.sparse import vstack  # here: readers of other files need not wait for it

    paths = obtain(source, places, may_download=may_download)
    read = [_read(path, source) for path in paths]
    X = vstack([X for X, _ in read], format="csr")
    y = np.concatenate([y for _, y in read])
    found, expected = (int(np.sum(y < 0)), int(np.sum(y > 0))), (source.n_negative, source.n_positive)
    if found != expected:
        raise ValueError(
            f"data set {source.name!r}, read from {', '.join(map(str, paths))}: found {_counts(*found)}; "
            f"expected {_counts(*expected)}. Replace the file by the original"
        )
    return Dataset(
        name=source.name,
        X=X if source.sparse else X.toarray(),
        y=y,
        n_features=source.n_features,
        n_positive=source.n_positive,
        n_negative=source.n_negative,
        source=paths,
    )


def obtain(source: Source, places: Places, *, may_download: bool = True) -> tuple[Path, ...]:
    """The files of a source, found or downloaded, not read; FileNotFoundError says what is expected where."""
    return tuple(_obtain(source, part, places, may_download) for part in source.parts)


def _counts(n_negative: int, n_positive: int) -> str:
    return f"{n_negative + n_positive:,} rows, {n_negative:,} negative and {n_positive:,} positive"


def _obtain(source: Source, part: Part, places: Places, may_download: bool) -> Path:
    """The file, found or downloaded."""
    path = places.find(part)
    if path is not None:
        if path.parent == places.cache:
            check_unchanged(path)
        return path
    if part.url is None:
        raise FileNotFoundError(_absent(source, part, places, "It is on no page to download it from."))
    if not may_download:
        raise FileNotFoundError(_absent(source, part, places, f"download=False: it was not fetched from {part.url}."))
    try:
        return fetch(part.url, places.cache)
    except OSError as error:  # no network, or an address that is gone
        why = f"The download of {part.url} failed: {error}."
        raise FileNotFoundError(_absent(source, part, places, why)) from error


def _absent(source: Source, part: Part, places: Places, why: str) -> str:
    return (
        f"data set {source.name!r}: there is no file {' or '.join(part.names)} in\n{places.describe()}\n{why}\n"
        f"Put the file into one of these folders, or set {VARIABLE} to the folder that holds it"
    )


def _read(path: Path, source: Source) -> tuple[Any, Array]:
    """Features of one file as CSR, and its labels as -1 and +1."""
    from sklearn.datasets import load_svmlight_file  # here: it takes longer to import than most files to read

    with _open(path) as lines:
        try:
            X, labels = load_svmlight_file(lines, zero_based=False)
        except (ValueError, OSError, EOFError, lzma.LZMAError) as error:
            raise ValueError(
                f"{path} cannot be read as a LIBSVM file ({error}): replace it, or delete it to download it again"
            ) from error
    if X.shape[1] > source.n_features:
        raise ValueError(f"{path}: found {X.shape[1]:,} columns; expected {source.n_features:,}. Is it another file?")
    # Files often do not use their last columns.
    X.resize(X.shape[0], source.n_features)
    return X, _binarise(labels, source.labels, path)


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, OPENERS.get(path.suffix, open)(path, "rb"))


def _binarise(labels: Array, known: tuple[int, ...], path: Path) -> Array:
    """-1 for the first half of the known labels, +1 for the second."""
    strange = np.flatnonzero(~np.isin(labels, known))
    if strange.size:
        row = strange[0]
        raise ValueError(
            f"{path}: found label {labels[row]:g} in row {row + 1:,}; expected one of {', '.join(map(str, known))}"
        )
    return np.where(labels < known[len(known) // 2], -1, 1)
