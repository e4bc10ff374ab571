"""The command itself, to which the other modules add theirs."""

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from pairloom import __version__

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def check_writable(out: Path, option: str) -> None:
    """Fail before the work, not after it, if a file cannot be written."""
    folder = out.absolute().parent
    if not folder.is_dir():
        raise typer.BadParameter(f"there is no folder {str(out.parent)!r}", param_hint=option)
    try:
        if out.exists():
            out.open("ab").close()
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise typer.BadParameter(f"cannot write {os.fspath(out)!r}: {error.strerror}", param_hint=option) from error


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pairloom {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Learning from pairs on a stream: one pass, bounded memory, kernels. Ranks the rare class first.

    Results go to stdout, progress and errors to stderr.

    Exit codes: 0 done, 1 failed, 2 wrong options or malformed input, 130 Ctrl-C, 141 nobody reads on, 143 SIGTERM.
    """
