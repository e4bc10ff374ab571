"""Atomic writes: a reader finds the old file or the complete new one, never a part of it."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO


def regular_file(path: Path) -> Path:
    """Return ``path`` with links resolved; OSError if it exists and is not a regular file.

    Renaming a file onto a device, a FIFO or a socket would replace it: as root, even /dev/null.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except OSError:
        return target
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        raise FileExistsError(errno.EEXIST, "this is a device, a pipe or a socket, not a regular file", os.fspath(path))
    return target


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path`` that replaces it on success; on any error ``path`` is left unchanged.

    The new file keeps the permissions of the old one. ``durable``: the content is flushed to disk before the rename,
    and the rename after it, so that the file survives a power failure. OSError if ``path`` exists and is not a regular
    file.
    """
    path = regular_file(path)
    temporary = path.with_name(f"{path.name}.{token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            copy_mode(path, temporary)
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        rename(temporary, path, durable=durable)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def copy_mode(old: Path, new: Path) -> None:
    """Copy the permissions of an old file, if it exists, to a new one."""
    with suppress(FileNotFoundError):
        os.chmod(new, stat.S_IMODE(old.stat().st_mode))


def rename(old: Path, new: Path, *, durable: bool = True) -> None:
    """Replace one file by another in one step."""
    os.replace(old, new)
    if durable and os.name == "posix":  # Windows cannot fsync a folder
        handle = os.open(new.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
