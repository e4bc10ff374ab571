"""The command itself, to which the other modules add theirs."""

from typing import Annotated

import typer

from pairloom import __version__

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


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
