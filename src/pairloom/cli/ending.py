"""How a command ends: exit codes, and errors of one or two lines.

0    done
1    a file cannot be written, a package is missing, or something went wrong that should not
2    wrong options, or input that cannot be taken: FILE:LINE says where
130  Ctrl-C
141  whoever read the output is gone
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

from pairloom.base.extras import MissingExtra
from pairloom.base.refusal import Refusal

FAILED, WRONG, INTERRUPTED, UNREAD, TERMINATED = 1, 2, 130, 141, 143


@contextmanager
def manners(debug: bool) -> Iterator[None]:
    """Errors and warnings in few words, unless ``debug``; each error with its exit code."""
    warnings.showwarning = _warn
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would flush once more at its end, and say so.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(UNREAD) from None
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        typer.echo("Stopped.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if debug:
            traceback.print_exc()
        _fail(error, debug)


def message_of(error: Exception) -> str:
    """What is wrong and what to do about it, on the command line: whoever says it knows the line of the row."""
    return error.for_command if isinstance(error, Refusal) else str(error)


def _fail(error: Exception, debug: bool) -> NoReturn:
    # Here: the help of a command is not to wait for what it imports.
    from pairloom.data.readers.opening import InputError

    if isinstance(error, InputError):
        text, code = str(error), WRONG
    elif isinstance(error, ValueError):
        text, code = f"pairloom: {message_of(error)}", WRONG
    elif isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        text, code = f"pairloom: {where}{error.strerror}", FAILED
    elif isinstance(error, (OSError, MissingExtra)):
        text, code = f"pairloom: {error}" if isinstance(error, OSError) else str(error), FAILED
    else:
        text = f"pairloom: {type(error).__name__}: {error}" + ("" if debug else "\nThat is a bug: --debug says where.")
        code = FAILED
    # What became of the outputs.
    typer.echo("\n".join([text, *getattr(error, "__notes__", [])]), err=True)
    raise typer.Exit(code) from None


def _warn(message: Warning | str, *rest: Any, **more: Any) -> None:
    typer.echo(f"pairloom: warning: {message}", err=True)
