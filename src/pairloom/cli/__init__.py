"""The command ``pairloom``: here only the door, which opens with or without the packages behind it."""

import sys

from pairloom.base.extras import MissingExtra, needed


def app() -> None:
    """Run the command; where a package is missing, one sentence and status 1."""
    try:
        for package in ("typer", "rich"):
            needed(package, "cli", "The command pairloom")
        from pairloom.cli.commands import app as commands

        commands(prog_name="pairloom")
    except MissingExtra as missing:
        sys.exit(str(missing))
