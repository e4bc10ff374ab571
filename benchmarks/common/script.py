"""Options, tables and the data folder of benchmark scripts."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
ONE_CORE = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment variables that limit BLAS to one thread."""


def make_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the docstring of a script as its description, and the option ``--toy``."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true", help="a small run that only checks that the script works")
    return parser


def make_table(title: str, text: Sequence[str], numbers: Sequence[str] = ()) -> Table:
    """Return a table with left-aligned columns of text, then right-aligned columns of numbers."""
    table = Table(*text, title=title)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


def markdown_of(table: Table) -> str:
    """Return a table in Markdown, with its title above and its caption below.

    >>> one = make_table("Times", ["call"], ["µs"])
    >>> one.add_row("learn_one", "25")
    >>> print(markdown_of(one))
    Times:
    <BLANKLINE>
    | call | µs |
    | --- | ---: |
    | learn_one | 25 |
    """
    rows = [[str(column.header) for column in table.columns]]
    rows += [["---:" if column.justify == "right" else "---" for column in table.columns]]
    cells = zip(*(column.cells for column in table.columns), strict=True)
    rows += [[str(cell).replace("|", "\\|") for cell in row] for row in cells]
    lines = [f"{table.title}:", "", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join([*lines, *(["", f"{table.caption}."] if table.caption else [])])


def has_data() -> bool:
    """Return whether PAIRLOOM_DATA is set."""
    return bool(os.environ.get("PAIRLOOM_DATA"))


def require_data(files: str = "the LIBSVM files") -> None:
    """Exit with a message unless PAIRLOOM_DATA is set."""
    if not has_data():
        sys.exit(f"PAIRLOOM_DATA is not set: set it to the folder with {files}, or use --toy")


def require_linux() -> None:
    """Exit with a message unless the system is Linux, whose kernel reports the memory of processes."""
    if not sys.platform.startswith("linux"):
        sys.exit("this benchmark measures memory with the Linux kernel and does not run on other systems")
