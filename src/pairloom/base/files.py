"""Files that are complete or not there: whoever reads one never finds half of it."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO


def regular(path: Path) -> Path:
    """The file that a name leads to, links followed; OSError if that exists and is not a regular file.

    To rename a file onto a device, a FIFO or a socket would replace it: as root, even /dev/null.
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
def replacing(path: Path, *, lasting: bool = True) -> Iterator[BinaryIO]:
    """A new file, written beside ``path``, that replaces it if all goes well; otherwise ``path`` stays as it is.

    It has the permissions of the old file, if there is one. ``lasting``: it is flushed to the disk before it is
    renamed, and its name after, so that it is there after a loss of power. OSError if ``path`` exists and is not a
    regular file.
    """
    path = regular(path)
    temporary = path.with_name(f"{path.name}.{token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            copy_mode(path, temporary)
            yield file
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        rename(temporary, path, lasting=lasting)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def copy_mode(old: Path, new: Path) -> None:
    """Give a file the permissions of an older one, if that is there."""
    with suppress(FileNotFoundError):
        os.chmod(new, stat.S_IMODE(old.stat().st_mode))


def rename(old: Path, new: Path, *, lasting: bool = True) -> None:
    """Replace one file by another in one step."""
    os.replace(old, new)
    if lasting and os.name == "posix":  # Windows has no such call
        handle = os.open(new.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
