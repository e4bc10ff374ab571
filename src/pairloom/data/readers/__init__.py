"""Files and pipes as rows, piece by piece: CSV, TSV, JSON lines, Parquet, LIBSVM; gz, xz, bz2, zst.

A piece is so many rows of one source, cut by the bytes alone, with the number of the line of each. Nothing is parsed
before the kinds of its columns are known: of the first piece ``infer`` tells them, of later ones whoever has learned.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from pairloom.base.typing import Array
from pairloom.data.readers.kinds import Kinds
from pairloom.data.readers.opening import FORMATS, Gate, InputError, files_in, format_of, opened, shown
from pairloom.data.readers.sifting import Faults, Sifted, in_halves

__all__ = [
    "FORMATS", "Faults", "Gate", "InputError", "Kinds", "Piece", "Reader", "Sifted", "files_in", "in_halves", "readers",
    "shown",
]  # fmt: skip


class Rows(Protocol):
    """Where the rows of a piece are, and what they were."""

    def line_of(self, i: int) -> int:
        """The number of the line at which a row begins, from 1 on; in Parquet, of the row."""

    def record(self, i: int) -> bytes:
        """A row as it was."""

    def feed(self, digest: Any, low: int, high: int) -> None:
        """Update a digest with rows."""


class Piece(Protocol):
    """So many rows of a source. Of named columns there is a ``table``, of LIBSVM ``rows``.

    ``header``: what a file of some of its rows would have to begin with. ``columns``: what names the columns, and in
    which order, where the rows do not.
    """

    name: str
    header: bytes

    @property
    def columns(self) -> bytes: ...

    @property
    def records(self) -> Rows:
        """Where its rows are, and what they were."""

    def __len__(self) -> int: ...

    def infer(self, names: list[str]) -> Kinds:
        """The kinds of columns, by all rows of this piece."""

    def table(self, low: int, high: int, kinds: Kinds) -> Any:
        """Rows from ``low`` to before ``high`` as a pyarrow table of these columns; ValueError if one is malformed."""

    def sift(self, low: int, high: int, kinds: Kinds) -> Sifted:
        """The same of those that can be read, and what is wrong with the others."""

    def rows(self, low: int, high: int, width: int) -> tuple[Any, Array]:
        """Rows from ``low`` to before ``high``, an array or CSR, and their labels; ValueError if one is malformed."""

    def sift_rows(self, low: int, high: int, width: int) -> Sifted:
        """The same of those that can be read, and what is wrong with the others."""


class Reader(Protocol):
    """One source. ``names``: of its columns; None if they have none."""

    name: str
    names: list[str] | None

    def pieces(self) -> Iterator[Piece]:
        """All rows, in order."""


def readers(
    files: Iterable[str],
    format_: str = "auto",
    *,
    most: int = 10_000,
    gate: Gate | None = None,
    width: int | None = None,
) -> Iterator[Any]:
    """Readers of files, of the files in folders, and of the pipe "-", one after the other, each open while it is used.

    Parameters
    ----------
    files
        Names of files and folders, and "-".
    format_
        One of ``FORMATS``, or "auto": by the suffix of the name, else by the first line.
    most
        Rows of a piece; fewer if they are long.
    gate
        What all bytes pass.
    width
        Columns of LIBSVM; None: the highest that is there.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     written = file.write("a,b" + chr(10) + "1,x" + chr(10)), file.flush()
    ...     [piece] = [piece for reader in readers([file.name]) for piece in reader.pieces()]
    >>> piece.infer(["a", "b"]), piece.records.line_of(0)
    ({'a': 'number', 'b': 'category'}, 2)
    """
    gate = gate or Gate()
    for path in files_in(files):
        name = shown(path)
        with opened(path, gate) as stream:
            kind = format_of(path, stream) if format_ == "auto" else format_
            yield _reader(kind, name, path, stream, gate, most, width)


def _reader(kind: str, name: str, path: str, stream: Any, gate: Gate, most: int, width: int | None) -> Any:
    """Imported here: each needs packages that the others do not."""
    if kind == "parquet":
        from pairloom.data.readers.parquet import ParquetReader

        return ParquetReader(name, path, most)
    if kind == "libsvm":
        from pairloom.data.readers.libsvm import LibsvmReader

        return LibsvmReader(name, path, stream, gate, most, width)
    if kind == "jsonl":
        from pairloom.data.readers.jsonl import JsonReader

        return JsonReader(name, stream, gate, most)
    from pairloom.data.readers.delimited import DelimitedReader

    return DelimitedReader(name, stream, gate, most, "\t" if kind == "tsv" else ",")
