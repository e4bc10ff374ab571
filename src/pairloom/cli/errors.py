"""Errors of commands: one or two lines on stderr, and an exit code.

0    success
1    a file cannot be written, a package is missing, or an internal error
2    wrong options or invalid input (FILE:LINE)
3    a requirement of evaluate --require failed
130  Ctrl-C
141  stdout was closed by the reader
143  SIGTERM
"""

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

from pairloom.base.errors import InvalidDataError
from pairloom.base.extras import MissingExtra

EXIT_FAILURE, EXIT_USAGE, EXIT_REQUIREMENT = 1, 2, 3
EXIT_INTERRUPTED, EXIT_BROKEN_PIPE, EXIT_TERMINATED = 130, 141, 143


@contextmanager
def report_errors(debug: bool) -> Iterator[None]:
    """Print errors and warnings in one line, with a traceback if ``debug``, and set the exit code."""
    warnings.showwarning = _print_warning
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout once more at exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(EXIT_BROKEN_PIPE) from None
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        typer.echo("Interrupted.", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except Exception as error:
        if debug:
            traceback.print_exc()
        _exit(error, debug)


def error_message(error: Exception) -> str:
    """Return the message with advice for the command line, without the row number, which the caller knows."""
    return error.for_command if isinstance(error, InvalidDataError) else str(error)


def _exit(error: Exception, debug: bool) -> NoReturn:
    from pairloom.data.readers.opening import FileError  # imported here to keep --help fast

    if isinstance(error, FileError):
        text, code = str(error), EXIT_USAGE
    elif isinstance(error, ValueError):
        text, code = f"pairloom: {error_message(error)}", EXIT_USAGE
    elif isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        text, code = f"pairloom: {where}{error.strerror}", EXIT_FAILURE
    elif isinstance(error, (OSError, MissingExtra)):
        text, code = f"pairloom: {error}" if isinstance(error, OSError) else str(error), EXIT_FAILURE
    else:
        hint = "" if debug else "\nThis is a bug in pairloom; run with --debug for a traceback."
        text, code = f"pairloom: {type(error).__name__}: {error}{hint}", EXIT_FAILURE
    # Notes name the partial outputs.
    typer.echo("\n".join([text, *getattr(error, "__notes__", [])]), err=True)
    raise typer.Exit(code) from None


def _print_warning(message: Warning | str, *rest: Any, **more: Any) -> None:
    typer.echo(f"pairloom: warning: {message}", err=True)
