"""Files that are complete or not there: whoever reads one never finds half of it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO


@contextmanager
def replacing(path: Path, *, lasting: bool = True) -> Iterator[BinaryIO]:
    """A new file, written beside ``path``, that takes its place if all goes well; else that stays as it is.

    ``lasting``: it is flushed to the disk before that, and its name after, so that it is there after a loss of power.
    """
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f"{path.name}.{token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if lasting:
            _sync_folder(path.parent)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _sync_folder(folder: Path) -> None:
    """Let the new name reach the disk; Windows has no such call."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
