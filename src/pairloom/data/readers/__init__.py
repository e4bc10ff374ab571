"""Read files and pipes in chunks of rows: CSV, TSV, JSON lines, Parquet, LIBSVM; gz, xz, bz2, zst.

Chunks are split by bytes and keep the line number of each row. They are parsed once the kinds of their columns are
known: ``infer`` returns those of the first chunk, later ones follow the model.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pairloom.data.readers.opening import Gate, detect_format, display_name, list_files, open_input

__all__ = ["readers"]


def readers(
    files: Iterable[str],
    format_: str = "auto",
    *,
    chunk_rows: int = 10_000,
    gate: Gate | None = None,
    width: int | None = None,
) -> Iterator[Any]:
    """Yield a reader for each file, each file in a folder, and the pipe "-"; each is open until the next.

    Parameters
    ----------
    files
        Names of files and folders, and "-".
    format_
        One of "csv", "tsv", "jsonl", "parquet", "libsvm", or "auto": by the suffix of the name, else by the first line.
    chunk_rows
        Maximum number of rows per chunk; chunks of long rows have fewer.
    gate
        Reads all bytes, and may end the input early.
    width
        Number of LIBSVM columns; None: the highest column in the file.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     written = file.write("a,b" + chr(10) + "1,x" + chr(10)), file.flush()
    ...     [chunk] = [chunk for reader in readers([file.name]) for chunk in reader.chunks()]
    >>> chunk.infer(["a", "b"]), chunk.records.line_of(0)
    ({'a': 'number', 'b': 'category'}, 2)
    """
    gate = gate or Gate()
    for path in list_files(files):
        with open_input(path, gate) as stream:
            kind = detect_format(path, stream) if format_ == "auto" else format_
            yield _reader(kind, display_name(path), path, stream, gate, chunk_rows, width)


def _reader(kind: str, name: str, path: str, stream: Any, gate: Gate, chunk_rows: int, width: int | None) -> Any:
    """Import the reader of a format when it is used: each needs different packages."""
    if kind == "parquet":
        from pairloom.data.readers.parquet import ParquetReader

        return ParquetReader(name, path, chunk_rows)
    if kind == "libsvm":
        from pairloom.data.readers.libsvm import LibsvmReader

        return LibsvmReader(name, path, stream, gate, chunk_rows, width)
    if kind == "jsonl":
        from pairloom.data.readers.jsonl import JsonReader

        return JsonReader(name, stream, gate, chunk_rows)
    from pairloom.data.readers.delimited import DelimitedReader

    return DelimitedReader(name, stream, gate, chunk_rows, "\t" if kind == "tsv" else ",")
