"""Files that commands write: which ones are refused, and that NAME is replaced only when all is well.

Rows are written to NAME.partial, which is renamed to NAME at the end. After a failure or a kill NAME is as it was, and
NAME.partial has what was done so far (docs/outputs.md).
"""

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import typer

from pairloom.base.files import copy_mode, regular, rename, replacing

SUFFIX = ".partial"
PIPE = "-"
RECORD = "rows.json"
"""What a run writes down of its rows, beside its checkpoints."""

Key = str | tuple[int, int]
"""What tells files apart: the path without links and, if there is a file, its device and inode."""


def partial_of(path: Path) -> Path:
    """Where a file is written before it is complete: beside the file that a link leads to.

    >>> partial_of(Path("a/scores.csv")).as_posix()
    'a/scores.csv.partial'
    """
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    return target.with_name(target.name + SUFFIX)


def check(
    outputs: Mapping[str, Path | None], inputs: Iterable[str | Path] = (), checkpoint: Path | None = None
) -> None:
    """Refuse outputs by option, before anything is opened: typer.BadParameter, which is exit code 2.

    Refused is what is also an input, whatever link or spelling leads to it, what lies in a folder whose files are
    read, what is another output, what exists and is not a regular file, and what cannot be written.
    """
    names = [os.fspath(one) for one in inputs]
    read = {key: name for name in names for path in _files(name) for key in _keys(path)}
    written: dict[Key, str] = {}
    for key in _open_file(sys.stdout):
        if key in read:
            _refuse(f"{read[key]!r} is also an input", "stdout")
        written[key] = "stdout"
    folders = [name for name in names if os.path.isdir(name)]
    if checkpoint is not None:
        for own in _checkpoint_files(checkpoint):
            _check_apart(own, "--checkpoint", read, written, folders)
    for option, path in outputs.items():
        if path is not None:
            for one in (path, partial_of(path)):
                _check_apart(one, option, read, written, folders)
            _check_writable(path, option)


def _check_apart(path: Path, option: str, read: dict[Key, str], written: dict[Key, str], folders: list[str]) -> None:
    """Refuse a file that is read or written already; it is then one that is written."""
    keys = _keys(path)
    for key in keys:
        if key in read:
            also = "" if read[key] == os.fspath(path) else f", {read[key]!r}"
            _refuse(f"{str(path)!r} is also an input{also}: name another file", option)
        if key in written:
            _refuse(f"{str(path)!r} is also written by {written[key]}: name another file", option)
    written.update(dict.fromkeys(keys, option))
    for folder in folders:
        inside = os.path.relpath(os.path.realpath(path), os.path.realpath(folder)).split(os.sep)
        if inside[0] != os.pardir and not any(part[0] in "._" for part in inside):
            _refuse(f"{str(path)!r} is in {folder!r}, whose files are read: name a file elsewhere", option)
    try:
        regular(path)
    except OSError as error:
        _refuse(f"cannot write {str(path)!r}: {error.strerror}", option)
    if path.name.endswith(SUFFIX) and path.is_symlink():
        _refuse(f"{str(path)!r} is a link: remove it", option)


def _check_writable(path: Path, option: str) -> None:
    """Fail before the work, not after it, if a file cannot be written."""
    folder = partial_of(path).absolute().parent
    if not folder.is_dir():
        _refuse(f"there is no folder {str(path.parent)!r}", option)
    try:
        if path.exists():
            path.open("ab").close()
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        _refuse(f"cannot write {os.fspath(path)!r}: {error.strerror}", option)


def _refuse(why: str, option: str) -> None:
    raise typer.BadParameter(why, param_hint=option)


def _files(name: str) -> list[str]:
    """The files of an input; of one that cannot be read, which the command will say, itself."""
    # Here: the help of a command is not to wait for what it imports.
    from pairloom.data.readers.opening import InputError, files_in

    try:
        return files_in([name])
    except InputError:
        return [name]


def _checkpoint_files(folder: Path) -> Iterator[Path]:
    """What belongs to the checkpoints of a folder."""
    yield folder / RECORD
    if folder.is_dir():
        yield from sorted(folder.glob("checkpoint-*.pairloom"))


def _keys(path: str | Path) -> list[Key]:
    if path == PIPE:
        return _open_file(sys.stdin)
    keys: list[Key] = [os.path.realpath(path)]
    with suppress(OSError):
        found = os.stat(path)
        keys.append((found.st_dev, found.st_ino))
    return keys


def _open_file(stream: object) -> list[Key]:
    """What tells the file behind stdin or stdout apart; nothing if it is a pipe or a terminal."""
    try:
        found = os.fstat(stream.fileno())  # type: ignore[attr-defined]
    except (OSError, ValueError, AttributeError):
        return []
    return [(found.st_dev, found.st_ino)] if stat.S_ISREG(found.st_mode) else []


class Output:
    """A file that is written as NAME.partial, of which nothing is touched before the first byte is written."""

    def __init__(self, path: Path) -> None:
        self.path, self.partial = path, partial_of(path)
        self.file: BinaryIO | None = None
        self.kept: int | None = 0
        self.complete = False

    def resume(self, size: int | None) -> None:
        """Keep the first ``size`` bytes, None is all, of what is there: NAME.partial if a run failed, or NAME."""
        self.kept = size

    @property
    def _before(self) -> Path:
        return self.partial if self.partial.exists() else self.path

    def size(self) -> int:
        """Bytes so far."""
        if self.file is not None:
            return self.file.tell()
        there = self._before.stat().st_size if self.kept != 0 and self._before.exists() else 0
        return there if self.kept is None else min(self.kept, there)

    def sync(self) -> int:
        """Bytes so far, which are now on the disk."""
        if self.file is not None:
            self._do(self._sync)
        return self.size()

    def write(self, content: bytes | str) -> None:
        """More of it; a kill leaves all of it behind."""
        data = content.encode() if isinstance(content, str) else content

        def do() -> None:
            file = self._opened()
            file.write(data)
            file.flush()

        self._do(do)

    def save(self, write: Callable[[Path], object]) -> None:
        """Write all of it by a function that takes a path."""
        write(self.partial)
        copy_mode(self.path, self.partial)
        self.complete = True

    def finish(self) -> None:
        """Write to the disk what is still in memory."""
        if not self.complete:
            self._do(self._opened)
            self.sync()
            self.close()
            self.complete = True

    def rename(self) -> None:
        """Make it NAME."""
        rename(self.partial, regular(self.path))

    def close(self) -> None:
        """End writing; what cannot be flushed is lost."""
        if self.file is not None:
            with suppress(OSError):
                self.file.close()

    def _opened(self) -> BinaryIO:
        if self.file is None:
            size = self.size()
            with replacing(self.partial, lasting=False) as new:
                if size:
                    with self._before.open("rb") as old:
                        while size and (block := old.read(min(size, 1 << 20))):
                            new.write(block)
                            size -= len(block)
            copy_mode(self.path, self.partial)
            self.file = self.partial.open("ab")
        return self.file

    def _sync(self) -> None:
        assert self.file is not None
        self.file.flush()
        os.fsync(self.file.fileno())

    def _do(self, what: Callable[[], object]) -> None:
        """Do something; an OSError names the file."""
        try:
            what()
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(self.partial)) from error


class Outputs:
    """The outputs of a command: all are renamed by ``commit``; what ends without it leaves them as NAME.partial."""

    def __init__(self) -> None:
        self.all: list[Output] = []
        self.committed = False

    def new(self, path: Path) -> Output:
        """An output."""
        self.all.append(Output(path))
        return self.all[-1]

    def add(self, path: Path | None) -> Output | None:
        """An output, if one was asked for."""
        return None if path is None else self.new(path)

    def commit(self) -> None:
        """All is well: replace the files."""
        for one in self.all:
            one.finish()
        for one in self.all:
            one.rename()
        self.committed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for one in self.all:
            one.close()
        left = [str(one.partial) for one in self.all if one.file is not None]
        if left and not self.committed and error is not None:
            error.add_note(f"What was written so far is in {' and '.join(left)}.")
