"""Files that commands write: check them before the command starts, and replace them only on success.

A file NAME is written as NAME.partial and renamed at the end. After a failure NAME is unchanged, and NAME.partial
contains the output so far (docs/outputs.md).
"""

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NoReturn, Self

import typer

from pairloom.base.files import copy_mode, regular_file, rename, replacing

SUFFIX = ".partial"
RUN_RECORD = "rows.json"
"""The record of a run beside its checkpoints."""

FileId = str | tuple[int, int]
"""Identity of a file: its real path, or its device and inode."""


def partial_of(path: Path) -> Path:
    """Return the path of a file until it is complete: in the same folder, with links resolved.

    >>> partial_of(Path("a/scores.csv")).as_posix()
    'a/scores.csv.partial'
    """
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    return target.with_name(target.name + SUFFIX)


def check_outputs(
    outputs: Mapping[str, Path | None], inputs: Iterable[str | Path] = (), checkpoint: Path | None = None
) -> None:
    """Check outputs, given by option, before any file is opened; raise typer.BadParameter (exit code 2).

    An output must not be an input (under any link or spelling), in a folder that is read, another output, or something
    other than a regular file; and it must be writable.
    """
    names = [os.fspath(one) for one in inputs]
    read = {key: name for name in names for path in _files(name) for key in _ids(path)}
    written: dict[FileId, str] = {}
    for key in _stream_ids(sys.stdout):
        if key in read:
            _fail(f"{read[key]!r} is also an input", "stdout")
        written[key] = "stdout"
    folders = [name for name in names if os.path.isdir(name)]
    if checkpoint is not None:
        checkpoints = sorted(checkpoint.glob("checkpoint-*.pairloom")) if checkpoint.is_dir() else []
        for path in (checkpoint / RUN_RECORD, *checkpoints):
            _check_separate(path, "--checkpoint", read, written, folders)
    for option, output in outputs.items():
        if output is not None:
            for path in (output, partial_of(output)):
                _check_separate(path, option, read, written, folders)
            _check_writable(output, option)


def _check_separate(
    path: Path, option: str, read: dict[FileId, str], written: dict[FileId, str], folders: list[str]
) -> None:
    """Fail if a file is already read or written; otherwise add it to ``written``."""
    ids = _ids(path)
    for key in ids:
        if key in read:
            also = "" if read[key] == os.fspath(path) else f", {read[key]!r}"
            _fail(f"{str(path)!r} is also an input{also}; choose another file", option)
        if key in written:
            _fail(f"{str(path)!r} is also written by {written[key]}; choose another file", option)
    written.update(dict.fromkeys(ids, option))
    for folder in folders:
        inside = os.path.relpath(os.path.realpath(path), os.path.realpath(folder)).split(os.sep)
        if inside[0] != os.pardir and not any(part[0] in "._" for part in inside):
            _fail(f"{str(path)!r} is in the input folder {folder!r}; choose another folder", option)
    try:
        regular_file(path)
    except OSError as error:
        _fail(f"cannot write {str(path)!r}: {error.strerror}", option)
    if path.name.endswith(SUFFIX) and path.is_symlink():
        _fail(f"{str(path)!r} is a link; remove it", option)


def _check_writable(path: Path, option: str) -> None:
    folder = partial_of(path).absolute().parent
    if not folder.is_dir():
        _fail(f"no folder {str(path.parent)!r}", option)
    try:
        if path.exists():
            path.open("ab").close()
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        _fail(f"cannot write {os.fspath(path)!r}: {error.strerror}", option)


def _fail(reason: str, option: str) -> NoReturn:
    raise typer.BadParameter(reason, param_hint=option)


def _files(name: str) -> list[str]:
    """Return the files of an input; one that does not exist is reported later."""
    from pairloom.data.readers.opening import FileError, list_files  # imported here to keep --help fast

    try:
        return list_files([name])
    except FileError:
        return [name]


def _ids(path: str | Path) -> list[FileId]:
    if path == "-":
        return _stream_ids(sys.stdin)
    ids: list[FileId] = [os.path.realpath(path)]
    with suppress(OSError):
        found = os.stat(path)
        ids.append((found.st_dev, found.st_ino))
    return ids


def _stream_ids(stream: object) -> list[FileId]:
    """Return the identity of the file behind stdin or stdout; nothing for a pipe or a terminal."""
    try:
        found = os.fstat(stream.fileno())  # type: ignore[attr-defined]
    except (OSError, ValueError, AttributeError):
        return []
    return [(found.st_dev, found.st_ino)] if stat.S_ISREG(found.st_mode) else []


class Output:
    """A file that is written as NAME.partial; nothing is changed before the first write."""

    def __init__(self, path: Path) -> None:
        self.path, self.partial = path, partial_of(path)
        self.file: BinaryIO | None = None
        self.kept: int | None = 0
        self.complete = False

    def resume(self, size: int | None) -> None:
        """Keep the first ``size`` bytes (None: all) of NAME.partial if a run has failed, or of NAME."""
        self.kept = size

    @property
    def _before(self) -> Path:
        return self.partial if self.partial.exists() else self.path

    def size(self) -> int:
        if self.file is not None:
            return self.file.tell()
        size = self._before.stat().st_size if self.kept != 0 and self._before.exists() else 0
        return size if self.kept is None else min(self.kept, size)

    def sync(self) -> int:
        """Flush to disk; return the number of bytes so far."""
        if self.file is not None:
            with self._named_errors():
                self.file.flush()
                os.fsync(self.file.fileno())
        return self.size()

    def write(self, content: bytes | str) -> None:
        """Append and flush, so that nothing is lost if the process is killed."""
        with self._named_errors():
            file = self._open()
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()

    def save(self, write: Callable[[Path], object]) -> None:
        """Write the whole file with a function that takes a path."""
        write(self.partial)
        copy_mode(self.path, self.partial)
        self.complete = True

    def finish(self) -> None:
        """Flush to disk and close."""
        if not self.complete:
            with self._named_errors():
                self._open()
            self.sync()
            self.close()
            self.complete = True

    def rename(self) -> None:
        rename(self.partial, regular_file(self.path))

    def close(self) -> None:
        """Close the file, ignoring errors."""
        if self.file is not None:
            with suppress(OSError):
                self.file.close()

    def _open(self) -> BinaryIO:
        if self.file is None:
            size = self.size()
            with replacing(self.partial, durable=False) as new:
                if size:
                    with self._before.open("rb") as old:
                        while size and (block := old.read(min(size, 1 << 20))):
                            new.write(block)
                            size -= len(block)
            copy_mode(self.path, self.partial)
            self.file = self.partial.open("ab")
        return self.file

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Add the file name to an OSError."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(self.partial)) from error


class Outputs:
    """The outputs of a command: ``commit`` renames all; without it they stay NAME.partial."""

    def __init__(self) -> None:
        self.all: list[Output] = []
        self.committed = False

    def add(self, path: Path) -> Output:
        self.all.append(Output(path))
        return self.all[-1]

    def add_optional(self, path: Path | None) -> Output | None:
        """Add an output unless ``path`` is None."""
        return None if path is None else self.add(path)

    def commit(self) -> None:
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
        partial = [str(one.partial) for one in self.all if one.file is not None]
        if partial and not self.committed and error is not None:
            error.add_note(f"Partial output: {', '.join(partial)}")
