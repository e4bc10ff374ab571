"""Validation of user input: rows and weights become finite arrays, or an error says where and why they cannot."""

from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any

import numpy as np

from pairloom.base.csr import is_sparse
from pairloom.base.errors import InvalidDataError
from pairloom.base.typing import Array

MAX_VALUE = {"float32": 1e15, "float64": 1e100}
"""Products and sums of many squares of values up to these are finite; those of larger values may overflow."""

MAX_SQUARE = {dtype: value**2 for dtype, value in MAX_VALUE.items()}

MIN_WEIGHT, MAX_WEIGHT = 1e-100, 1e100
"""Weights are clipped to these: sums, squares and ratios of others might not be finite."""

NUMERIC_KINDS = "biuf"

MISSING_ADVICE = "Drop or impute missing values first, or pass a data frame with named columns, which may have them."
TEXT_ADVICE = ": pass a data frame with named columns, which may hold text and dates"


def checked_rows(X: Any, dtype: str, check: Callable[..., Any], *, nan: bool = False) -> Any:
    """Return X as finite rows of this dtype, dense or CSR; ``check``: a function of scikit-learn that accepts frames.

    ``nan``: dense values may be missing.
    """
    check_numeric("X", X)
    check_indices(X)
    try:
        with np.errstate(over="ignore"):  # overflow gives infinity, which is reported with the original value
            rows = check(X, accept_sparse="csr", dtype=dtype, order="C", ensure_all_finite=False)
    except OverflowError as error:
        raise ValueError(f"X has a number too large for float64: {error}") from None
    except (TypeError, ValueError):
        check_objects(X)
        raise
    check_indices(rows)
    check_finite(rows, dtype, X, nan=nan)
    return rows


def rows_of(X: Any, dtype: str, *, nan: bool = False) -> Any:
    """Return finite rows as a C-contiguous (n, d) array of this dtype, or as sorted CSR without explicit zeros.

    ``nan``: dense values may be missing.
    """
    check_numeric("X", X)
    check_indices(X)
    try:
        rows = as_rows(X, dtype)
    except OverflowError as error:
        raise ValueError(f"X has a number too large for float64: {error}") from None
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"X must have rows and columns, got shape {rows.shape}")
    check_finite(rows, dtype, X, nan=nan)
    return rows


def as_rows(X: Any, dtype: str) -> Any:
    """Return numbers as a C-contiguous array of this dtype, or as sorted CSR without duplicates and explicit zeros."""
    with np.errstate(over="ignore"):  # overflow gives infinity, which ``check_finite`` reports
        if not is_sparse(X):
            return np.ascontiguousarray(X, dtype=dtype)
        rows = X.tocsr().astype(dtype)
        check_indices(rows)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        return rows


def check_numeric(name: str, values: Any) -> None:
    """Raise ValueError for complex numbers, dates, text and masked values, which NumPy would convert to numbers.

    Data frames are not checked: each of their columns has its own type.
    """
    if is_sparse(values):
        if values.dtype.kind == "c":
            raise ValueError(f"Complex data not supported: {name} is sparse, of dtype {values.dtype}")
        return
    if column_names(values) is not None:
        return
    check_unmasked(name, values)
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths: scikit-learn reports them
        return
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        array = np.asarray(values, dtype=object)  # keeps numbers among the text as numbers
    kind = array.dtype.kind
    if kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {array.dtype}")
    if kind in "UST":
        where = _place((0,) * array.ndim)
        advice = TEXT_ADVICE if name == "X" else ""
        raise ValueError(f"{name} must contain numbers, got the text {array.flat[0]!s} at {where}{advice}")
    if kind in "Mm":
        raise ValueError(f"{name} must contain numbers, got {array.dtype}: convert dates to numbers first")
    if kind == "O":
        check_objects(array, name)


def check_unmasked(name: str, values: Any) -> None:
    """Raise ValueError for masked values, for which NumPy would use the values under the mask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        where = _place(np.argwhere(np.ma.getmaskarray(values))[0])
        raise ValueError(f"{name} is masked at {where}: drop or fill the masked values first")


def check_objects(X: Any, name: str = "X") -> None:
    """Raise ValueError for the first object in an array or frame that is missing, text, a date or a complex number."""
    array = np.asarray(X)
    if array.dtype.kind != "O":
        return
    for place, value in np.ndenumerate(array):
        if not isinstance(value, (float, np.ndarray)) and is_missing(value):
            where = _place(place, column_names(X))
            raise ValueError(f"Input {name} contains NaN at {where} ({value!r}). {MISSING_ADVICE}")
        if isinstance(value, (str, bytes, complex, np.datetime64)) or hasattr(value, "isoformat"):
            where, advice = _place(place, column_names(X)), TEXT_ADVICE if name == "X" else ""
            raise ValueError(f"{name} must contain numbers, got {value!r} at {where}{advice}")


def is_missing(value: Any) -> bool:
    """Return whether an object is a missing value: None, NaN, NaT or pandas' NA."""
    if isinstance(value, np.ndarray):
        return False
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # NA cannot be compared with itself
        return not hasattr(value, "__len__")  # nor can containers of arrays


def check_indices(X: Any) -> None:
    """Raise ValueError if sparse rows have an index out of range: compiled code would access it without a check."""
    if hasattr(X, "indptr"):
        if X.format == "csr" and X.nnz and len(X.indices) and X.indices.max() >= X.shape[1]:
            entry = int(np.argmax(X.indices >= X.shape[1]))
            row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
            raise ValueError(f"X stores column {X.indices[entry]} at row {row}, but has {X.shape[1]} columns")
        X.check_format(full_check=True)
    elif is_sparse(X) and hasattr(X, "coords") and X.nnz:
        for name, index, size in zip(("row", "column"), X.coords, X.shape, strict=True):
            if not 0 <= index.min() <= index.max() < size:
                raise ValueError(f"X stores {name} {index.max()}, but has {size} {name}s")


def column_names(X: Any) -> Any:
    """Return the column names of a frame of pandas, polars or pyarrow; None for anything else."""
    return getattr(X, "column_names", getattr(X, "columns", None))


def check_finite(X: Any, dtype: str, given: Any = None, names: Any = None, *, nan: bool = False) -> None:
    """Raise ValueError with the row and column of the first value that a model of this dtype does not accept.

    ``given``: the input from which X was made, whose numbers have not overflowed. ``nan``: dense values may be missing.
    """
    names = column_names(given) if names is None else names
    given = X if given is None else given
    if is_sparse(X):
        bad = np.flatnonzero(~(np.abs(X.data) <= MAX_VALUE[dtype]))
        if bad.size:
            row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
            raise _not_finite(given, dtype, row, int(X.indices[bad[0]]), names)
    # One cheap pass in the usual case: the comparison is False for NaN and infinity.
    elif not (X.size == 0 or bool(np.abs(X).max() <= MAX_VALUE[dtype])):
        places = np.argwhere(~((np.abs(X) <= MAX_VALUE[dtype]) | (nan & np.isnan(X))))
        if len(places):
            raise _not_finite(given, dtype, int(places[0, 0]), int(places[0, 1]), names)


def _not_finite(given: Any, dtype: str, row: int, column: int, names: Any) -> InvalidDataError:
    value = (given.tocsr() if is_sparse(given) else np.asarray(given))[row, column]
    value = np.nan if is_missing(value) else float(value)
    where = f", {_column(column, names)}"
    if np.isnan(value):
        return InvalidDataError("Input X contains NaN", row=row, then=where, python=f". {MISSING_ADVICE}")
    if np.isinf(value):
        return InvalidDataError("Input X contains infinity", row=row, then=where)
    return too_large(f"Input X contains {value:g}", row, where, dtype)


def too_large(what: str, row: int, where: str, dtype: str) -> InvalidDataError:
    """Return the error for a finite number that is too large for a model of this dtype."""
    advice, wider = ": scale the column", dtype == "float32"
    return InvalidDataError(
        what, row=row, then=f"{where}, too large for {dtype}, which allows up to {MAX_VALUE[dtype]:g}",
        python=advice + (", or use dtype='float64'" if wider else ""),
        command=advice + (", or fit with --set dtype=float64" if wider else ""),
    )  # fmt: skip


def _place(index: Any, names: Any = None) -> str:
    """Return the row and column of an entry for a message."""
    row = f"row {index[0]}" if len(index) else "row 0"
    return row if len(index) < 2 else f"{row}, {_column(index[1], names)}"


def _column(column: int, names: Any) -> str:
    return f"column {column}" + (f" ({names[column]!r})" if names is not None else "")


def named_row(x: Any) -> Any:
    """Return a row of a pandas frame as a mapping from its names, or as an array without names; others unchanged."""
    if not (hasattr(x, "to_dict") and hasattr(x, "index")) or isinstance(x, Mapping):
        return x
    return x.to_dict() if any(isinstance(name, str) for name in x.index) else x.to_numpy()


def row_of(x: Any, n_features: int | None, names: Any, dtype: str, *, nan: bool = False) -> Array:
    """Return one row, a sequence or a mapping from column names, as a finite (1, d) array; ``nan`` allows NaN."""
    if type(x) not in (np.ndarray, list, tuple):
        x = named_row(x)
        if isinstance(x, Mapping):
            raise ValueError("this model learned rows without column names: pass the values in order, not a mapping")
    row = np.asarray(x)
    kind = row.dtype.kind
    if kind in "Mm":
        check_numeric("a row", row)
    if kind not in NUMERIC_KINDS or isinstance(x, np.ma.MaskedArray):
        row = _as_numbers(x, names)
    if row.ndim != 1 or row.size == 0 or (n_features is not None and row.size != n_features):
        raise ValueError(f"expected one row of {n_features or 'at least one'} values, got shape {row.shape}")
    row = row.astype(float, copy=False)
    # The sum of squares bounds every value, at a third of the cost of looking at each. NaN fails the comparison.
    with np.errstate(over="ignore"):
        square = row.dot(row)
    if not square <= MAX_SQUARE[dtype]:
        check_finite(row[None, :], dtype, names=names, nan=nan)
    return row.astype(dtype)[None, :]


def _as_numbers(x: Any, names: Any) -> Array:
    """Convert values that NumPy did not recognise as numbers; ValueError with the first that is not a number."""
    check_numeric("a row", np.ma.atleast_2d(x) if isinstance(x, np.ma.MaskedArray) else ())
    # Keep a list: an array of text would turn its numbers into text as well.
    values = x if isinstance(x, (list, tuple)) else np.asarray(x).ravel().tolist()
    for column, value in enumerate(values):
        if not isinstance(value, Number) or isinstance(value, complex):
            raise ValueError(f"a row must contain numbers only, got {value!r} in {_column(column, names)}")
    try:
        return np.asarray(x, dtype=float)
    except OverflowError as error:
        raise ValueError(f"a row has a number too large for float64: {error}") from None


def check_weight(sample_weight: Any, n: int) -> Array:
    """Return weights as float64, 0 or clipped to 1e-100 ... 1e100; ones if ``sample_weight`` is None."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight)
    if weight.dtype.kind not in NUMERIC_KINDS or isinstance(sample_weight, np.ma.MaskedArray):
        check_numeric("sample_weight", sample_weight)
    try:
        weight = weight.astype(float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"sample_weight must contain numbers, got dtype {weight.dtype}") from None
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, but X has {n} rows")
    bad = np.flatnonzero(~((weight >= 0) & (weight < np.inf)))
    if bad.size:
        raise InvalidDataError(
            f"sample_weight must be finite and not negative; it is {weight[bad[0]]}", row=int(bad[0])
        )
    return np.where(weight > 0, np.clip(weight, MIN_WEIGHT, MAX_WEIGHT), 0.0)


def one_weight(sample_weight: Any) -> Array:
    """Return ``check_weight`` of one row, quickly if it is 1."""
    plain = isinstance(sample_weight, (int, float)) and sample_weight == 1
    return np.array([1.0]) if plain else check_weight([sample_weight], 1)


def positive_rows(weight: Array, *, may_be_none: bool) -> Array | None:
    """Return a mask of the rows with positive weight; None if all weights are positive."""
    keep = weight > 0
    if keep.all():
        return None
    if not keep.any() and not may_be_none:
        raise ValueError("all sample weights are zero: there is nothing to learn")
    return np.asarray(keep)
