"""What a column holds, and how it is to be taken."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from pairloom.base.checks import check_choice, check_count

Kind = Literal["number", "category", "date", "drop"]
OnText = Literal["raise", "missing"]


@dataclass(frozen=True)
class Columns:
    """How the columns of data frames and mappings become numbers.

    Parameters
    ----------
    kinds : kinds by name, such as {"device": "category", "id": "drop"}; of the other columns, their type tells.
    max_categories : categories of a column that have a number of their own, in the order in which they came.
    n_hashed : numbers that all further categories of a column share, each by its hash.
    marks_after : missing values of a column of numbers or dates after which its mark of missing is used. Before that it
        stays 0: of few rows a model learns more noise than news from a mark.
    on_text : what a column of numbers or dates does with a value that is none: "raise", or take it for "missing".

    >>> Columns({"device": "category"}).max_categories
    16
    """

    kinds: Mapping[str, Kind] | Iterable[tuple[str, Kind]] = ()
    max_categories: int = 16
    n_hashed: int = 4
    marks_after: int = 256
    on_text: OnText = "raise"

    def __post_init__(self) -> None:
        pinned = dict(self.kinds)
        for name, kind in pinned.items():
            if not isinstance(name, str):
                raise ValueError(f"columns= names columns by text; got {name!r}")
            check_choice(f"columns[{name!r}]", kind, Kind)
        object.__setattr__(self, "kinds", tuple(pinned.items()))
        check_count("max_categories", self.max_categories)
        check_count("n_hashed", self.n_hashed)
        if self.marks_after != 0 or isinstance(self.marks_after, bool):
            check_count("marks_after, unless it is 0,", self.marks_after)
        check_choice("on_text", self.on_text, OnText)


ColumnsLike = Columns | Mapping[str, Kind] | None


def columns_of(given: ColumnsLike) -> Columns:
    """The part that a parameter stands for; ValueError for all that is none."""
    if given is None:
        return Columns()
    if isinstance(given, Columns):
        return given
    if isinstance(given, Mapping):
        return Columns(given)
    kinds = ", ".join(get_args(Kind))
    raise ValueError(f"columns must be a mapping from names to kinds ({kinds}), a Columns, or None; got {given!r}")
