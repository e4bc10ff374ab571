"""The graph of a fit: partitions are described, a base learns their first rows, and shards learn the rest in rounds."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pairloom.base.extras import import_extra
from pairloom.dask.plan import even_sizes, pace_of, pieces_of, shards_of
from pairloom.dask.tasks import Described, begin, describe, head, learn, merge

Report = Callable[[int, int, int], None]
"""Called with the round, the number of rounds, and the rows learned so far."""


def dask() -> Any:
    """Return the package dask, or raise an error that names the extra."""
    return import_extra("dask", "dask", "pairloom.dask")


@dataclass(frozen=True)
class Partition:
    """The delayed rows of a partition."""

    X: Any
    y: Any
    extra: dict[str, Any]


def partitions_of(X: Any, y: Any, extra: dict[str, Any]) -> list[Partition]:
    """Return the partitions of Dask arrays, Dask frames, or lists of delayed partitions; ValueError for other rows."""
    rows = delayed_parts("X", X)
    columns = {"y": delayed_parts("y", y), **{name: delayed_parts(name, one) for name, one in extra.items()}}
    for name, parts in columns.items():
        if len(parts) != len(rows):
            raise ValueError(
                f"{name} has {len(parts)} partitions, but X has {len(rows)}: rechunk or repartition one of them"
            )
    if not rows:
        raise ValueError("X has no partitions")
    return [Partition(one, columns["y"][k], {name: columns[name][k] for name in extra}) for k, one in enumerate(rows)]


def delayed_parts(name: str, values: Any) -> list[Any]:
    """Return the delayed partitions of a collection."""
    if is_array(values) and values.ndim == 2 and values.numblocks[1] > 1:
        values = values.rechunk({1: -1})
    if is_array(values):
        return list(values.to_delayed().ravel())
    if hasattr(values, "to_delayed"):
        # Dask would join small partitions, in another way for each collection.
        return list(values.to_delayed(optimize_graph=False))
    if isinstance(values, list | tuple) and all(
        hasattr(one, "__dask_graph__") or hasattr(one, "key") for one in values
    ):
        return list(values)
    raise ValueError(
        f"{name} must be a Dask array, a Dask data frame, or a list of delayed partitions; got a "
        f"{type(values).__name__}. For rows in memory, use the estimator of the same name without pairloom.dask"
    )


def is_array(values: Any) -> bool:
    """Whether this is a Dask array."""
    return hasattr(values, "numblocks") and hasattr(values, "rechunk")


def is_collection(values: Any) -> bool:
    """Whether rows are a Dask collection, or a list of delayed partitions."""
    return hasattr(values, "to_delayed") or (isinstance(values, list) and bool(values) and hasattr(values[0], "key"))


class Cluster:
    """Where tasks run: on a client's cluster, where results stay, or by Dask's own scheduler in this process."""

    def __init__(self, client: Any) -> None:
        self.client = current_client() if client is None else client

    def start(self, task: Any) -> Any:
        """Return the result of a task, or a future of it on the cluster, once it is computed."""
        if self.client is None:
            return dask().compute(task)[0]
        future = self.client.compute(task)
        distributed = import_extra("distributed", "dask", "pairloom.dask")
        distributed.wait(future)
        if future.status != "finished":
            future.result()
        return future

    def get(self, result: Any) -> Any:
        """Return a result in this process."""
        return result if self.client is None else result.result()


def current_client() -> Any:
    """Return the client that is the default in this process, if there is one."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def fit(
    spec: Any, partitions: Sequence[Partition], rounds: int, shards: int, client: Any, report: Report | None = None
) -> Any:
    """Return the model that has learned the rows of all partitions, each once."""
    delayed, cluster = dask().delayed, Cluster(client)
    first = -(-2 * spec.base_rows // len(partitions))
    tasks = [delayed(describe)(k, one.X, one.y, one.extra, first, spec) for k, one in enumerate(partitions)]
    described: list[Described] = cluster.get(cluster.start(delayed(list)(tasks)))
    sizes = [one.n for one in described]
    if not sum(sizes):
        raise ValueError(f"all {len(partitions)} partitions are empty")
    spec = spec.knowing(described)
    heads = even_sizes(sizes, spec.base_rows)
    own = [one.head.part(slice(0, n)) for one, n in zip(described, heads, strict=True)]
    longer = [k for k, n in enumerate(heads) if n > first]
    tasks = [delayed(head)(k, partitions[k].X, partitions[k].y, partitions[k].extra, heads[k]) for k in longer]
    for k, rows in zip(longer, cluster.get(cluster.start(delayed(list)(tasks))) if longer else [], strict=True):
        own[k] = rows
    model, learned = cluster.start(delayed(begin)(spec, own)), sum(heads)
    if report is not None:
        report(0, rounds, learned)
    groups = shards_of([n - used for n, used in zip(sizes, heads, strict=True)], shards)
    pieces = [pieces_of(group, sizes, heads, rounds) for group in groups]
    for r in range(rounds if groups else 0):
        now = [piece[r] for piece in pieces]
        pace, parts = pace_of([sum(map(len, piece)) for piece in now]), []
        for number, piece in enumerate(now):
            part = model
            for k, segment in enumerate(piece):
                one = partitions[segment.partition]
                part = delayed(learn)(part, number, pace, segment, one.X, one.y, one.extra, first=k == 0)
                learned += len(segment)
            parts += [part] if piece else []
        if parts:
            model = cluster.start(delayed(merge)(model, parts))
        if report is not None:
            report(r + 1, rounds, learned)
    return cluster.get(model)
