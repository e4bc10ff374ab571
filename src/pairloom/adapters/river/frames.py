"""Frames of pandas, polars and pyarrow as rows, with chosen columns, and results in the same library."""

from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw


def records_of(X: Any) -> Iterable[dict[Any, Any]]:
    """Return the rows as mappings."""
    rows: Iterable[dict[Any, Any]]
    if hasattr(X, "to_dicts"):
        rows = X.to_dicts()
    else:
        rows = X.to_pylist() if hasattr(X, "to_pylist") else X.to_dict("records")
    return rows


def labels_of(y: Any) -> list[Any]:
    """Return the labels of a column as a list."""
    for method in ("to_list", "to_pylist", "tolist"):
        if hasattr(y, method):
            return list(getattr(y, method)())
    return list(y)


def columns_by_name(X: Any, names: Sequence[str]) -> Any:
    """Return the named columns of a frame, in this order; one that is absent has missing values."""
    if hasattr(X, "iloc"):
        dense = {name: type_.subtype for name, type_ in X.dtypes.items() if str(type_).startswith("Sparse")}
        X = X.astype(dense).rename(columns=str)  # river makes sparse columns, and allows any names
    frame = nw.from_native(X, eager_only=True)
    absent = [nw.lit(None).alias(name) for name in names if name not in frame.columns]
    return frame.with_columns(*absent).select(list(names)).to_native()


def like(X: Any, values: Any, columns: Sequence[Any] | None = None) -> Any:
    """Return values as a frame of the library of X with these columns, or without them as one column."""
    library: Any = nw.get_native_namespace(X)
    if hasattr(X, "iloc"):
        if columns is None:
            return library.Series(values, index=X.index)
        return library.DataFrame(values, index=X.index, columns=columns)
    if columns is None:
        return library.Series(values) if hasattr(library, "Series") else library.array(values)
    table = {str(name): values[:, k] for k, name in enumerate(columns)}
    return library.DataFrame(table) if hasattr(library, "DataFrame") else library.table(table)
