"""The state in which changes of columns are found: counts of an older window and of the newest rows."""

from dataclasses import field
from typing import Annotated, Self

import numpy as np

from pairloom.base.spec import Count, WrongState
from pairloom.base.tree import copy, node
from pairloom.base.typing import Array
from pairloom.columns.cells import (
    CELLS,
    MISSING,
    NEW,
    NO_LIMIT,
    OF,
    ROWS,
    Rules,
    counts_of,
    cuts_of,
    joined,
    no_range,
    range_of,
)
from pairloom.columns.changes import GAPS, Compared, compare

BLOCK = 512
"""Rows of a block, after which columns are compared."""

BLOCKS = 8
"""Largest number of blocks in either window: 4,096 rows."""

WIDEST = 200
"""Largest number of columns that are compared."""

MAX_FOUND = 256
"""Newest changes that are kept."""

N_PLACES, N_VALUES = 5, 9


@node
class Found:
    """The newest changes. ``places`` (n, 5): row, column, what changed, and the codes of new categories, from and to.

    ``values`` (n, 9): the index; shares of missing values, older and newer; shares of new values; the ranges of the
    older and of the newer window. While the next older window of the column is filled, the missing values and the range
    of the newer window become those of the rows since the change. ``count``: changes in all.
    """

    places: Annotated[Array, f"i8 _n {N_PLACES} 0:BIG"] = field(default_factory=lambda: np.zeros((0, N_PLACES), int))
    values: Annotated[Array, f"f8 _n {N_VALUES}"] = field(default_factory=lambda: np.zeros((0, N_VALUES)))
    count: Count = 0

    def check(self) -> None:
        if len(self.places) != min(self.count, MAX_FOUND):
            raise WrongState(f"must be the newest {MAX_FOUND} of those counted")

    def add(self, places: Array, values: Array) -> None:
        """Add changes; the oldest are dropped."""
        self.places = np.concatenate([self.places, places])[-MAX_FOUND:]
        self.values = np.concatenate([self.values, values])[-MAX_FOUND:]
        self.count += len(places)

    def follow(self, column: int, missing: float, ends: Array) -> None:
        """Replace what the newest change of a column states about the newer rows by the rows since then."""
        last = np.flatnonzero(self.places[:, 1] == column)[-1]
        self.values[last, 2] = missing
        self.values[last, -2:] = ends


@node
class ColumnWindows:
    """Two windows of rows for each of c columns: an older one and the newest, each of at most 4,096 rows.

    At the end of each block of 512 rows they are compared (:func:`~pairloom.columns.changes.compare`). The older window
    consists of eight blocks after the first block of the stream or, once a change is found in a column, after the block
    in which it is found; the newer window of the newest of up to eight later blocks. While the older window is filled,
    each new block is compared with it before it is added, in its missing and new values only.

    Numbers have ten cells, between the tenths of the block before the older window, where a value that is frequent has
    a cell of its own; categories have a cell for each of the nine most frequent of that block, and one for all others.
    A value is new if it is a category, or a number outside the range, of which the rows up to the end of the older
    window have none. Where tails are heavy, some values are always new. Shares of new values are therefore compared
    with those of the last blocks of the older window, each relative to the rows before it: without a change, they can
    only decrease.

    ``t``: rows so far. ``block``: the newest rows. ``cuts``: upper ends of the cells, or their categories; infinity if
    unused. ``older``, ``newer``: counts by block (:mod:`pairloom.columns.cells`), the newer of block k in place k % 8.
    ``sizes``: numbers of blocks. ``known``: the range of all rows up to the end of the older window. ``older_range``,
    ``newer_range``: by window, and by block.

    Cost: 0.3 microseconds for a row, and 0.02 for each column; 6 KB for each column.
    """

    block: Annotated[Array, f"f8 {BLOCK} _c"]
    cuts: Annotated[Array, f"f8 {CELLS - 1} _c"]
    older: Annotated[Array, f"i8 {BLOCKS} {OF + 1} _c 0:BIG"]
    newer: Annotated[Array, f"i8 {BLOCKS} {OF + 1} _c 0:BIG"]
    sizes: Annotated[Array, f"i8 2 _c 0:{BLOCKS + 1}"]
    known: Annotated[Array, "f8 2 _c"]
    older_range: Annotated[Array, "f8 2 _c"]
    newer_range: Annotated[Array, f"f8 {BLOCKS} 2 _c"]
    found: Found = field(default_factory=Found)
    t: Count = 0

    @classmethod
    def empty(cls, c: int) -> Self:
        """Return the state before the first row."""
        table = (BLOCKS, OF + 1, c)
        return cls(
            np.full((BLOCK, c), np.nan), np.full((CELLS - 1, c), np.inf), np.zeros(table, np.int64),
            np.zeros(table, np.int64), np.zeros((2, c), np.int64), no_range(c), no_range(c),
            np.tile(no_range(c), (BLOCKS, 1, 1))
        )  # fmt: skip

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.block.shape[1])

    def check(self) -> None:
        blocks = self.t // BLOCK
        if (self.sizes.sum(axis=0) > blocks).any():
            raise WrongState(f"must be of {blocks} blocks", "sizes")
        ranges = (self.known, self.older_range, self.newer_range, self.cuts, self.found.values)
        if any(np.isnan(one).any() for one in ranges):
            raise WrongState("must not have missing values")
        if (self.found.places[:, 1] >= self.n_columns).any():
            raise WrongState("must be of known columns", "found")

    def add(self, values: Array, kinds: Array | None = None, n_named: int = NO_LIMIT) -> None:
        """Add rows (n, c), with NaN for missing values, and compare the windows where a block ends.

        ``kinds`` and ``n_named``: as in :class:`Rules`.
        """
        if not self.block.flags.writeable:
            # Mapped from a read-only file: joblib.load(..., mmap_mode="r").
            vars(self).update(vars(copy(self)))
        at = 0
        while at < len(values):
            place = self.t % BLOCK
            more = min(BLOCK - place, len(values) - at)
            self.block[place : place + more] = values[at : at + more]
            at, self.t = at + more, self.t + more
            if place + more == BLOCK:
                self._end_block(Rules.of(self.n_columns, kinds, n_named))

    def compare_newest(self, kinds: Array | None = None) -> tuple[Array, Array]:
        """Compare the two windows; return what ``compare_with`` returns."""
        rules = Rules.of(self.n_columns, kinds, NO_LIMIT)
        compared = compare(self.older, self._newer(), rules.date, self.sizes[0] == BLOCKS)
        return compared.changed, _values(compared, self.older_range, self._newer_range())

    def compare_with(self, values: Array, kinds: Array | None = None, n_named: int = NO_LIMIT) -> tuple[Array, Array]:
        """Compare rows with those of both windows; return what changed (c,), and the values (c, 9) of ``Found``.

        A value is new if no row so far had it.
        """
        rules, started = Rules.of(self.n_columns, kinds, n_named), self.sizes[0] == 0
        older = np.concatenate([self.older, np.where(self._newest()[:, None], self.newer, 0)])
        # A column that has just started has no window: its rows are those of the newest block.
        older[0, :NEW, started] = counts_of(self.block, rules, self.known, self.cuts)[:NEW, started].T
        ranges = joined(self.older_range, self._newer_range(), range_of(self.block, rules))
        counts = counts_of(values, rules, joined(self.known, ranges), self.cuts)
        compared = compare(older, counts, rules.date, np.full(self.n_columns, True))
        return compared.changed, _values(compared, ranges, range_of(values, rules))

    def _end_block(self, rules: Rules) -> None:
        """Compare the newest block or the newer window with the older one, and start again in columns that changed."""
        blocks = self.t // BLOCK
        if blocks == 1:
            return self._start(np.arange(self.n_columns), rules)
        place, complete = (blocks - 1) % BLOCKS, self.sizes[0] == BLOCKS
        self.newer[place] = counts_of(self.block, rules, self.known, self.cuts)
        self.newer_range[place] = range_of(self.block, rules)
        self.sizes[1] = np.minimum(self.sizes[1] + 1, BLOCKS)
        compared = compare(self.older, self._newer(), rules.date, complete)
        changed = np.flatnonzero(compared.changed)
        if changed.size:
            self._record(changed, compared, rules)
            self._start(changed, rules)
            # More of the missing values found are no further change.
            self.older[0, MISSING : ROWS + 1, compared.changed & GAPS > 0] = 0
        self._fill(np.flatnonzero(~complete & (compared.changed == 0)), place)
        return None

    def _fill(self, columns: Array, place: int) -> None:
        """Move the newest block to the older window of these columns, which is not complete."""
        counts, ends = self.newer[place], self.newer_range[place]
        places = self.sizes[0, columns]
        self.older[places, :, columns] = counts[:, columns].T
        early = np.arange(BLOCKS)[:, None] < (places + 1) // 2
        self.older[:, NEW:, columns] *= ~early[:, None]
        self.older_range[:, columns] = joined(self.older_range, ends)[:, columns]
        self.known[:, columns] = joined(self.known, ends)[:, columns]
        self.sizes[:, columns] += np.array([[1], [-1]])
        missing = self.older[:, MISSING].sum(axis=0) / np.maximum(self.older[:, ROWS].sum(axis=0), 1)
        for j in columns[np.isin(columns, self.found.places[:, 1])].tolist():
            self.found.follow(j, float(missing[j]), self.older_range[:, j])

    def _start(self, columns: Array, rules: Rules) -> None:
        """Choose new cells of these columns from the newest block; the older window begins after it.

        The block has more rows of the categories chosen than later blocks have, and may have rows before the change. So
        only the next block is compared with it, in its missing and new values.
        """
        for j in columns.tolist():
            self.cuts[:, j] = cuts_of(self.block[:, j], bool(rules.category[j]))
        self.older[:, :, columns] = 0
        self.older[0, :, columns] = counts_of(self.block, rules, self.known, self.cuts)[:, columns].T
        self.known[:, columns] = joined(self.known, self._newer_range(), range_of(self.block, rules))[:, columns]
        self.older[0, :CELLS, columns], self.sizes[:, columns] = 0, 0
        self.older_range[:, columns] = no_range(len(columns))

    def _record(self, columns: Array, compared: Compared, rules: Rules) -> None:
        newer = self._newer_range()
        codes = np.where(rules.category, np.stack([self.known[1], newer[1]]), -1.0)[:, columns]
        codes = np.where(np.isfinite(codes), codes, -1.0).astype(np.int64) + 1
        codes[1] = codes.max(axis=0)
        places = [np.full(len(columns), self.t), columns, compared.changed[columns], *codes]
        self.found.add(np.stack(places, axis=1), _values(compared, self.older_range, newer)[columns])

    def _newest(self) -> Array:
        """Return which places (8, c) are of the newer window."""
        age = (self.t // BLOCK - 1 - np.arange(BLOCKS)) % BLOCKS
        return np.asarray(age[:, None] < self.sizes[1])

    def _newer(self) -> Array:
        return np.asarray(np.where(self._newest()[:, None], self.newer, 0).sum(axis=0))

    def _newer_range(self) -> Array:
        newest = self._newest()
        return joined(*np.where(newest[:, None], self.newer_range, no_range(self.n_columns)))


def compare_values(older: Array, newer: Array) -> Array:
    """Return the values (9,) of ``Found`` for two samples of numbers, without tests."""
    rules, cuts = Rules.of(1, None, NO_LIMIT), cuts_of(older, category=False)[:, None]
    ranges = [range_of(one[:, None], rules) for one in (older, newer)]
    counts = [counts_of(one[:, None], rules, ranges[0], cuts) for one in (older, newer)]
    never = np.full(1, False)
    return np.asarray(_values(compare(counts[0][None], counts[1], ~never, never), *ranges)[0])


def _values(compared: Compared, older_range: Array, newer_range: Array) -> Array:
    return np.concatenate([compared.psi[None], compared.missing, compared.new, older_range, newer_range]).T
