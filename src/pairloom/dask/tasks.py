"""The tasks of the graph: functions of partitions and states, which change neither."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairloom.base.csr import is_sparse
from pairloom.base.merging import pooled
from pairloom.base.tree import copy
from pairloom.base.typing import Array
from pairloom.dask.plan import Segment

Extra = dict[str, Any]
"""Further arguments of ``partial_fit`` by name, with a value for each row: ``sample_weight`` or ``groups``."""


class PartitionError(ValueError):
    """An error while a partition was read or learned; the message names the partition."""


@contextmanager
def naming(partition: int) -> Iterator[None]:
    """Name the partition in errors."""
    try:
        yield
    except PartitionError:
        raise
    except Exception as error:
        raise PartitionError(f"partition {partition}: {error}") from error


@dataclass(frozen=True)
class Rows:
    """Rows with labels and further arguments; ``partition``: where they are from."""

    partition: int
    X: Any
    y: Array
    extra: Extra

    def __len__(self) -> int:
        return len(self.y)

    def part(self, rows: slice | Array) -> "Rows":
        """Return some of the rows, copied: a partition need not stay in memory for them."""
        X = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
        extra = {name: value[rows] for name, value in self.extra.items()}
        return Rows(self.partition, X.copy(), self.y[rows].copy(), extra)


@dataclass(frozen=True)
class Described:
    """A partition: the number of its rows, its labels, categories by column, first rows, and number of columns."""

    n: int
    labels: Any
    categories: dict[str, list[str]]
    head: Rows
    columns: Any


def rows_of(partition: int, X: Any, y: Any, extra: Extra) -> Rows:
    """Return the rows of a partition; PartitionError if lengths differ."""
    values = {name: np.asarray(value) for name, value in extra.items()}
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if is_sparse(X):
        X = X.tocsr()
    for name, value in {"y": labels, **values}.items():
        if len(value) != X.shape[0]:
            raise PartitionError(f"partition {partition}: {name} has {len(value)} values, but X has {X.shape[0]} rows")
    return Rows(partition, X, labels, values)


def describe(partition: int, X: Any, y: Any, extra: Extra, first: int, model: Any) -> Described:
    """Return what the plan needs to know of a partition."""
    with naming(partition):
        rows = rows_of(partition, X, y, extra)
        known = model.check(rows.part(slice(0, first))) if len(rows) else None
        labels = model.labels_of(rows.y) if len(rows) else None
        categories = model.categories_of(rows.X) if len(rows) else {}
        return Described(len(rows), labels, categories, rows.part(slice(0, first)), known)


def head(partition: int, X: Any, y: Any, extra: Extra, n: int) -> Rows:
    """Return the first rows of a partition."""
    with naming(partition):
        return rows_of(partition, X, y, extra).part(slice(0, n))


def join(parts: Sequence[Rows], order: Array | None = None) -> Rows:
    """Concatenate rows, and sort them by ``order``."""
    Xs = [part.X for part in parts]
    if hasattr(Xs[0], "iloc"):
        from pandas import concat

        X: Any = concat(Xs, ignore_index=True)
    elif is_sparse(Xs[0]):
        from scipy.sparse import vstack

        X = vstack(Xs, format="csr")
    else:
        X = np.concatenate(Xs)
    extra = {name: np.concatenate([part.extra[name] for part in parts]) for name in parts[0].extra}
    rows = Rows(parts[0].partition, X, np.concatenate([part.y for part in parts]), extra)
    return rows if order is None else rows.part(order)


def begin(model: Any, heads: Sequence[Rows]) -> Any:
    """Return the base: a model that has learned the first rows of all partitions, which alternate."""
    own = [part for part in heads if len(part)]
    sizes = np.array([len(part) for part in own])
    part, age = pooled(sizes, int(sizes.sum()))
    starts = np.cumsum(sizes) - sizes
    try:
        return model.begun(join(own, starts[part] + sizes[part] - 1 - age))
    except Exception as error:
        raise PartitionError(f"the first rows of partitions 0 to {heads[-1].partition}: {error}") from error


def learn(
    model: Any, number: int, pace: float, segment: Segment, X: Any, y: Any, extra: Extra, *, first: bool
) -> Any:  # fmt: skip
    """Return a part that has learned a segment: of the base, for the first segment of a round, or of a part."""
    with naming(segment.partition):
        rows = rows_of(segment.partition, X, y, extra).part(slice(segment.start, segment.stop))
        part = model.forked(number, pace) if first else model.with_state(copy(model.state_))
        return part.partial_fit(rows.X, rows.y, **rows.extra)


def merge(base: Any, parts: Sequence[Any]) -> Any:
    """Return the merged model."""
    return base.merge(list(parts))
