"""What a command says: results on stdout, progress on stderr, in colour only where somebody looks."""

import json
import math
import sys
from time import monotonic
from typing import Any

import typer

PER_SECOND, PER_LINE = 0.2, 10.0
"""Seconds between two signs of progress: on a terminal, and in a file."""


class Progress:
    """How far a command is, on stderr: one line that changes on a terminal, a line now and then elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.live = quiet, sys.stderr.isatty()
        self.last, self.width = monotonic(), 0

    @property
    def due(self) -> bool:
        """Whether it is time to say something."""
        return not self.quiet and monotonic() - self.last > (PER_SECOND if self.live else PER_LINE)

    def say(self, text: str) -> None:
        """How far it is."""
        self.last = monotonic()
        if self.live:
            sys.stderr.write("\r" + text.ljust(self.width))
            self.width = len(text)
            sys.stderr.flush()
        else:
            typer.echo(text, err=True)

    def note(self, text: str) -> None:
        """Something besides, which stays."""
        if not self.quiet:
            self.clear()
            typer.echo(text, err=True)

    def clear(self) -> None:
        """Make room for results."""
        if self.live and self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()
            self.width = 0


def result(lines: list[tuple[str, str]], values: dict[str, Any], as_json: bool) -> None:
    """A result: names and texts for people, or JSON for machines, in which a number that is none is null."""
    if as_json:
        typer.echo(json.dumps(finite(values)))
        return
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        typer.echo(f"{name.ljust(width)}  {text}")


def finite(value: Any) -> Any:
    """A tree with null in place of NaN and infinity, which JSON does not have.

    >>> finite({"auc": float("nan"), "rows": (1, 2.5)})
    {'auc': None, 'rows': [1, 2.5]}
    """
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
