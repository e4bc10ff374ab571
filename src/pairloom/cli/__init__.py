"""The command ``pairloom``."""

import sys

from pairloom.base.extras import MissingExtra, import_extra


def app() -> None:
    """Run the command; exit with a message and status 1 if a package is missing."""
    try:
        for package in ("typer", "rich"):
            import_extra(package, "cli", "The command pairloom")
        from pairloom.cli.commands import app as commands

        commands(prog_name="pairloom")
    except MissingExtra as missing:
        sys.exit(str(missing))
