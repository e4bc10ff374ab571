"""Elements of HTML. What enters them is escaped, unless it is an element itself."""

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


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")
