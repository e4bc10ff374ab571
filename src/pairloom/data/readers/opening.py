"""Open files, folders and pipes as streams of bytes; compression is detected by the first bytes, not by the name."""

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

from pairloom.base.extras import import_extra

PIPE = "-"
BLOCK_BYTES = 1 << 20
"""Maximum number of bytes read at a time."""

ZST_BLOCK_BYTES = 1 << 16

SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm",
}  # fmt: skip
COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
LIBSVM_LINE = re.compile(rb"\s*[-+]?[\d.][^\s:,]*(\s+(qid|\d+):[^\s:,]+)+\s*(#.*)?")
MAGIC_BYTES = 6
"""Number of first bytes that identify the compression."""

DAMAGED = (OSError, EOFError, lzma.LZMAError, zlib.error)
"""Exceptions of decompression when a file is damaged or truncated."""


class FileError(ValueError):
    """Input that cannot be read; the message begins with FILE or FILE:LINE."""


class Gate:
    """Gate for the bytes of an input. Once it is closed, the input ends, and an incomplete last record is discarded."""

    closed = False

    def read(self, stream: Any) -> bytes:
        """Return the next bytes as soon as some are available; none at the end."""
        return b"" if self.closed else bytes(getattr(stream, "read1", stream.read)(BLOCK_BYTES))


def list_files(given: Iterable[str]) -> list[str]:
    """Return files, and those in folders sorted by name, without hidden ones and markers such as _SUCCESS."""
    found: list[str] = []
    for name in given:
        if name != PIPE and not os.path.exists(name):
            raise FileError(f"{name}: No such file or directory")
        if name == PIPE or not Path(name).is_dir():
            found.append(name)
            continue
        inside = [path for path in sorted(Path(name).rglob("*")) if path.is_file()]
        visible = [path for path in inside if not any(p[0] in "._" for p in path.relative_to(name).parts)]
        if not visible:
            raise FileError(f"{name}: no files in this folder")
        found += map(str, visible)
    if found.count(PIPE) > 1:
        raise FileError(f"{PIPE}: stdin can be given only once")
    return found


def display_name(name: str) -> str:
    """Return the name of a source in messages.

    >>> display_name("-"), display_name("a.csv")
    ('stdin', 'a.csv')
    """
    return "stdin" if name == PIPE else name


@contextmanager
def open_input(name: str, gate: Gate) -> Iterator[io.BufferedReader]:
    """Open a file or the pipe as plain bytes, decompressing gz, xz, bz2 and zst."""
    try:
        raw = io.FileIO(sys.stdin.fileno(), closefd=False) if name == PIPE else io.FileIO(name)
    except OSError as error:
        raise FileError(f"{display_name(name)}: {error.strerror}") from error
    with raw:
        try:
            head = _head(raw, gate, lambda head: len(head) >= MAGIC_BYTES)
            plain = _decompressed(_rejoined(head, io.BufferedReader(raw, BLOCK_BYTES)))
            head = _head(plain, gate, lambda head: b"\n" in head or len(head) >= BLOCK_BYTES)
        except DAMAGED as error:
            raise FileError(f"{display_name(name)}: the file is damaged or truncated: {error}") from error
        yield _rejoined(head, plain)


def detect_format(name: str, stream: io.BufferedReader) -> str:
    """Return the format by the suffix of a name, or else by the first line, without consuming it."""
    suffixes = [suffix for suffix in Path(name).suffixes if suffix.lower() not in COMPRESSED]
    known = SUFFIXES.get(suffixes[-1].lower()) if suffixes else None
    if known:
        return known
    head = stream.peek(BLOCK_BYTES).lstrip(b"\xef\xbb\xbf\r\n \t")
    line = head.splitlines()[0] if head else b""
    if head.startswith(b"PAR1"):
        return "parquet"
    if line.startswith(b"{"):
        return "jsonl"
    if LIBSVM_LINE.fullmatch(line):
        return "libsvm"
    return "tsv" if b"\t" in line else "csv"


def is_regular(name: str) -> bool:
    """Return whether a source is a file, which can be read twice."""
    return name != PIPE and os.path.isfile(name)


def _head(stream: Any, gate: Gate, enough: Callable[[bytes], bool]) -> bytes:
    """Read the first bytes of a stream."""
    head = b""
    while not enough(head) and (more := gate.read(stream)):
        head += more
    return head


def _decompressed(whole: io.BufferedReader) -> Any:
    head = whole.peek(MAGIC_BYTES)
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=whole)
    if head.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile(whole)
    if head.startswith(b"BZh"):
        return bz2.BZ2File(whole)
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        pyarrow = import_extra("pyarrow", "io", "Reading zst")
        # A read blocks until all requested bytes are available, and loses them if it fails: request few.
        decompressor = pyarrow.CompressedInputStream(pyarrow.PythonFile(whole, mode="r"), "zstd")
        return _rejoined(b"", decompressor, ZST_BLOCK_BYTES)
    return whole


class _Rejoined(io.RawIOBase):
    """The first bytes of a stream, which were read already, followed by the rest."""

    def __init__(self, head: bytes, rest: Any, block_bytes: int) -> None:
        super().__init__()
        self.head = head
        self.read_rest = getattr(rest, "read1", rest.read)
        self.block_bytes = block_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self.head[: len(buffer)] or self.read_rest(min(len(buffer), self.block_bytes)) or b""
        self.head = self.head[len(buffer) :]
        buffer[: len(block)] = block
        return len(block)


def _rejoined(head: bytes, rest: Any, block_bytes: int = BLOCK_BYTES) -> io.BufferedReader:
    return io.BufferedReader(_Rejoined(head, rest, block_bytes), 2 * BLOCK_BYTES)
