"""Data sets by name: read, with binary labels, and checked against their known shapes."""

import bz2
import gzip
import lzma
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pairloom.base.checks import check_choice
from pairloom.base.typing import Array
from pairloom.data.catalogue import DATASETS, Source
from pairloom.data.files import DataFolders, data_folders, fetch_files

OPENERS: dict[str, Any] = {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set in memory.

    Parameters
    ----------
    X : raw features, float64; a CSR matrix for the sparse sets, otherwise an array
    y : -1 or +1 for each row
    source : the files, in the order of the rows
    """

    name: str
    X: Any = field(repr=False)
    y: Array = field(repr=False)
    n_features: int
    n_positive: int
    n_negative: int
    source: tuple[Path, ...]


def load_dataset(name: str, *, data_home: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Load one of the paper's eight data sets, or of two more, with raw features and labels -1 and +1.

    Rows are in the order of the files, which is often sorted: shuffle them before use as a stream. Features are
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

    Two more sparse sets (CSR), train then test, cannot be downloaded: ``rcv1.subset`` (1,500 x 47,236, 704 positive:
    topic CCAT) and ``reuters.moneyfx`` (11,069 x 8,315, 717 positive: topic money-fx). ``rcv1.subset`` is not the
    paper's rcv1: it has a different task, different weights, and 1,500 documents.

    Files are searched in ``data_home``, in the folder that the environment variable ``PAIRLOOM_DATA`` names, and in
    the user's cache; otherwise they are downloaded from the LIBSVM page into the cache. The SHA-256 of a download is
    recorded, and checked whenever the file is used again. Rows, columns and class counts are checked after reading.

    Parameters
    ----------
    name
        A key of ``DATASETS``.
    data_home
        A folder of LIBSVM files, searched first.
    download
        Whether a file that is not found may be downloaded.

    Raises
    ------
    FileNotFoundError : a file was neither found nor downloaded
    ImportError : a download needs pooch, which is not installed
    ValueError : unknown name, or a file with unexpected content

    Example
    -------
    With the file or a network connection::

        data = load_dataset("german")
        order = np.random.default_rng(0).permutation(len(data.y))
        FPOGD(scale="minmax").fit(data.X[order], data.y[order])
    """
    check_choice("name", name, DATASETS)
    return load(DATASETS[name], data_folders(data_home), may_download=download)


def fetch_dataset(
    name: str, *, data_home: str | os.PathLike[str] | None = None, download: bool = True
) -> tuple[Path, ...]:
    """Return the files of a data set, found or downloaded; parameters and errors as in :func:`load_dataset`."""
    check_choice("name", name, DATASETS)
    return fetch_files(DATASETS[name], data_folders(data_home), may_download=download)


def load(source: Source, folders: DataFolders, *, may_download: bool = True) -> Dataset:
    """Read and check all files of a source, which need not be in the catalogue."""
    from scipy.sparse import vstack  # imported here: readers of other files do not need it

    paths = fetch_files(source, folders, may_download=may_download)
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


def _counts(n_negative: int, n_positive: int) -> str:
    return f"{n_negative + n_positive:,} rows, {n_negative:,} negative and {n_positive:,} positive"


def _read(path: Path, source: Source) -> tuple[Any, Array]:
    """Return the features of one file as CSR, and its labels as -1 and +1."""
    from sklearn.datasets import load_svmlight_file  # imported here: this takes longer than reading most files

    with OPENERS.get(path.suffix, open)(path, "rb") as lines:
        try:
            X, labels = load_svmlight_file(lines, zero_based=False)
        except (ValueError, OSError, EOFError, lzma.LZMAError) as error:
            raise ValueError(
                f"{path} cannot be read as a LIBSVM file ({error}): replace it, or delete it to download it again"
            ) from error
    if X.shape[1] > source.n_features:
        raise ValueError(f"{path}: found {X.shape[1]:,} columns; expected {source.n_features:,}. Is it another file?")
    X.resize(X.shape[0], source.n_features)  # the last columns of a file may be all zero
    return X, _binarise(labels, source.labels, path)


def _binarise(labels: Array, known: tuple[int, ...], path: Path) -> Array:
    """Return -1 for the first half of the known labels, +1 for the second."""
    unknown = np.flatnonzero(~np.isin(labels, known))
    if unknown.size:
        row = unknown[0]
        raise ValueError(
            f"{path}: found label {labels[row]:g} in row {row + 1:,}; expected one of {', '.join(map(str, known))}"
        )
    return np.where(labels < known[len(known) // 2], -1, 1)
