"""What an encoder has learned about the columns of a stream."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

import numpy as np

from pairloom.base import compact
from pairloom.base.spec import Count, WrongState
from pairloom.base.tree import OPTIONAL, node
from pairloom.base.typing import Array
from pairloom.columns.loops import (
    CATEGORY,
    COUNT,
    DATE,
    DATE_WIDTH,
    DROP,
    HIGH,
    LOW,
    MASS,
    MISSING,
    N_STATISTICS,
    NUMBER,
    OPEN,
)
from pairloom.columns.values import MAX_CATEGORY_LENGTH

KIND_CODES = {"number": NUMBER, "category": CATEGORY, "date": DATE, "drop": DROP, None: OPEN}
KIND_NAMES = {code: kind or "open" for kind, code in KIND_CODES.items()}

PLAIN, MARKED, CODES, COMPACT = range(4)
"""Layouts. PLAIN: all columns are numbers and are left unchanged. COMPACT: numbers, parts of dates and codes of
categories, for an :class:`~pairloom.features.encoding.Encoding`. MARKED: numbers and dates, each with a missing
indicator, and one-hot categories. CODES: as COMPACT, with few codes, in models of earlier versions."""

Layouts = tuple[int, int]
"""The layout of columns that are all numbers, and that of mixed columns."""

LATE_WIDTH = 2
"""Features of a spare column: a number, and the code of a category."""

DATE_FEATURES = ("age", "day_sin", "day_cos", "week_sin", "week_cos", "year_sin", "year_cos", "missing")


@node
class Reserve:
    """Spare columns for names after the first row: their number, how many are in use, and their scaling.

    ``scaling``: mean, sum of squares and factor of each (:func:`~pairloom.columns.loops.update_scaling`). ``ignored``:
    number of values of names for which none was left.
    """

    size: Count
    used: Count
    ignored: Count
    scaling: Annotated[Array, "f8 3 _s finite"]

    def check(self) -> None:
        if self.used > self.size or self.scaling.shape[1] != self.size or (self.scaling[1:] < 0).any():
            raise WrongState("must have a scaling of each spare column")


@node
class ColumnsState:
    """Names and kinds of the columns, the first feature of each, their statistics, and the categories by column.

    ``width``: number of features of a row. ``malformed``: numbers of values that were treated as missing because they
    were not of the kind of their column; None without any. ``reserve``: the spare columns, if a new name may take one.
    """

    names: list[str]
    layout: Count
    width: Count
    kinds: Annotated[Array, f"i8 c 0:{len(KIND_CODES)}"]
    starts: Annotated[Array, "i8 c 0:BIG"]
    statistics: Annotated[Array, f"f8 {N_STATISTICS} c"]
    categories: list[list[str]]
    malformed: Annotated[Array, "i8 c 0:BIG"] | None = field(default=None, metadata=OPTIONAL)
    reserve: Reserve | None = field(default=None, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        self.known = set(self.names)
        # The code of each category, by column; and kinds as a list, which is faster to loop over.
        self.slots = [{name: code for code, name in enumerate(known)} for known in self.categories]
        self.plain_kinds: list[int] = self.kinds.tolist()

    @property
    def kind_names(self) -> dict[str, str]:
        """Kinds by column; "open" for a column without values so far."""
        return {name: KIND_NAMES[kind] for name, kind in zip(self.names, self.plain_kinds, strict=True)}

    @property
    def n_free(self) -> int:
        """Number of spare columns that are not in use."""
        return 0 if self.reserve is None else self.reserve.size - self.reserve.used

    @property
    def n_first(self) -> int:
        """Number of columns of the first row; later ones were spare columns."""
        return len(self.names) - (0 if self.reserve is None else self.reserve.used)

    @property
    def n_columns(self) -> int:
        """Number of columns, spare ones included."""
        return len(self.names) + self.n_free

    @property
    def sizes(self) -> Array:
        """Number of features of each column."""
        return np.diff(self.starts, append=self.width - LATE_WIDTH * self.n_free)

    @property
    def compact_kinds(self) -> str:
        """The letters of an :class:`~pairloom.features.encoding.Encoding` for the layout COMPACT.

        A column whose kind was open at first has room for a number or a date, and for a category after it; a spare one
        for a number and a category.
        """
        date = compact.NUMBER + compact.DATE_PART * (DATE_WIDTH - 1)
        late = compact.NUMBER + compact.CODE
        letters = {0: "", LATE_WIDTH: late, DATE_WIDTH: date, DATE_WIDTH + 1: date + compact.CODE}
        one = {NUMBER: compact.NUMBER, CATEGORY: compact.CODE}
        return (
            "".join(
                one[kind] if size == 1 else letters[size]
                for kind, size in zip(self.plain_kinds, self.sizes.tolist(), strict=True)
            )
            + late * self.n_free
        )

    @property
    def sources(self) -> Array:
        """The column that each feature of a row comes from."""
        return np.repeat(np.arange(len(self.names)), np.diff(self.starts, append=self.width))

    @property
    def places(self) -> dict[str, int]:
        """The feature that has the code of each category column, in the layout COMPACT."""
        opened = set(self.open_categories)
        places = [start + DATE_WIDTH if start in opened else start for start in self.starts.tolist()]
        late = [start + 1 for start in places[self.n_first :]]
        return dict(zip(self.names, places[: self.n_first] + late, strict=True))

    @property
    def open_categories(self) -> list[int]:
        """The first features of categories whose kind was open at first, in the layout COMPACT."""
        found: list[int] = self.starts[(self.kinds == CATEGORY) & (self.sizes > LATE_WIDTH)].tolist()
        return found

    def set_kinds(self, kinds: Array | list[int]) -> None:
        """Set the kinds of all columns."""
        self.kinds[:] = kinds
        self.plain_kinds = self.kinds.tolist()

    def count_malformed(self, counts: Mapping[int, int]) -> None:
        """Add numbers of malformed values, by position of their columns."""
        if self.malformed is None and any(counts.values()):
            self.malformed = np.zeros(len(self.names), np.int64)
        for j, count in counts.items():
            if self.malformed is not None:
                self.malformed[j] += count

    def adopt(self, name: str, kind: int) -> None:
        """Give the next spare column to a new name; all its values so far are missing."""
        assert self.reserve is not None
        start, own = self.width - LATE_WIDTH * self.n_free, np.zeros((N_STATISTICS, 1))
        if len(self.names):
            own[MISSING] = self.statistics[COUNT, 0] + self.statistics[MISSING, 0]
        self.names.append(name)
        self.known.add(name)
        self.categories.append([])
        self.slots.append({})
        self.statistics = np.hstack([self.statistics, own])
        self.starts = np.append(self.starts, start)
        if self.malformed is not None:
            self.malformed = np.append(self.malformed, 0)
        self.kinds = np.append(self.kinds, kind)
        self.plain_kinds = self.kinds.tolist()
        self.reserve.used += 1

    def check_with(self, max_categories: int, n_hashed: int, n_features: int, reserve: int | None) -> None:
        """Raise ValueError unless this state is possible with these parameters and ``n_features`` features."""
        c, codes = len(self.names), max_categories + n_hashed
        if (None if self.reserve is None else self.reserve.size) != reserve or (reserve and self.layout != COMPACT):
            raise WrongState(f"must be {reserve or 0} spare columns", "reserve")
        if not (c or reserve) or len(set(self.names)) < c or len(self.kinds) != c or len(self.categories) != c:
            raise WrongState("must have different names, and an entry for each column", "columns")
        if self.layout > COMPACT or self.width != n_features:
            raise WrongState(f"must have a known layout, with {n_features} features", "columns")
        if (self.sizes[self.n_first :] != LATE_WIDTH).any() or (self.kinds[self.n_first :] >= DROP).any():
            raise WrongState("must be numbers, categories or dates in the spare columns", "columns")
        sizes = self.sizes.tolist()[: self.n_first]
        for kind, size in zip(self.plain_kinds[: self.n_first], sizes, strict=True):
            if size != width_of(kind, self.layout, codes) and (
                kind == DROP or size != width_of(OPEN, self.layout, codes)
            ):
                raise WrongState("must have the number of features for each column that its kind requires", "columns")
        for known in self.categories:
            longest = max(map(len, known), default=0)
            if not len(set(known)) == len(known) <= max_categories or "" in known or longest > MAX_CATEGORY_LENGTH:
                raise WrongState(
                    f"must have different categories of at most {MAX_CATEGORY_LENGTH} characters", "columns"
                )
        self._check_statistics(np.array([len(known) for known in self.categories]), max_categories, codes)

    def _check_statistics(self, n_known: Array, max_categories: int, codes: int) -> None:
        seen = self.statistics[COUNT] > 0
        if (
            self.starts[:1].any()
            or not np.isfinite(self.statistics).all()
            or (seen & ~(self.statistics[MASS] > 0)).any()
        ):
            raise WrongState("must have finite statistics of each column", "columns")
        coded, end = seen & (self.kinds == CATEGORY), np.where(n_known == max_categories, codes, n_known)
        if (self.statistics[LOW, coded] < 0).any() or (self.statistics[HIGH, coded] >= end[coded]).any():
            raise WrongState("must have statistics of known codes only", "columns")


def first_state(
    names: list[str], kinds: list[str | None], layout: int, n_codes: int, reserve: int | None = None
) -> ColumnsState:
    """Return the state before the first row; a category column has ``n_codes`` codes, ``reserve`` columns are spare."""
    codes = np.array([KIND_CODES[kind] for kind in kinds], np.int64)
    sizes = [width_of(code, layout, n_codes) for code in codes.tolist()]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    statistics = np.zeros((N_STATISTICS, len(names)))
    spare = None if reserve is None else Reserve(reserve, 0, 0, np.zeros((3, reserve)))
    width = int(starts[-1]) + LATE_WIDTH * (reserve or 0)
    return ColumnsState(
        names, layout, width, codes, starts[:-1], statistics, [[] for _ in names], reserve=spare
    )  # fmt: skip


def width_of(kind: int, layout: int, n_codes: int) -> int:
    """Return the number of features of a column; one whose kind is open has room for any kind."""
    if kind == OPEN and layout == COMPACT:
        return DATE_WIDTH + 1
    if kind == OPEN:
        return max(width_of(one, layout, n_codes) for one in (NUMBER, CATEGORY, DATE))
    if layout == MARKED:
        return {NUMBER: 2, CATEGORY: 1 + n_codes, DATE: DATE_WIDTH + 1, DROP: 0}[kind]
    return {NUMBER: 1, CATEGORY: 1, DATE: DATE_WIDTH, DROP: 0}[kind]


def feature_names(state: ColumnsState, n_named: int, n_shared: int) -> list[str]:
    """Return the names of the features of a row, with ``n_named`` + ``n_shared`` codes of a category."""
    made: list[str] = []
    ends = [*state.starts[1:].tolist(), state.width]
    for name, kind, categories, end in zip(state.names, state.plain_kinds, state.categories, ends, strict=True):
        if kind == NUMBER:
            own = [name, f"{name}_missing"]
        elif kind == DATE:
            own = [f"{name}_{feature}" for feature in DATE_FEATURES]
        elif kind == CATEGORY and state.layout == MARKED:
            own = [f"{name}_missing", *(f"{name}={category}" for category in categories)]
            own += [f"{name}_free{k}" for k in range(len(categories), n_named)]
            own += [f"{name}_hashed{k}" for k in range(n_shared)]
        else:
            own = [name]
        size = end - len(made)
        made += [*own, *(f"{name}_{k}" for k in range(len(own), size))][:size]
    return made
