"""What the parts of the report have in common, as HTML."""

import re
from html import escape

from pairloom.base.html import Markup, element


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
