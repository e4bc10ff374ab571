"""Files, folders and pipes as streams of bytes: what is compressed is opened by its first bytes, not by its name."""

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pairloom.base.extras import needed

PIPE = "-"
BLOCK = 1 << 20
"""Bytes read at a time, at most."""

STEP = 1 << 16
"""The same of zst."""

FORMATS = ("csv", "tsv", "jsonl", "parquet", "libsvm")
SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm",
}  # fmt: skip
COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
LIBSVM_LINE = re.compile(rb"\s*[-+]?[\d.][^\s:,]*(\s+(qid|\d+):[^\s:,]+)+\s*(#.*)?")
MAGIC = 6
"""Bytes that tell how a file is compressed."""

BROKEN = (OSError, EOFError, lzma.LZMAError, zlib.error)
"""What decompression raises where the bytes are damaged or end too early."""


class InputError(ValueError):
    """Input that cannot be read; the message begins with FILE or FILE:LINE."""


class Gate:
    """What all bytes pass: closed, a stream ends here, and a record that is not whole is left out."""

    closed = False

    def read(self, stream: Any) -> bytes:
        """The next bytes, as soon as there are some; none at the end."""
        return b"" if self.closed else bytes(getattr(stream, "read1", stream.read)(BLOCK))


def files_in(given: Iterable[str]) -> list[str]:
    """Files, and what is in folders, by name; not what is hidden, nor marks such as _SUCCESS. "-" is the pipe."""
    found: list[str] = []
    for name in given:
        if name != PIPE and not os.path.exists(name):
            raise InputError(f"{name}: No such file or directory")
        if name == PIPE or not Path(name).is_dir():
            found.append(name)
            continue
        inside = [path for path in sorted(Path(name).rglob("*")) if path.is_file()]
        own = [path for path in inside if not any(p[0] in "._" for p in path.relative_to(name).parts)]
        if not own:
            raise InputError(f"{name}: there are no files in this folder")
        found += map(str, own)
    if found.count(PIPE) > 1:
        raise InputError(f"{PIPE}: there is one pipe only, and it is named twice")
    return found


def shown(name: str) -> str:
    """The name of a source in messages.

    >>> shown("-"), shown("a.csv")
    ('stdin', 'a.csv')
    """
    return "stdin" if name == PIPE else name


@contextmanager
def opened(name: str, gate: Gate) -> Iterator[io.BufferedReader]:
    """A file or the pipe as plain bytes, decompressed if it is gz, xz, bz2 or zst."""
    try:
        raw = io.FileIO(sys.stdin.fileno(), closefd=False) if name == PIPE else io.FileIO(name)
    except OSError as error:
        raise InputError(f"{shown(name)}: {error.strerror}") from error
    with raw:
        try:
            head = _head(raw, gate, lambda head: len(head) >= MAGIC)
            whole = _rejoined(head, io.BufferedReader(raw, BLOCK))
            plain = _decompressed(whole)
            head = _head(plain, gate, lambda head: b"\n" in head or len(head) >= BLOCK)
        except BROKEN as error:
            raise InputError(f"{shown(name)}: the file is damaged or cut off: {error}") from error
        yield _rejoined(head, plain)


def format_of(name: str, stream: io.BufferedReader) -> str:
    """The format that the name of a file says, or else its first line; reads nothing away."""
    suffixes = [suffix for suffix in Path(name).suffixes if suffix.lower() not in COMPRESSED]
    known = SUFFIXES.get(suffixes[-1].lower()) if suffixes else None
    if known:
        return known
    head = stream.peek(BLOCK).lstrip(b"\xef\xbb\xbf\r\n \t")
    line = head.splitlines()[0] if head else b""
    if head.startswith(b"PAR1"):
        return "parquet"
    if line.startswith(b"{"):
        return "jsonl"
    if LIBSVM_LINE.fullmatch(line):
        return "libsvm"
    return "tsv" if b"\t" in line else "csv"


def _head(stream: Any, gate: Gate, enough: Callable[[bytes], bool]) -> bytes:
    """The first bytes of a stream."""
    head = b""
    while not enough(head) and (more := gate.read(stream)):
        head += more
    return head


def _decompressed(whole: io.BufferedReader) -> Any:
    head = whole.peek(MAGIC)
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=whole)
    if head.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile(whole)
    if head.startswith(b"BZh"):
        return bz2.BZ2File(whole)
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        pyarrow = needed("pyarrow", "io", "Reading zst")
        # A read waits until all is there that it asks for, and loses what it has if it fails: so it asks for little.
        return _rejoined(b"", pyarrow.CompressedInputStream(pyarrow.PythonFile(whole, mode="r"), "zstd"), STEP)
    return whole


class _Rejoined(io.RawIOBase):
    """Bytes that were looked at, and the stream that they came from."""

    def __init__(self, head: bytes, rest: Any, most: int) -> None:
        super().__init__()
        self.head = head
        self.take = getattr(rest, "read1", rest.read)
        self.most = most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        made = self.head[: len(buffer)] or self.take(min(len(buffer), self.most)) or b""
        self.head = self.head[len(buffer) :]
        buffer[: len(made)] = made
        return len(made)


def _rejoined(head: bytes, rest: Any, most: int = BLOCK) -> io.BufferedReader:
    return io.BufferedReader(_Rejoined(head, rest, most), 2 * BLOCK)


def is_regular(name: str) -> bool:
    """Whether a source can be read twice."""
    return name != PIPE and os.path.isfile(name)
