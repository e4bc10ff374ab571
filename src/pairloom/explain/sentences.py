"""Reasons as sentences: the value of a column, what it does to the score, and how usual it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from pairloom.base.typing import Array

MAX_TEXT = 40
"""Characters of a name or a category in a sentence."""


@dataclass(frozen=True)
class Cells:
    """What rows and their background contain.

    ``numbers`` (rows, columns): values as numbers, days or codes; ``background``: those of the background rows of each
    row; ``texts``: by column, the categories of the rows, or None; ``dates`` (columns,): whether the numbers are days.
    """

    numbers: Array
    background: list[Array]
    texts: list[list[str | None] | None]
    dates: list[bool]

    @classmethod
    def joined(cls, parts: Sequence["Cells"], order: Array) -> Self:
        """Return the rows of several parts, in this order."""
        places, first = order.tolist(), parts[0]
        texts: list[list[str | None] | None] = []
        for j, own in enumerate(first.texts):
            column = [text for part in parts for text in (part.texts[j] or [])]
            texts.append(None if own is None else [column[i] for i in places])
        background = [one for part in parts for one in part.background]
        numbers = np.concatenate([part.numbers for part in parts])[order]
        return cls(numbers, [background[i] for i in places], texts, first.dates)

    def text(self, i: int, j: int) -> str | None:
        """Return a value as text; None if it is missing."""
        texts = self.texts[j]
        if texts is not None:
            text = texts[i]
            return None if text is None else printable(text)
        value = float(self.numbers[i, j])
        if np.isnan(value):
            return None
        if self.dates[j]:
            moment = np.datetime64(0, "s") + np.timedelta64(round(86_400 * value), "s")
            return str(moment).removesuffix("T00:00:00").replace("T", " ")
        return f"{value:,.6g}"

    def shown(self) -> Array:
        """Return numbers, and texts of categories and dates, as an array of objects."""
        out = np.empty(self.numbers.shape, object)
        for j, (texts, date) in enumerate(zip(self.texts, self.dates, strict=True)):
            for i in range(len(out)):
                out[i, j] = self.text(i, j) if date or texts is not None else float(self.numbers[i, j])
        return out


def printable(text: str) -> str:
    """Return text without characters that change what a terminal shows, shortened.

    >>> printable("a" + chr(27) + "[2Jb")
    'a?[2Jb'
    """
    shown = "".join(one if one.isprintable() else "?" for one in text)
    return shown if len(shown) <= MAX_TEXT else shown[: MAX_TEXT - 3] + "..."


def sentence(name: str, cells: Cells, i: int, j: int, value: float) -> str:
    """Return a sentence on the contribution ``value`` of column j to the score of row i.

    >>> cells = Cells(np.array([[1250.0]]), [np.array([[3.0], [9.0], [2000.0]])], [None], [False])
    >>> sentence("amount", cells, 0, 0, 1.319)
    'amount 1,250 raises the score by 1.32: above 2 of 3 typical rows'
    """
    text, usual = cells.text(i, j), cells.background[i][:, j]
    does = f"{'raises' if value > 0 else 'lowers'} the score by {abs(value):.3g}"
    if text is None:
        return f"{printable(name)} is missing, which {does}: missing in {_count(np.isnan(usual))} typical rows"
    own = float(cells.numbers[i, j])
    if cells.texts[j] is not None:
        # A category that was never learned has no code: it differs from all.
        return f"{printable(name)} {text} {does}: another value in {_count(~(usual == own))} typical rows"
    above, below = usual < own, usual > own
    side, which = ("above", above) if above.sum() >= below.sum() else ("below", below)
    if cells.dates[j]:
        side = {"above": "later than", "below": "earlier than"}[side]
    return f"{printable(name)} {text} {does}: {side} {_count(which)} typical rows"


def _count(which: Array) -> str:
    return f"{int(which.sum())} of {len(which)}"
