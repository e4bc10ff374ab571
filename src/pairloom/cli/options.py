"""Options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pairloom.cli.parameters import DEFAULT, SYSTEMS


class Format(StrEnum):
    """Input formats."""

    AUTO = "auto"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    LIBSVM = "libsvm"


class OnBadRow(StrEnum):
    """What to do with a malformed row, or a malformed value in it."""

    STOP = "stop"
    SKIP = "skip"
    MISSING = "missing"


class MLOpset(StrEnum):
    """Versions of ONNX's operators for trees."""

    FIVE = "5"
    THREE = "3"


class OnHashed(StrEnum):
    """What becomes of categories that only a hash identifies."""

    RAISE = "raise"
    UNKNOWN = "unknown"


INPUT, OUTPUT, CHECKPOINTS, MODEL, DASK = "Input", "Output", "Checkpoints", "Model", "Several workers"
"""Panels of --help."""


def option(*names: str, help: str, panel: str | None = None, **settings: Any) -> Any:
    """Return an option in a panel of --help."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **settings)


def optional(*names: str, help: str, panel: str | None = None, **settings: Any) -> Any:
    """Return an option that is None by default, which --help does not show."""
    return option(*names, help=help, panel=panel, show_default=False, **settings)


def _complete_system(incomplete: str) -> list[str]:
    return [name for name in SYSTEMS if name.lower().startswith(incomplete.lower())]


ModelFile = Annotated[Path, typer.Argument(help="A model written by pairloom fit.", metavar="MODEL")]
Files = Annotated[
    list[str],
    typer.Argument(help="Files, folders, or - for stdin; may be compressed (gz, xz, bz2, zst).", metavar="FILE"),
]

Label = Annotated[
    str | None, optional(help="Label column (default: that of the model; label, target, class or y).", panel=INPUT)
]
Positive = Annotated[str | None, optional(help="Label of the positive class; all others are negative.", panel=INPUT)]
Weight = Annotated[str | None, optional(help="Column of sample weights.", panel=INPUT)]
Drop = Annotated[list[str] | None, optional(help="Ignore this column; may be repeated.", panel=INPUT)]
InputFormat = Annotated[
    Format, option("--format", help="Input format; auto: from the file name, or else the first line.", panel=INPUT)
]
Width = Annotated[
    int | None, optional(min=1, help="Number of LIBSVM columns (default: the highest index).", panel=INPUT)
]
ChunkRows = Annotated[int, option("--chunk", min=1, help="Maximum number of rows per chunk.", panel=INPUT)]
BadRowAction = Annotated[
    OnBadRow,
    option(
        "--on-bad-row", help="Stop at a malformed row, skip it, or treat its malformed values as missing.", panel=INPUT
    ),
]
Quarantine = Annotated[
    Path | None, optional(help="Write skipped rows to this file, unchanged.", dir_okay=False, panel=INPUT)
]

ModelOut = Annotated[Path, option(help="Write the model to this file.", dir_okay=False, panel=MODEL)]
From = Annotated[
    Path | None, optional("--from", help="Continue this model; it may be the same file as --model.", panel=MODEL)
]
Overwrite = Annotated[bool, option("--overwrite", help="Replace an existing model that is not continued.", panel=MODEL)]
System = Annotated[
    str | None,
    option(
        "--system",
        help="Name of the estimator; see pairloom systems.",
        autocompletion=_complete_system,
        panel=MODEL,
        show_default=DEFAULT,
    ),
]
Settings = Annotated[
    list[str] | None,
    optional(
        "--set",
        metavar="KEY=VALUE",
        help="Set a parameter: eta=0.1, columns.zip=category, budget.bytes=2e8; may be repeated.",
        panel=MODEL,
    ),
]
HalfLife = Annotated[
    float | None, optional(help="Half-life: number of rows after which the weight of a row halves.", panel=MODEL)
]

Checkpoint = Annotated[Path | None, optional(help="Folder for checkpoints.", file_okay=False, panel=CHECKPOINTS)]
Every = Annotated[int, option(min=1, help="Number of rows between checkpoints.", panel=CHECKPOINTS)]
Resume = Annotated[bool, option("--resume", help="Continue from the newest checkpoint, if any.", panel=CHECKPOINTS)]

Workers = Annotated[
    int | None,
    optional(min=1, help="Learn the Parquet files of a folder on so many processes of this machine.", panel=DASK),
]
Scheduler = Annotated[
    str | None,
    optional(help="Learn them on the cluster of this Dask scheduler, tcp://host:port.", metavar="ADDRESS", panel=DASK),
]

Log = Annotated[
    Path | None,
    optional(help="Write the AUC after each chunk to this file, as JSON lines.", dir_okay=False, panel=OUTPUT),
]
Monitor = Annotated[
    Path | None,
    optional(help="Write an HTML page that follows the model to this file.", dir_okay=False, panel=OUTPUT),
]
AlertRate = Annotated[
    float | None,
    optional(
        help="Flag about this share of the rows; the alert budget is part of the model.", metavar="X", panel=OUTPUT
    ),
]
Explain = Annotated[
    int | None,
    optional("--explain", min=1, help="Add this many reasons: columns that raise or lower the score.", panel=OUTPUT),
]
Json = Annotated[bool, option("--json", help="Print the result as JSON.", panel=OUTPUT)]
Quiet = Annotated[bool, option("--quiet", "-q", help="Print errors only.", panel=OUTPUT)]
Debug = Annotated[bool, option("--debug", help="Print a traceback on error.", panel=OUTPUT)]
