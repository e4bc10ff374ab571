"""Options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pairloom.cli.parameters import SYSTEMS


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


ROWS, SAYING, RUN, MODEL = "Rows", "Output", "Checkpoints", "Model"


def _systems(incomplete: str) -> list[str]:
    return [name for name in SYSTEMS if name.lower().startswith(incomplete.lower())]


Files = Annotated[
    list[str],
    typer.Argument(
        help="Files, folders, or - for a pipe; gz, xz, bz2 and zst too.", show_default=False, metavar="FILE"
    ),
]
ModelFile = Annotated[
    Path, typer.Argument(help="A model that pairloom fit wrote.", show_default=False, metavar="MODEL")
]
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
Positive = Annotated[
    str | None,
    typer.Option(help="The label of positive rows, against all others.", show_default=False, rich_help_panel=ROWS),
]
Drop = Annotated[
    list[str] | None, typer.Option(help="A column that is not learned.", show_default=False, rich_help_panel=ROWS)
]
ModelOut = Annotated[Path, typer.Option(help="Where the model goes.", dir_okay=False, rich_help_panel=MODEL)]
System = Annotated[str, typer.Option(help="Which system learns.", autocompletion=_systems, rich_help_panel=MODEL)]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        rich_help_panel=MODEL,
        show_default=False,
        help="A parameter of the system: eta=0.1, columns.zip=category, budget.bytes=2e8.",
    ),
]
HalfLife = Annotated[
    float | None, typer.Option(help="Rows after which a row counts half.", show_default=False, rich_help_panel=MODEL)
]
Checkpoint = Annotated[
    Path | None, typer.Option(help="Folder of checkpoints.", file_okay=False, show_default=False, rich_help_panel=RUN)
]
Every = Annotated[int, typer.Option(min=1, help="Rows between checkpoints.", rich_help_panel=RUN)]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from the newest checkpoint, if there is one.", rich_help_panel=RUN)
]
Log = Annotated[
    Path | None,
    typer.Option(
        help="AUC along the stream, as JSON lines.", dir_okay=False, show_default=False, rich_help_panel=SAYING
    ),
]
Json = Annotated[bool, typer.Option("--json", help="The result as JSON.", rich_help_panel=SAYING)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.", rich_help_panel=SAYING)]
Debug = Annotated[bool, typer.Option("--debug", help="A traceback with an error.", rich_help_panel=SAYING)]
