"""Elements of HTML, and the tables of the report. Text is escaped unless it is an element."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from reproduction.report.wording import number


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def element(name: str, /, *inside: object, **attributes: object) -> Markup:
    """An element; attributes that are None are left out, and ``class_``, ``data_value`` become class, data-value.

    >>> element("p", "1 < 2 ", element("b", "so"), class_="note")
    '<p class="note">1 &lt; 2 <b>so</b></p>'
    """
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    shown = "".join(f' {key}="{escape(str(value))}"' for key, value in given.items())
    return Markup(f"<{name}{shown}>{joined(inside)}</{name}>")


def joined(parts: Iterable[object], between: str = "") -> Markup:
    """Elements and texts in a row; None is left out."""
    return Markup(between.join(part if isinstance(part, Markup) else escape(str(part))
                               for part in parts if part is not None))  # fmt: skip


def maths(text: str) -> Markup:
    """Text with indices and powers: ``w_{t-1}`` and ``T^{2}``.

    >>> maths("w_{t} < 1")
    'w<sub>t</sub> &lt; 1'
    """
    escaped = re.sub(r"_\{([^{}]*)\}", r"<sub>\1</sub>", escape(text))
    return Markup(re.sub(r"\^\{([^{}]*)\}", r"<sup>\1</sup>", escaped))


def section(name: str, title: str, *inside: object) -> Markup:
    """A folded part of the page with a heading and an anchor for links."""
    return element("section", details(element("h2", title), *inside), id=name)


def missing(experiment: str) -> Markup:
    """The placeholder of a part that is not measured yet: the command that measures it."""
    command = element("code", f"python -m reproduction {experiment}")
    return element("p", "Not measured yet: ", command, " fills this part.", class_="missing")


def note(text: str) -> Markup:
    """A remark on a table or on a section."""
    return element("p", text, class_="note")


def details(title: object, *inside: object) -> Markup:
    """A part that opens with a click."""
    return element("details", element("summary", title), *inside)


@dataclass(frozen=True)
class Column:
    """A heading; ``group`` is written above neighbours that share it."""

    title: object
    group: str = ""


@dataclass(frozen=True)
class Entry:
    """A cell of a table: its content, the number to sort by (default: the text), and a class for the style sheet."""

    shown: object
    value: float | None = None
    kind: str = ""


ABSENT = Entry("–", kind="absent")
"""The cell of a number that is not known."""


def number_entry(value: float | None, text: Callable[[float], str] = number, absent: Entry = ABSENT) -> Entry:
    """A number as ``text`` shows it; None and NaN are ``absent``."""
    return absent if value is None or value != value else Entry(text(value), float(value))


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Entry]],
    caption: str,
    kind: str = "",
    after: Markup | None = None,
    foot: Sequence[Entry] = (),
) -> Markup:
    """A table that scrolls in its own frame and can be sorted by any column; the first entry of a row is a heading.

    ``foot``: a last row, which stays last.
    """
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
        element("tfoot", element("tr", *(_cell(*one) for one in zip(foot, range(len(foot)), numeric, strict=True))))
        if foot
        else None,
        class_=f"sortable {kind}".strip(),
        aria_label=caption,
    )
    # The caption is outside of the frame: a caption element would be as wide as the table.
    above = element("p", caption, class_="caption")
    frame = element("div", whole, class_="scroll", tabindex=0, role="region", aria_label=f"{caption}; scrolls sideways")
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
