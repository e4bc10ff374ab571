"""How a command ends: exit codes, and errors of one or two lines.

0    done
1    a file cannot be written, a package is missing, or something went wrong that should not
2    wrong options, or input that cannot be taken: FILE:LINE says where
130  Ctrl-C
141  whoever read the output is gone
143  SIGTERM
"""

import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

from pairloom.base.extras import MissingExtra

FAILED, WRONG, INTERRUPTED, UNREAD, TERMINATED = 1, 2, 130, 141, 143

WORDS = (
    (r" at row 0\b", ""),
    (r"columns=\{'(.*?)': \"(\w+)\"\}", r"--set columns.\1=\2"),
    (r"columns=Columns\(on_text=\"missing\"\)", "--set columns.on_text=missing"),
    (
        r"name all labels with classes= in the first call of partial_fit",
        "name one against all others, --positive VALUE",
    ),
    (r"before the\s+first row ", ""),
)
"""What Python's users are told to write, as the command has it."""


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


def in_other_words(text: str) -> str:
    """A message with options in place of Python's parameters.

    >>> in_other_words("column 'a' holds infinity at row 0")
    "column 'a' holds infinity"
    """
    for python, option in WORDS:
        text = re.sub(python, option, text)
    return text


def _fail(error: Exception, debug: bool) -> NoReturn:
    # Here: the help of a command is not to wait for what it imports.
    from pairloom.data.readers.opening import InputError

    if isinstance(error, InputError):
        text, code = str(error), WRONG
    elif isinstance(error, ValueError):
        text, code = f"pairloom: {in_other_words(str(error))}", WRONG
    elif isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        text, code = f"pairloom: {where}{error.strerror}", FAILED
    elif isinstance(error, (OSError, MissingExtra)):
        text, code = f"pairloom: {error}" if isinstance(error, OSError) else str(error), FAILED
    else:
        text = f"pairloom: {type(error).__name__}: {error}" + ("" if debug else "\nThat is a bug: --debug says where.")
        code = FAILED
    typer.echo(text, err=True)
    raise typer.Exit(code) from None


def _warn(message: Warning | str, *rest: Any, **more: Any) -> None:
    typer.echo(f"pairloom: warning: {message}", err=True)
