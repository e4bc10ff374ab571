"""Elements of HTML. What enters them is escaped, unless it is an element itself."""

import re
from collections.abc import Iterable
from html import escape


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *inside: object, **attributes: object) -> Markup:
    """An element; ``class_`` and ``data_value`` stand for class and data-value, None and False are left out.

    >>> element("p", "1 < 2 ", element("b", "so"), class_="note")
    '<p class="note">1 &lt; 2 <b>so</b></p>'
    """
    shown = "".join(
        f" {_attribute(key)}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Markup(f"<{name}{shown}>{joined(inside)}</{name}>")


def joined(parts: Iterable[object], between: str = "") -> Markup:
    """Elements and texts one after the other; None is left out."""
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
    """A part of the page with a heading, to which links can point."""
    return element("section", element("h2", title), *inside, id=name)


def missing(experiment: str) -> Markup:
    """In place of what has not been measured: the command that does."""
    command = element("code", f"pairloom reproduce {experiment}")
    return element("p", "Not measured yet: ", command, " fills this part.", class_="missing")


def note(text: str) -> Markup:
    """A remark on a table or on a whole section."""
    return element("p", text, class_="note")


def details(title: object, *inside: object) -> Markup:
    """A part that opens with a click."""
    return element("details", element("summary", title), *inside)


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")
