"""Merging what encoders know about columns: kinds, statistics, and the categories of all parts."""

from zlib import crc32

import numpy as np

from pairloom.base.merging import added
from pairloom.base.typing import Array
from pairloom.columns.loops import COUNT, HIGH, INTEGER, LAST, LOW, MASS, MISSING, OPEN, ORDER, REPEATS, SUM
from pairloom.columns.state import KIND_NAMES, ColumnsState

Recoding = dict[int, Array]
"""For some columns, the new code of each old code."""


def merge_columns(
    base: ColumnsState, parts: list[ColumnsState], n_codes: tuple[int, int]
) -> tuple[ColumnsState, list[Recoding]]:
    """Return the columns of all parts, and the codes of each part that differ; ``n_codes``: named and shared ones.

    Categories are those of the base, then the new ones of each part in turn. Raises ValueError, naming the column,
    where parts have found different kinds.
    """
    for k, part in enumerate(parts):
        if part.names != base.names:
            raise ValueError(f"part {k} has the columns {part.names}, but the base has {base.names}")
        if (part.layout, part.width) != (base.layout, base.width):
            raise ValueError(f"part {k} encodes its columns in another way than the base")
    kinds = [_kind(base.names[j], base.plain_kinds[j], [part.plain_kinds[j] for part in parts]) for j in _all(base)]
    united = [_united(j, base, parts, n_codes[0]) for j in _all(base)]
    recodings: list[Recoding] = [{} for _ in parts]
    for j, known in enumerate(united):
        codes = {name: code for code, name in enumerate(known)}
        for part, recoding in zip(parts, recodings, strict=True):
            new = [codes.get(name, n_codes[0] + _hashed(name, n_codes[1])) for name in part.categories[j]]
            if new != list(range(len(new))):
                recoding[j] = np.array(new, np.int64)
    merged = ColumnsState(
        list(base.names), base.layout, base.width, np.array(kinds, np.int64), base.starts.copy(),
        _statistics(base, parts), united, _malformed(base, parts),
    )  # fmt: skip
    for j in {j for recoding in recodings for j in recoding}:
        largest = max(int(recoding[j].max()) for recoding in recodings if j in recoding)
        merged.statistics[HIGH, j] = max(len(united[j]) - 1, largest)
    return merged, recodings


def _all(base: ColumnsState) -> range:
    return range(len(base.names))


def _kind(name: str, base: int, parts: list[int]) -> int:
    """Return the kind of a column; parts may have found that of a column without values so far."""
    found = sorted({kind for kind in [base, *parts] if kind != OPEN})
    if len(found) > 1:
        raise ValueError(
            f"parts have found different kinds of the column {name!r}, which had no values in the base: "
            f"{', '.join(str(KIND_NAMES[kind]) for kind in found)}. Name its kind in columns="
        )
    return found[0] if found else OPEN


def _united(j: int, base: ColumnsState, parts: list[ColumnsState], limit: int) -> list[str]:
    """Return the categories of a column, those of the base first, up to the limit."""
    found = dict.fromkeys(base.categories[j])
    for part in parts:
        found.update(dict.fromkeys(part.categories[j][len(base.categories[j]) :]))
    return list(found)[:limit]


def _hashed(name: str, n_shared: int) -> int:
    return crc32(name.encode(errors="replace")) % n_shared


def _statistics(base: ColumnsState, parts: list[ColumnsState]) -> Array:
    """Return sums of all rows, ranges, and whether numbers rise or fall in every part."""
    tables = [base.statistics, *(part.statistics for part in parts)]
    made = base.statistics.copy()
    for row in (MASS, SUM, COUNT, REPEATS, MISSING):
        made[row] = added(base.statistics[row], [table[row] for table in tables[1:]])
    for j in range(made.shape[1]):
        seen = [table[:, j] for table in tables if table[COUNT, j] > 0]
        if seen:
            made[LOW, j], made[HIGH, j] = min(one[LOW] for one in seen), max(one[HIGH] for one in seen)
            made[INTEGER, j], made[LAST, j] = min(one[INTEGER] for one in seen), seen[-1][LAST]
            orders = {one[ORDER] for one in seen if one[COUNT] > 1}
            made[ORDER, j] = orders.pop() if len(orders) == 1 else 0.0
    return made


def _malformed(base: ColumnsState, parts: list[ColumnsState]) -> Array | None:
    counts = [np.zeros(len(base.names), np.int64) if one.malformed is None else one.malformed for one in (base, *parts)]
    total = added(counts[0], counts[1:])
    return total if total.any() else None


def check_codes(columns: ColumnsState, recodings: list[Recoding]) -> None:
    """Raise ValueError if parts have new categories that would need features of their own."""
    for k, recoding in enumerate(recodings):
        for j in recoding:
            raise ValueError(
                f"part {k} has other new categories of the column {columns.names[j]!r} than the parts before it: let "
                "the base learn all categories first"
            )
