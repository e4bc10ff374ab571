"""Options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """Formats of rows."""

    AUTO = "auto"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    LIBSVM = "libsvm"


class OnBadRow(StrEnum):
    """What becomes of a malformed row."""

    STOP = "stop"
    SKIP = "skip"


ROWS, SAYING = "Rows", "Output"

Files = Annotated[
    list[str],
    typer.Argument(
        help="Files, folders, or - for a pipe; gz, xz, bz2 and zst too.", show_default=False, metavar="FILE..."
    ),
]
ModelFile = Annotated[Path, typer.Argument(help="A model that pairloom fit wrote.", show_default=False)]
FormatOf = Annotated[
    Format,
    typer.Option("--format", help="Of the files; auto: by the name, else by the first line.", rich_help_panel=ROWS),
]
Label = Annotated[
    str | None,
    typer.Option(
        help="Column of the label; default: label, target, class or y.", show_default=False, rich_help_panel=ROWS
    ),
]
Weight = Annotated[
    str | None, typer.Option(help="Column of the rows' weights.", show_default=False, rich_help_panel=ROWS)
]
Chunk = Annotated[
    int, typer.Option(min=1, help="Rows read at a time, at most; fewer if they are long.", rich_help_panel=ROWS)
]
Width = Annotated[
    int | None,
    typer.Option(
        min=1, help="Columns of LIBSVM; default: the highest there is.", show_default=False, rich_help_panel=ROWS
    ),
]
BadRow = Annotated[
    OnBadRow, typer.Option("--on-bad-row", help="At a malformed row: stop, or skip and count it.", rich_help_panel=ROWS)
]
Quarantine = Annotated[
    Path | None,
    typer.Option(
        help="Where rows that were skipped go, as they were.", show_default=False, dir_okay=False, rich_help_panel=ROWS
    ),
]
Json = Annotated[bool, typer.Option("--json", help="The result as JSON.", rich_help_panel=SAYING)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.", rich_help_panel=SAYING)]
Debug = Annotated[bool, typer.Option("--debug", help="A traceback with an error.", rich_help_panel=SAYING)]
