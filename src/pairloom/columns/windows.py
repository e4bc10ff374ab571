"""The state in which changes of columns are found: counts of an older window and of the newest rows."""

from dataclasses import dataclass, field
from typing import Annotated, Self

import numpy as np

from pairloom.base.spec import Count, WrongState
from pairloom.base.tree import copy, node
from pairloom.base.typing import Array
from pairloom.columns.changes import CELLS, MISSING, NEW, OF, Compared, compare
from pairloom.columns.loops import CATEGORY, DATE

BLOCK = 512
"""Rows of a block, after which columns are compared."""

BLOCKS = 8
"""Largest number of blocks in either window: 4,096 rows."""

WIDEST = 200
"""Largest number of columns that are compared."""

MAX_FOUND = 256
"""Newest changes that are kept."""

CLOCK_STEPS = 64
"""Steps within the first block, all in one direction, from which a column is a clock or a counter."""

NO_LIMIT = 2**53

N_PLACES, N_VALUES = 5, 9


@dataclass(frozen=True)
class Rules:
    """Which columns are categories, and which are dates; codes from ``n_named`` are shared by several categories."""

    category: Array
    date: Array
    n_named: int

    @classmethod
    def of(cls, c: int, kinds: Array | None, n_named: int) -> Self:
        """Return the rules for columns of these kinds; None: all are numbers."""
        kinds = np.zeros(c, np.int64) if kinds is None else kinds
        return cls(kinds == CATEGORY, kinds == DATE, n_named)


@node
class Found:
    """The newest changes. ``places`` (n, 5): row, column, what changed, and the codes of new categories, from and to.

    ``values`` (n, 9): the index; shares of missing values, older and newer; shares of new values; the ranges of the
    older and of the newer window. ``count``: changes in all.
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


@node
class ColumnWindows:
    """Two windows of rows for each of c columns: an older one and the newest, each of at most 4,096 rows.

    The older window consists of the first eight blocks of 512 rows of the stream or, after a change was found in a
    column, of the eight blocks from that change on. The newer window consists of the newest of up to eight later
    blocks. Both are compared at the end of each block (:func:`~pairloom.columns.changes.compare`), for the first time
    after 4,608 rows.

    Numbers have ten cells, between the tenths of the first block of the older window, where a value that is frequent
    has its own cell. Categories have a cell for each of the nine that were the most frequent in the block before the
    older window, which for them begins a block later, and one for all others. A value is new
    if it is a category, or a number outside the range, of which the rows up to the end of the older window have none.
    Where tails are heavy, some values are always new. Shares of new values are therefore compared with that of the last
    block of the older window, relative to the rows before it: without a change, they can only decrease.

    ``t``: rows so far. ``block``: the newest rows. ``cuts``: upper ends of the cells, or their categories; infinity if
    unused. ``older``, ``newer``: counts (:mod:`pairloom.columns.changes`); the newer by block, block k in place k % 8.
    ``sizes``: numbers of blocks. ``known``: the range of all rows up to the end of the older window. ``older_range``,
    ``newer_range``: by window, and by block. ``clock``: 1 for columns that never decreased and -1 for columns that
    never increased, while most steps changed them, such as a time.

    Cost: about 0.05 microseconds for a row and 6 KB, for each column.
    """

    block: Annotated[Array, f"f8 {BLOCK} _c"]
    cuts: Annotated[Array, f"f8 {CELLS - 1} _c"]
    older: Annotated[Array, f"i8 {OF + 1} _c 0:BIG"]
    newer: Annotated[Array, f"i8 {BLOCKS} {OF + 1} _c 0:BIG"]
    sizes: Annotated[Array, f"i8 2 _c 0:{BLOCKS + 1}"]
    known: Annotated[Array, "f8 2 _c"]
    older_range: Annotated[Array, "f8 2 _c"]
    newer_range: Annotated[Array, f"f8 {BLOCKS} 2 _c"]
    clock: Annotated[Array, "i8 _c -1:2"]
    found: Found = field(default_factory=Found)
    t: Count = 0

    @classmethod
    def empty(cls, c: int) -> Self:
        """Return the state before the first row."""
        return cls(
            np.full((BLOCK, c), np.nan), np.full((CELLS - 1, c), np.inf), np.zeros((OF + 1, c), np.int64),
            np.zeros((BLOCKS, OF + 1, c), np.int64), np.zeros((2, c), np.int64), _nothing(c), _nothing(c),
            np.tile(_nothing(c), (BLOCKS, 1, 1)), np.zeros(c, np.int64),
        )  # fmt: skip

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.block.shape[1]

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

    def compare_with(self, values: Array, kinds: Array | None = None, n_named: int = NO_LIMIT) -> tuple[Array, Array]:
        """Compare rows with those of both windows; return what changed (c,), and the values (c, 9) of ``Found``.

        A value is new if no row so far had it.
        """
        rules, newest = Rules.of(self.n_columns, kinds, n_named), self._newest()
        older = self.older + np.where(newest[:, None], self.newer, 0).sum(axis=0)
        last = self.newer[(self.t // BLOCK - 1) % BLOCKS]
        older[NEW:] = np.where(self.sizes[1] > 0, last[NEW:], self.older[NEW:])
        # The rows after the last block are in no window; their values are known.
        ranges = _joined(self.older_range, self._newer_range(), _range(self.block[: self.t % BLOCK], rules))
        counts = _counts(values, rules, _joined(self.known, ranges), self.cuts)
        compared = compare(older, counts, rules.date | (self.clock != 0))
        return compared.changed, _values(compared, ranges, _range(values, rules))

    def _end_block(self, rules: Rules) -> None:
        """Add the newest block to a window of each column, compare them, and start again in columns that changed."""
        blocks = self.t // BLOCK
        self._follow_clocks(first=blocks == 1)
        if blocks == 1:
            return self._start(np.arange(self.n_columns), rules)
        place, filling = (blocks - 1) % BLOCKS, np.flatnonzero(self.sizes[0] < BLOCKS)
        counts, ends = _counts(self.block, rules, self.known, self.cuts), _range(self.block, rules)
        self.newer[place], self.newer_range[place] = counts, ends
        self.sizes[1] = np.minimum(self.sizes[1] + 1, BLOCKS)
        self._fill(filling, counts, ends)
        newer = np.where(self._newest()[:, None], self.newer, 0).sum(axis=0)
        compared = compare(self.older, newer, rules.date | (self.clock != 0))
        changed = np.flatnonzero(compared.changed)
        if changed.size:
            self._record(changed, compared, rules)
            self._start(changed, rules)

    def _follow_clocks(self, *, first: bool) -> None:
        """Find columns that are clocks in the first block; they remain so while they keep their direction."""
        steps = np.diff(self.block, axis=0)
        rises, falls = (steps >= 0).all(axis=0), (steps <= 0).all(axis=0)
        if first:
            self.clock[:] = (rises.astype(int) - falls) * ((steps != 0).sum(axis=0) >= CLOCK_STEPS)
        else:
            self.clock *= np.where(self.clock > 0, rises, falls)

    def _fill(self, columns: Array, counts: Array, ends: Array) -> None:
        """Add a block to the older window of these columns, which is not complete."""
        self.older[:NEW, columns] += counts[:NEW, columns]
        self.older[NEW:, columns] = counts[NEW:, columns]
        self.older_range[:, columns] = _joined(self.older_range, ends)[:, columns]
        self.known[:, columns] = _joined(self.known, ends)[:, columns]
        self.sizes[:, columns] += np.array([[1], [0]])
        self.sizes[1, columns] = 0

    def _start(self, columns: Array, rules: Rules) -> None:
        """Make the newest block the older window of these columns, with new cells."""
        ends = _range(self.block, rules)
        for j in columns.tolist():
            self.cuts[:, j] = _cuts(self.block[:, j], bool(rules.category[j]))
        # The block has more rows of the categories that it chose for cells than later blocks: it is not counted. Tenths
        # of a sample have no such bias.
        counted = ~rules.category
        self.older[:, columns] = (_counts(self.block, rules, self.known, self.cuts) * counted)[:, columns]
        self.older_range[:, columns] = ends[:, columns]
        self.known[:, columns] = _joined(self.known, self._newer_range(), ends)[:, columns]
        self.sizes[:, columns] = np.stack([counted, np.zeros_like(counted)])[:, columns]

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

    def _newer_range(self) -> Array:
        newest = self._newest()
        return _joined(*np.where(newest[:, None], self.newer_range, _nothing(self.n_columns)))


def _values(compared: Compared, older_range: Array, newer_range: Array) -> Array:
    return np.concatenate([compared.psi[None], compared.missing, compared.new, older_range, newer_range]).T


def _nothing(c: int) -> Array:
    """Return the range of no values."""
    return np.repeat([[np.inf], [-np.inf]], c, axis=1)


def _joined(*ranges: Array) -> Array:
    """Return the range of the values in several ranges (2, c)."""
    ends = np.stack(ranges)
    return np.stack([ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)])


def _range(values: Array, rules: Rules) -> Array:
    """Return the range (2, c) of the values; of categories, of the codes that belong to one category."""
    values = np.where(rules.category & (values >= rules.n_named), np.nan, values)
    low, high = (end.reduce(values, axis=0, initial=start) for end, start in ((np.fmin, np.inf), (np.fmax, -np.inf)))
    return np.stack([low, high])


def _counts(values: Array, rules: Rules, known: Array, cuts: Array) -> Array:
    """Return the numbers of values in each cell, of missing, of new and of all values."""
    counts = np.zeros((OF + 1, values.shape[1]), np.int64)
    numbers, categories = np.flatnonzero(~rules.category), np.flatnonzero(rules.category)
    counts[OF] = len(values) - np.isnan(values).sum(axis=0)
    counts[MISSING] = len(values) - counts[OF]
    for columns, inside in ((numbers, np.greater), (categories, np.equal)):
        own = values[:, columns]
        for k in range(CELLS - 1 if len(columns) else 0):
            counts[k + 1, columns] = inside(own, cuts[k, columns]).sum(axis=0)
    # Numbers were counted above each cut; categories in each cell but the first, which has all others.
    counts[0] = counts[OF]
    counts[: CELLS - 1, numbers] -= counts[1:CELLS, numbers]
    counts[0, categories] -= counts[1:CELLS, categories].sum(axis=0)
    beyond = (values > known[1]) & (~rules.category | (values < rules.n_named))
    counts[NEW] = (beyond | (values < np.where(rules.category, 0.0, known[0]))).sum(axis=0)
    return counts


def _cuts(values: Array, category: bool) -> Array:
    """Return the cuts of a column.

    >>> _cuts(np.array([5.0, 5.0, 7.0, np.nan]), category=True)[:3].tolist()
    [5.0, 7.0, inf]
    >>> _cuts(np.arange(1.0, 101.0), category=False).tolist()
    [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0]
    >>> [f"{cut:.4f}" for cut in _cuts(np.array([0.0] * 95 + [1.0] * 5), category=False)[:3]]
    ['-0.0000', '0.0000', 'inf']
    """
    values, cuts = np.sort(values[~np.isnan(values)]), np.full(CELLS - 1, np.inf)
    if len(values) == 0:
        return cuts
    if category:
        codes, n = np.unique(values, return_counts=True)
        found = codes[np.argsort(-n, kind="stable")[: CELLS - 1]]
    else:
        tenths = values[np.arange(1, CELLS) * len(values) // CELLS - (np.arange(1, CELLS) * len(values) >= CELLS)]
        codes, n = np.unique(tenths, return_counts=True)
        # A value that is several tenths has a cell of its own, from just below it.
        found = np.sort(np.concatenate([codes, np.nextafter(codes[n > 1], -np.inf)]))
    cuts[: len(found)] = found
    return cuts
