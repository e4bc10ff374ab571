"""Results on stdout, progress on stderr."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from time import monotonic
from types import MappingProxyType
from typing import Any

import typer

TERMINAL_SECONDS, FILE_SECONDS = 0.2, 10.0
"""Seconds between two progress messages on a terminal, and in a file."""


MAX_LISTED = 40
"""Maximum number of columns that a message lists."""


AUC_WINDOW = "on the last 4,096 rows, each scored before it was learned"


class Progress:
    """Progress on stderr: one line that is updated on a terminal, a line every few seconds elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.live = quiet, sys.stderr.isatty()
        self.last, self.width = monotonic(), 0

    @property
    def due(self) -> bool:
        """Whether it is time for the next message."""
        return not self.quiet and monotonic() - self.last > (TERMINAL_SECONDS if self.live else FILE_SECONDS)

    def update(self, text: str) -> None:
        self.last = monotonic()
        if self.live:
            sys.stderr.write("\r" + text.ljust(self.width))
            self.width = len(text)
            sys.stderr.flush()
        else:
            typer.echo(text, err=True)

    def note(self, text: str) -> None:
        """Print a permanent message."""
        if not self.quiet:
            self.clear()
            typer.echo(text, err=True)

    def clear(self) -> None:
        """Clear the progress line."""
        if self.live and self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()
            self.width = 0


def print_result(lines: list[tuple[str, str]], values: dict[str, Any], as_json: bool) -> None:
    """Print a result as lines of name and text, or as JSON."""
    if as_json:
        typer.echo(to_json(values))
        return
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        typer.echo(f"{name.ljust(width)}  {text}")


def list_names(names: Sequence[str], details: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return names for a message; if there are many, the first ones and the last, which may be the label.

    ``details``: texts to put after names.

    >>> list_names("abc")
    "'a', 'b', 'c'"
    >>> list_names([f"c{j}" for j in range(1000)])[-27:]
    "'c18', 980 more, and 'c999'"
    """
    listed = [f"{name!r}{details.get(name, '')}" for name in names]
    if len(listed) <= MAX_LISTED:
        return ", ".join(listed)
    first = listed[: MAX_LISTED // 2 - 1]
    return f"{', '.join(first)}, {len(listed) - len(first) - 1:,} more, and {listed[-1]}"


def to_json(value: Any) -> str:
    """Return valid JSON: non-finite values become null.

    >>> to_json({"auc": float("nan"), "rows": (1, 2.5)})
    '{"auc": null, "rows": [1, 2.5]}'
    """
    return json.dumps(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
