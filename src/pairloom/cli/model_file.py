"""Which model file a run of `fit` may replace: its own, the one that it continues, or any with --overwrite."""

import json
import os
from contextlib import suppress
from pathlib import Path

import typer

from pairloom.cli.outputs import RUN_RECORD

DIGEST_SIZE = 32
"""Bytes at the end of a model file."""


def digest_of(path: Path) -> str | None:
    """Return the digest with which a model file ends, which identifies the model; None if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - DIGEST_SIZE))
            return file.read().hex()
    except OSError:
        return None


def same_file(one: Path, other: Path) -> bool:
    """Return whether two paths are names of one file, under any spelling or link."""
    with suppress(OSError):
        return os.path.samefile(one, other)
    return False


def saved_models(checkpoint: Path) -> list[str]:
    """Return the digests of the model files that the run with these checkpoints has written."""
    try:
        found = json.loads((checkpoint / RUN_RECORD).read_text())["models"]
        return [one for one in found if isinstance(one, str)]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def check_replaced(model: Path, start: Path | None, overwrite: bool, checkpoint: Path | None) -> None:
    """Raise typer.BadParameter (exit code 2) if a model file exists that this run must not replace.

    ``start``: the model that is continued. ``checkpoint``: the folder of the run that is resumed, if any.
    """
    if overwrite or not model.exists() or (start is not None and same_file(start, model)):
        return
    if checkpoint is None or digest_of(model) not in saved_models(checkpoint):
        raise typer.BadParameter(
            f"{str(model)!r} exists; use --overwrite to replace it, or --from {model} to continue it",
            param_hint="--model",
        )
