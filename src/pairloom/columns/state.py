"""What is known of the columns of a stream."""

import numpy as np

from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.columns.loops import CATEGORY, DATE, DATE_WIDTH, DROP, N_STATISTICS, NUMBER, OPEN

KINDS = {"number": NUMBER, "category": CATEGORY, "date": DATE, "drop": DROP, None: OPEN}

PLAIN, MARKED, CODES = range(3)
"""Layouts. PLAIN: all columns are numbers, and stay as they are. MARKED: numbers and dates with a mark of missing
beside them, categories one-hot. CODES: for a map that takes missing values itself, numbers and codes."""


@node
class ColumnsState:
    """Names and kinds of the columns, where each one's numbers start, their statistics, and the categories by column.

    ``width``: the numbers of a row.
    """

    names: list[str]
    layout: int
    width: int
    kinds: Array
    starts: Array
    statistics: Array
    categories: list[list[str]]

    def __post_init__(self) -> None:
        # The code of each category, by column; and kinds as Python's numbers, which are faster to look at.
        self.slots = [{name: code for code, name in enumerate(known)} for known in self.categories]
        self.plain_kinds: list[int] = self.kinds.tolist()

    def tell(self, kinds: Array | list[int]) -> None:
        """The kinds that are known now."""
        self.kinds[:] = kinds
        self.plain_kinds = self.kinds.tolist()


def first_state(names: list[str], kinds: list[str | None], layout: int, n_codes: int) -> ColumnsState:
    """Before the first row; a category has ``n_codes`` codes."""
    sizes = [width_of(KINDS[kind], layout, n_codes) for kind in kinds]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return ColumnsState(
        names, layout, int(starts[-1]), np.array([KINDS[kind] for kind in kinds], np.int64), starts[:-1],
        np.zeros((N_STATISTICS, len(names))), [[] for _ in names],
    )  # fmt: skip


def width_of(kind: int, layout: int, n_codes: int) -> int:
    """The numbers of a column; one whose kind is open has room for any."""
    if kind == OPEN:
        return max(width_of(one, layout, n_codes) for one in (NUMBER, CATEGORY, DATE))
    if layout == MARKED:
        return {NUMBER: 2, CATEGORY: 1 + n_codes, DATE: DATE_WIDTH + 1, DROP: 0}[kind]
    return {NUMBER: 1, CATEGORY: 1, DATE: DATE_WIDTH, DROP: 0}[kind]
