"""The edge: whatever users pass becomes a finite C-contiguous array here, or an error that says where it failed."""

from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any

import numpy as np

from pairloom.base.refusal import Refusal
from pairloom.base.typing import Array

LARGEST = {"float32": 1e15, "float64": 1e100}
"""Products and sums of many squares of values up to these are still numbers; of larger ones they may overflow."""

LIGHTEST, HEAVIEST = 1e-100, 1e100
"""Weights beyond these count as these: sums, squares and ratios of others may be no numbers."""

NUMERIC = "biuf"

FILL = "Drop or impute missing values first, or name the columns, in a data frame, whose gaps are taken as they are."
NAME = "name the columns, in a data frame, to have text and dates taken as they are"


def checked_rows(X: Any, dtype: str, check: Callable[..., Any], *, nan: bool = False) -> Any:
    """X as finite rows of this dtype, dense or CSR; ``check`` is one of scikit-learn's, which also takes frames.

    ``nan``: dense values may be missing.
    """
    refuse_other_kinds("X", X)
    check_indices(X)
    try:
        with np.errstate(over="ignore"):  # what overflows is infinite, and reported with what was given
            rows = check(X, accept_sparse="csr", dtype=dtype, order="C", ensure_all_finite=False)
    except OverflowError as error:
        raise ValueError(f"X holds a number beyond all doubles: {error}") from None
    except (TypeError, ValueError):
        refuse_text(X)
        raise
    check_indices(rows)
    check_finite(rows, dtype, X, nan=nan)
    return rows


def refuse_other_kinds(name: str, values: Any) -> None:
    """Raise ValueError for complex numbers, dates, text and masked values, which NumPy would turn into numbers.

    Not in frames: their columns have kinds of their own.
    """
    if hasattr(values, "tocsr"):
        if values.dtype.kind == "c":
            raise ValueError(f"Complex data not supported: {name} is sparse, of dtype {values.dtype}")
        return
    if column_names(values) is not None:
        return
    refuse_masked(name, values)
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths: scikit-learn says so
        return
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        array = np.asarray(values, dtype=object)  # where numbers among the text are still numbers
    kind = array.dtype.kind
    if kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {array.dtype}")
    if kind in "UST":
        where = _place((0,) * array.ndim)
        raise ValueError(f"{name} must hold numbers, got the text {array.flat[0]!s} at {where}{_hint(name)}")
    if kind in "Mm":
        raise ValueError(f"{name} must hold numbers, got {array.dtype}: turn dates into numbers first")
    if kind == "O":
        refuse_text(array, name)


def refuse_masked(name: str, values: Any) -> None:
    """Raise ValueError for masked values, which NumPy would take for those under the mask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        where = _place(np.argwhere(np.ma.getmaskarray(values))[0])
        raise ValueError(f"{name} is masked at {where}: drop or fill the masked values first")


def is_missing(value: Any) -> bool:
    """Whether an object stands for a missing value: None, NaN, NaT, pandas' NA."""
    if isinstance(value, np.ndarray):
        return False
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # NA does not even say whether it equals itself
        return not hasattr(value, "__len__")  # nor do containers


def refuse_text(X: Any, name: str = "X") -> None:
    """Raise ValueError naming the first entry of objects, or of a frame, that is text, a date or a complex number."""
    array = np.asarray(X)
    if array.dtype.kind != "O":
        return
    for place, value in np.ndenumerate(array):
        if not isinstance(value, (float, np.ndarray)) and is_missing(value):
            where = _place(place, column_names(X))
            raise ValueError(f"Input {name} contains NaN at {where} ({value!r}). {FILL}")
        if isinstance(value, (str, bytes, complex, np.datetime64)) or hasattr(value, "isoformat"):
            raise ValueError(
                f"{name} must hold numbers, got {value!r} at {_place(place, column_names(X))}{_hint(name)}"
            )


def _hint(name: str) -> str:
    return f": {NAME}" if name == "X" else ""


def check_indices(X: Any) -> None:
    """Raise ValueError if sparse rows store a place that they do not have: compiled code would read it all the same."""
    if hasattr(X, "indptr"):
        if X.format == "csr" and X.nnz and len(X.indices) and X.indices.max() >= X.shape[1]:
            entry = int(np.argmax(X.indices >= X.shape[1]))
            row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
            raise ValueError(f"X stores column {X.indices[entry]} at row {row}, but has {X.shape[1]} columns")
        X.check_format(full_check=True)
    elif hasattr(X, "tocsr") and hasattr(X, "coords") and X.nnz:
        for name, index, size in zip(("row", "column"), X.coords, X.shape, strict=True):
            if not 0 <= index.min() <= index.max() < size:
                raise ValueError(f"X stores {name} {index.max()}, but has {size} {name}s")


def column_names(X: Any) -> Any:
    """The names of a frame's columns: pandas, polars or pyarrow; None for all else."""
    return getattr(X, "column_names", getattr(X, "columns", None))


def check_finite(X: Any, dtype: str, given: Any = None, names: Any = None, *, nan: bool = False) -> None:
    """Raise ValueError naming the first row and column whose value the model cannot hold.

    ``given``: what X was made of, in which numbers have not overflowed yet. ``nan``: dense values may be missing.
    """
    names = column_names(given) if names is None else names
    if hasattr(X, "tocsr"):
        bad = np.flatnonzero(~(np.abs(X.data) <= LARGEST[dtype]))
        if bad.size:
            row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
            _raise_for(X if given is None else given, dtype, row, int(X.indices[bad[0]]), names)
    # One cheap pass in the usual case: the comparison is False for NaN and infinity.
    elif not (X.size == 0 or bool(np.abs(X).max() <= LARGEST[dtype])):
        places = np.argwhere(~((np.abs(X) <= LARGEST[dtype]) | (nan & np.isnan(X))))
        if len(places):
            _raise_for(X if given is None else given, dtype, int(places[0, 0]), int(places[0, 1]), names)


def _raise_for(given: Any, dtype: str, row: int, column: int, names: Any) -> None:
    value = (given.tocsr() if hasattr(given, "tocsr") else np.asarray(given))[row, column]
    value = np.nan if is_missing(value) else float(value)
    there = f", column {column}" + (f" ({names[column]!r})" if names is not None else "")
    if np.isnan(value):
        raise Refusal("Input X contains NaN", row=row, then=there, python=f". {FILL}")
    if np.isinf(value):
        raise Refusal("Input X contains infinity", row=row, then=there)
    raise too_large(f"Input X contains {value:g}", row, there, dtype)


def too_large(what: str, row: int, there: str, dtype: str) -> Refusal:
    """The error of a number that is finite, and beyond what a model of this dtype takes."""
    scale, wider = ": scale the column", dtype == "float32"
    return Refusal(
        what, row=row, then=f"{there}, too large for {dtype}, which takes up to {LARGEST[dtype]:g}",
        python=scale + (", or use dtype='float64'" if wider else ""),
        command=scale + (", or fit with --set dtype=float64" if wider else ""),
    )  # fmt: skip


def _place(index: Any, names: Any = None) -> str:
    """Where an entry is, in words."""
    if len(index) < 2:
        return f"row {index[0]}" if len(index) else "row 0"
    return f"row {index[0]}, column {index[1]}" + (f" ({names[index[1]]!r})" if names is not None else "")


def rows_of(X: Any, dtype: str, *, nan: bool = False) -> Any:
    """Finite rows as a C-contiguous (n, d) array of this dtype, or CSR in order and without zeros.

    ``nan``: dense values may be missing.
    """
    refuse_other_kinds("X", X)
    check_indices(X)
    try:
        rows = as_rows(X, dtype)
    except OverflowError as error:
        raise ValueError(f"X holds a number beyond all doubles: {error}") from None
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"X must have rows and columns, got shape {rows.shape}")
    check_finite(rows, dtype, X, nan=nan)
    return rows


def as_rows(X: Any, dtype: str) -> Any:
    """Numbers as a C-contiguous array of this dtype; sparse rows stay sparse, as CSR in order and without zeros."""
    with np.errstate(over="ignore"):  # what overflows is infinite, and reported by ``check_finite``
        if hasattr(X, "tocsr"):
            return _canonical(X.tocsr().astype(dtype))
        return np.ascontiguousarray(X, dtype=dtype)


def _canonical(X: Any) -> Any:
    """CSR rows with each place stored at most once, in the order of the columns, and only if it is not 0; in place."""
    check_indices(X)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def named_row(x: Any) -> Any:
    """A row of a pandas frame as a mapping from its names, or as plain values if it has none; others as they are."""
    if not (hasattr(x, "to_dict") and hasattr(x, "index")) or isinstance(x, Mapping):
        return x
    text = [isinstance(name, str) for name in x.index]
    if not any(text):
        return x.to_numpy()
    return x.to_dict()


def row_of(x: Any, n_features: int | None, names: Any, dtype: str, *, nan: bool = False) -> Array:
    """One example, a sequence or a mapping from column names, as a (1, d) array; finite but for NaN, if ``nan``."""
    x = named_row(x)
    if isinstance(x, Mapping):
        x = values_by_name(x, names)
    row = np.asarray(x)
    if row.dtype.kind in "Mm":
        refuse_other_kinds("a row", row)
    if row.dtype.kind not in NUMERIC or isinstance(x, np.ma.MaskedArray):
        row = _as_numbers(x, names)
    if row.ndim != 1 or row.size == 0 or (n_features is not None and row.size != n_features):
        raise ValueError(f"expected one row of {n_features or 'at least one'} values, got shape {row.shape}")
    row = row.astype(float)[None, :]
    check_finite(row, dtype, names=names, nan=nan)
    return row.astype(dtype)


def _as_numbers(x: Any, names: Any) -> Array:
    """Values that are not plainly numbers, or ValueError naming the first that is none."""
    refuse_other_kinds("a row", np.ma.atleast_2d(x) if isinstance(x, np.ma.MaskedArray) else ())
    # A list as it is: an array of text would turn its numbers into text as well.
    values = x if isinstance(x, (list, tuple)) else np.asarray(x).ravel().tolist()
    for column, value in enumerate(values):
        if not isinstance(value, Number) or isinstance(value, complex):
            where = f"column {column}" + (f" ({names[column]!r})" if names is not None else "")
            raise ValueError(f"a row must hold numbers only, got {value!r} in {where}")
    try:
        return np.asarray(x, dtype=float)
    except OverflowError as error:
        raise ValueError(f"a row holds a number beyond all doubles: {error}") from None


def values_by_name(x: Mapping[Any, Any], names: Any) -> list[Any]:
    """The values of a mapping in the model's order of columns."""
    if names is None:
        raise ValueError("this model learned rows without column names: pass the values in order, not a mapping")
    try:
        values = [x[name] for name in names]
    except KeyError:
        values = []
    if len(x) != len(names) or len(values) != len(names):
        missing = [name for name in names if name not in x]
        unknown = [name for name in x if name not in list(names)]
        raise ValueError(f"the row's columns do not match the model's: missing {missing}, unknown {unknown}")
    return values


def check_weight(sample_weight: Any, n: int) -> Array:
    """Weights as float64, 0 or from 1e-100 to 1e100; ones if there are none."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight)
    if weight.dtype.kind not in NUMERIC or isinstance(sample_weight, np.ma.MaskedArray):
        refuse_other_kinds("sample_weight", sample_weight)
    try:
        weight = weight.astype(float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"sample_weight must hold numbers, got dtype {weight.dtype}") from None
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, but X has {n} rows")
    bad = np.flatnonzero(~((weight >= 0) & (weight < np.inf)))
    if bad.size:
        raise Refusal(f"sample_weight must be finite and not negative; it is {weight[bad[0]]}", row=int(bad[0]))
    return np.where(weight > 0, np.clip(weight, LIGHTEST, HEAVIEST), 0.0)


def one_weight(sample_weight: Any) -> Array:
    """``check_weight`` of one row, at the cost of one."""
    plain = isinstance(sample_weight, (int, float)) and sample_weight == 1
    return np.ones(1) if plain else check_weight([sample_weight], 1)


def positive_weight(weight: Array, *, may_be_none: bool) -> Array | None:
    """Which rows have a weight above 0; None if all have."""
    keep = weight > 0
    if keep.all():
        return None
    if not keep.any() and not may_be_none:
        raise ValueError("all sample weights are zero: there is nothing to learn")
    return np.asarray(keep)
