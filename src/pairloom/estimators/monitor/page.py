"""The panels as a self-contained HTML page that reloads itself every few seconds."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from html import escape
from importlib.resources import files
from string import Template

import numpy as np

from pairloom.base.typing import Array
from pairloom.columns.changes import ARROW
from pairloom.estimators.monitor.panels import Band, Line, Panel, panels_of, row_ticks
from pairloom.estimators.monitor.view import View
from pairloom.stream.history import ALERT_RATE
from pairloom.stream.hooks import N_RECENT

RELOAD_SECONDS = 5
"""Seconds after which a browser reloads the page."""

SVG_SIZE = 1000.0
"""Width and height of a plot in SVG units; it is stretched to its place on the page, without its text."""

PANEL_PIXELS = 120
"""Height of a panel of height 1, in pixels."""


MAX_COLUMNS = 10
"""Columns in the table of importance."""

MAX_CHANGES = 30
"""Columns in the table of changes."""


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def element(name: str, /, *inside: object, **attributes: object) -> Markup:
    """Return an HTML element, with its text escaped unless it is ``Markup``.

    ``class_`` and ``data_value`` become class and data-value; attributes that are None or False are left out.

    >>> element("p", "1 < 2 ", element("b", "so"), class_="note")
    '<p class="note">1 &lt; 2 <b>so</b></p>'
    """
    shown = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Markup(f"<{name}{shown}>{joined(inside)}</{name}>")


def joined(parts: Iterable[object], between: str = "") -> Markup:
    """Join elements and escaped text; None is left out."""
    texts = (part if isinstance(part, Markup) else escape(str(part)) for part in parts if part is not None)
    return Markup(between.join(texts))


def page(view: View, when: datetime) -> str:
    """Return the HTML of the page."""
    area = "" if view.area is None else f"AUC {view.area.value:.4f}, "
    title = f"{area}{view.rows:,} rows"
    panels = panels_of(view)
    header = element(
        "header",
        element("h1", "pairloom monitor"),
        element("p", "written ", element("time", f"{when:%Y-%m-%d %H:%M:%S %Z}", datetime=when.isoformat())),
    )
    shown = [_section(panel, view, last=panel is panels[-1]) for panel in panels]
    unit = element("p", "rows", class_="unit")
    body = joined([header, _numbers(view), element("main", *shown), unit, _importance(view), _changes(view)], "\n")
    text = Template(_resource("page.html"))
    return text.substitute(seconds=RELOAD_SECONDS, title=joined([title]), style=_resource("style.css"), body=body)


@cache
def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _numbers(view: View) -> Markup:
    """The key figures of the model."""
    area, positives = view.area, view.positives
    shown = [
        ("AUC", "none yet" if area is None else f"{area.value:.4f}",
         f"newest {min(view.rows, N_RECENT):,} rows" if area is None else f"{area.low:.4f} to {area.high:.4f} (95 %)"),
        ("Rows", f"{view.rows:,}", "learned so far"),
        ("Positives", "unknown" if positives is None else f"{positives[0]:,.0f}",
         "no pos_label" if positives is None else f"{view.names[0]}, {100.0 * positives[1]:.2g} % of the rows"),
        ("Alert threshold", "none yet" if view.threshold is None else _signed(f"{view.threshold:.3f}"),
         f"log-odds, for {100 * ALERT_RATE:g} % of the rows"),
        ("Last change", f"row {view.since:,}" if view.alarms else "none", _found(view)),
        ("Members", f"{len(view.members)}", _leader(view.members)),
    ]  # fmt: skip
    items = [
        element("div", element("dt", name), element("dd", value, element("small", about)), id=_id(name))
        for name, value, about in shown
    ]
    return element("dl", *items, class_="numbers")


def _found(view: View) -> str:
    """Say where the newest change was found, and how many there were."""
    if not view.alarms:
        return "0 in all" if view.watched else "not watched"
    return f"found at row {view.alarms[-1]:,}; {len(view.alarms):,} in all"


def _id(name: str) -> str:
    return name.lower().replace(" ", "-")


def _leader(members: Sequence[tuple[str, float]]) -> str:
    if not members:
        return "none before row 16"
    name, share = members[0]
    return name if np.isnan(share) else f"{name}: {100.0 * share:.0f} %"


def _section(panel: Panel, view: View, *, last: bool) -> Markup:
    key = [element("li", element("i", style=f"background:{colour}"), name) for name, colour in panel.key]
    if view.alarms and panel.title == "AUC":
        key.append(element("li", element("i", class_="mark"), "change found"))
    names = element("ul", *key, class_="key") if key else None
    head = element("div", element("h2", panel.title), element("p", panel.about), names, class_="head")
    most = max(1, view.rows)
    y = [element("span", text, class_="y", style=f"bottom:{100 * _height(panel, tick):.2f}%")
         for tick, text in panel.ticks.items()]  # fmt: skip
    x = [element("span", f"{row:,}", class_="x end" if row == most else "x", style=f"left:{100 * row / most:.2f}%")
         for row in row_ticks(view.rows) if row <= most]  # fmt: skip
    plot = element(
        "div",
        *(x if last else ()),
        _svg(panel, view),
        *y,
        class_="plot",
        style=f"height:{panel.height * PANEL_PIXELS:.0f}px",
    )
    return element("section", head, plot, class_="panel")


def _importance(view: View) -> Markup | None:
    """The table of the columns that contribute most to the scores now."""
    if not view.importance:
        return None
    shown, rest = view.importance[:MAX_COLUMNS], view.importance[MAX_COLUMNS:]
    head = element("tr", element("th", "column", scope="col"), element("th", "share", scope="col"))
    most = max(share for _, share in shown)
    rows = [
        element("tr", element("td", name), element("td", _bar(share / most), f" {100.0 * share:.1f} %"))
        for name, share in shown
    ]
    more = f"; {len(rest):,} more columns share {100.0 * sum(share for _, share in rest):.1f} %" if rest else ""
    about = element("p", f"mean absolute contributions to the scores of the newest rows of each class{more}")
    title = element("div", element("h2", "Columns that matter now"), about, class_="head")
    return element("section", title, element("table", element("thead", head), element("tbody", *rows)), id="importance")


def _bar(share: float) -> Markup:
    return element("i", class_="bar", style=f"width:{8.0 * share:.2f}rem")


def _changes(view: View) -> Markup | None:
    """The table of columns that have changed, the newest first."""
    if not view.changes:
        return None
    cells = [one.cells for one in view.changes]
    head = element("tr", *(element("th", name, scope="col") for name in cells[0]))
    rows = [element("tr", *(element("td", _shown(text)) for text in own.values())) for own in cells[:MAX_CHANGES]]
    more = f" of {len(cells):,} columns" if len(cells) > MAX_CHANGES else ""
    about = element("p", f"the newest change of each column{more}, found without labels; older, then newer rows")
    title = element("div", element("h2", "Changes of columns"), about, class_="head")
    return element("section", title, element("table", element("thead", head), element("tbody", *rows)), id="changes")


def _shown(text: str) -> str:
    return _signed(text.replace(ARROW, " \N{RIGHTWARDS ARROW} "))


def _svg(panel: Panel, view: View) -> Markup:
    most = max(1, view.rows)
    rows, heights = row_ticks(view.rows), [SVG_SIZE * (1.0 - _height(panel, tick)) for tick in panel.ticks]
    shown = [
        *(_vertical(SVG_SIZE * row / most, "grid") for row in rows if 0 < row <= most),
        *(element("line", x1=0.0, y1=f"{y:.1f}", x2=SVG_SIZE, y2=f"{y:.1f}", class_="grid") for y in heights),
        *(element("path", d=_area(panel, band, most), style=f"fill:{band.colour};fill-opacity:{band.strength}")
          for band in panel.bands),
        *(element("path", d=_path(panel, line, most), style=f"stroke:{line.colour}", class_=_kind(line))
          for line in panel.lines),
        *(_vertical(SVG_SIZE * row / most, "drift") for row in view.alarms),
    ]  # fmt: skip
    return element(
        "svg", *shown, viewBox=f"0 0 {SVG_SIZE:g} {SVG_SIZE:g}", preserveAspectRatio="none", role="img",
        aria_label=f"{panel.title}: {panel.about}",
    )  # fmt: skip


def _kind(line: Line) -> str:
    return "level" if line.dashed else "dot" if np.isfinite(line.y).sum() == 1 else "line"


def _vertical(x: float, kind: str) -> Markup:
    return element("line", x1=f"{x:.1f}", y1=0.0, x2=f"{x:.1f}", y2=SVG_SIZE, class_=kind)


def _area(panel: Panel, band: Band, most: int) -> str:
    """Return the SVG path of a band, in pieces where it has gaps."""
    parts = []
    for run in _runs(np.isfinite(band.low) & np.isfinite(band.high)):
        x, low, high = band.x[run], band.low[run], band.high[run]
        if band.steps:
            x, low, high = np.repeat(x, 2)[1:], np.repeat(low, 2)[:-1], np.repeat(high, 2)[:-1]
        outline = [*_points(panel, x, high, most), *_points(panel, x[::-1], low[::-1], most)]
        parts.append(f"M{'L'.join(outline)}Z")
    return "".join(parts)


def _path(panel: Panel, line: Line, most: int) -> str:
    """Return the SVG path of a line with gaps; an isolated point becomes a short line."""
    parts = []
    for run in _runs(np.isfinite(line.y)):
        points = _points(panel, line.x[run], line.y[run], most)
        parts.append(f"M{'L'.join(points)}" + ("h0.1" if len(points) == 1 else ""))
    return "".join(parts)


def _points(panel: Panel, x: Array, y: Array, most: int) -> list[str]:
    low, high = panel.span
    across, down = SVG_SIZE / most * x, SVG_SIZE * np.clip((high - y) / (high - low), -1.0, 2.0)
    return [f"{a:.1f} {b:.1f}" for a, b in zip(across.tolist(), down.tolist(), strict=True)]


def _runs(mask: Array) -> Iterator[slice]:
    """Return the runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return (slice(start, end) for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _height(panel: Panel, value: float) -> float:
    low, high = panel.span
    return (value - low) / (high - low)


def _signed(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")
