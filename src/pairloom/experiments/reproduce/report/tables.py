"""Tables that scroll in their own frame and can be sorted by any column."""

from collections.abc import Sequence
from dataclasses import dataclass

from pairloom.base.html import Markup, element


@dataclass(frozen=True)
class Column:
    """A heading; ``group`` is written above neighbours that share it."""

    title: object
    group: str = ""


@dataclass(frozen=True)
class Entry:
    """A cell: what is shown, what it is sorted by (its text, unless a number is given), and a class for its look."""

    shown: object
    value: float | None = None
    kind: str = ""


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Entry]],
    caption: str,
    kind: str = "",
    after: Markup | None = None,
) -> Markup:
    """A table; the first entry of a row is its heading."""
    numeric = [any(row[k].value is not None for row in rows) for k in range(len(columns))]
    heads = [
        element("th", element("button", column.title, type="button"), scope="col", class_="num" if numeric[k] else None)
        for k, column in enumerate(columns)
    ]
    body = [element("tr", *(_cell(entry, k, numeric[k]) for k, entry in enumerate(row))) for row in rows]
    whole = element(
        "table",
        element("thead", _groups(columns), element("tr", *heads)),
        element("tbody", *body),
        class_=f"sortable {kind}".strip(),
        aria_label=caption,
    )
    # The caption stands outside of what scrolls: a caption element would be as wide as the table.
    above = element("p", caption, class_="caption")
    frame = element("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)
    return element("div", above, frame, after, class_="table")


def _cell(entry: Entry, k: int, numeric: bool) -> Markup:
    kind = " ".join(part for part in ("num" if numeric else "", entry.kind) if part)
    value = None if entry.value is None or entry.value != entry.value else repr(float(entry.value))
    more = {"scope": "row"} if k == 0 else {}
    return element("td" if k else "th", entry.shown, class_=kind or None, data_value=value, **more)


def _groups(columns: Sequence[Column]) -> Markup | None:
    if not any(column.group for column in columns):
        return None
    cells, start = [], 0
    for k in range(1, len(columns) + 1):
        if k == len(columns) or columns[k].group != columns[start].group:
            name = columns[start].group
            scope = {"scope": "colgroup"} if name else {}
            cells.append(element("th" if name else "td", name, colspan=k - start, **scope))
            start = k
    return element("tr", *cells, class_="groups")
