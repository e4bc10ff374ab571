"""The layout of a model file: magic bytes, a JSON header, raw arrays, a digest.

    offset 0    8 bytes   b"pairloom"
           8    8 bytes   length of the header, little-endian
          16              the header: JSON, padded with spaces so that it ends at a multiple of 64
                          arrays, C order, little-endian, each at the next multiple of 64
         -32    32 bytes  BLAKE2b digest of all bytes before it

The header's ``arrays`` has the dtype, shape and offset of each array, in the order of the file. If it also has
``nonzero``, the array is packed: a bit for each of its 4-byte words (the first in the lowest bit of the first byte),
1 if the word is not 0, and these ``nonzero`` words. A file contains no code.
"""

import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pairloom.base.files import replacing
from pairloom.base.typing import Array
from pairloom.persist.packed import n_words, pack, packed_size, unpack

MAGIC = b"pairloom"
ALIGNMENT, DIGEST_SIZE, CHUNK_SIZE = 64, 32, 1 << 20

MAX_HEADER_SIZE = 1 << 24
"""Maximum size of a header in bytes: a million column names fit."""

MAX_BRANCHES, MAX_ENTRIES = 1 << 16, 1 << 20
"""Maximum number of lists and objects in a header, and of all their entries: more would be slow to read."""

MAX_AXES = 8

DTYPES = re.compile(r"\|b1|\|[iu]1|<[iuf][248]|<U[1-9]\d{0,5}|<M8\[(Y|M|W|D|h|m|s|ms|us|ns)\]")
"""Booleans, integers, floats, text and dates. No objects: these would be pickles."""


class ModelFileError(ValueError):
    """A file that is not a model file, is damaged, or is not supported by this version."""


def write_file(path: Path, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a file atomically: to a temporary file beside it, flushed to disk, then renamed."""
    raw = {name: _little_endian(name, array) for name, array in arrays.items()}
    packed = {name: pack(array) or (array, None) for name, array in raw.items()}
    text = _header_of(header, raw, packed)
    try:
        with replacing(path) as file:
            _write(file, text, [content for content, _ in packed.values()])
    except OSError as error:
        problem = f"{error.strerror}; the model was not saved, and an existing file is unchanged"
        raise OSError(error.errno, problem, os.path.realpath(path)) from error


def _write(file: BinaryIO, header: bytes, arrays: Iterable[Array]) -> None:
    digest = blake2b(digest_size=DIGEST_SIZE)
    for part in (MAGIC, len(header).to_bytes(8, "little"), header):
        file.write(part)
        digest.update(part)
    for array in arrays:
        content = array.reshape(-1).view(np.uint8).data if array.size else b""
        for piece in (content, bytes(-array.nbytes % ALIGNMENT)):
            file.write(piece)
            digest.update(piece)
    file.write(digest.digest())


def read_file(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays; ModelFileError unless the whole file is valid.

    Sizes are checked against the length of the file before arrays are allocated.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ModelFileError(f"{path} is not a regular file")
    with open(path, "rb") as file:
        return _read(file, os.fstat(file.fileno()).st_size)


def has_too_many_entries(text: bytes) -> bool:
    """Return whether JSON has more lists, objects or entries than a header may have, without parsing it.

    >>> has_too_many_entries(b'{"a": "[[[", "b": [1, 2]}'), has_too_many_entries(b"[" * 100_000)
    (False, True)
    """
    signs = np.frombuffer(text.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    inside = np.bitwise_xor.accumulate(signs == ord('"'), dtype=np.uint8).astype(bool)
    lists, objects, commas = (np.count_nonzero((signs == ord(sign)) & ~inside) for sign in "[{,")
    return bool(lists + objects > MAX_BRANCHES or commas > MAX_ENTRIES)


def aligned(size: int) -> int:
    """Return the next multiple of 64."""
    return size + -size % ALIGNMENT


def _read(file: BinaryIO, size: int) -> tuple[dict[str, Any], dict[str, Array]]:
    start = file.read(16)
    if start[:8] != MAGIC:
        raise ModelFileError("this is not a model file, as written by pairloom.save")
    length = int.from_bytes(start[8:], "little")
    end = size - DIGEST_SIZE
    if len(start) < 16 or length > MAX_HEADER_SIZE or 16 + length > end or (16 + length) % ALIGNMENT:
        raise ModelFileError(f"the file is truncated or damaged: {size:,} bytes do not hold its header")
    text = file.read(length)
    if has_too_many_entries(text):
        raise ModelFileError("the header of the file has more entries than any model")
    digest = blake2b(start + text, digest_size=DIGEST_SIZE)
    header = _parse(text)
    made = {}
    for name, (dtype, shape, nonzero) in _array_table(header, 16 + length, end).items():
        made[name] = array = _read_array(file, name, dtype, shape, nonzero, digest)
        if dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
            raise ModelFileError(f"{name} has bytes that are neither true nor false")
    if file.read() != digest.digest():
        raise ModelFileError("the file is damaged: its digest does not match its content")
    return header, {name: array.astype(array.dtype.newbyteorder("="), copy=False) for name, array in made.items()}


def _read_array(
    file: BinaryIO, name: str, dtype: np.dtype, shape: tuple[int, ...], nonzero: int | None, digest: Any
) -> Array:
    """Read an array, packed if ``nonzero`` is not None, and the padding after it."""
    size = prod(shape) * dtype.itemsize
    stored: Array = np.empty(size if nonzero is None else packed_size(size, nonzero), np.uint8)
    if len(stored):
        _fill(file, stored.data, digest)
    digest.update(file.read(-len(stored) % ALIGNMENT))
    if nonzero is None:
        return stored.view(dtype).reshape(shape)
    try:
        return unpack(stored, dtype, shape, size, nonzero)
    except ValueError as error:
        raise ModelFileError(f"array {name!r} {error}") from None


def _fill(file: BinaryIO, content: memoryview, digest: Any) -> None:
    """Read bytes into an array, in chunks."""
    for at in range(0, len(content), CHUNK_SIZE):
        piece = content[at : at + CHUNK_SIZE]
        if file.readinto(piece) != len(piece):  # type: ignore[attr-defined]
            raise ModelFileError("the file is truncated: it became shorter while it was read")
        digest.update(piece)


def _parse(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text.decode("utf-8"), parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"the header of the file is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise ModelFileError("the header of the file is not a JSON object")
    return header


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _array_table(
    header: dict[str, Any], start: int, end: int
) -> dict[str, tuple[np.dtype, tuple[int, ...], int | None]]:
    """Return dtype, shape and, of packed arrays, the nonzero words, if the arrays are consecutive and fill the file."""
    table = header.pop("arrays", None)
    if not isinstance(table, dict):
        raise ModelFileError("the header of the file does not describe its arrays")
    found, at = {}, start
    for name, about in table.items():
        if not isinstance(about, dict) or about.keys() - {"nonzero"} != {"dtype", "shape", "offset"}:
            raise ModelFileError(f"array {name!r} must have a dtype, a shape and an offset")
        dtype, shape = about["dtype"], about["shape"]
        if not isinstance(dtype, str) or not DTYPES.fullmatch(dtype):
            raise ModelFileError(f"array {name!r} has the dtype {dtype!r}, which model files do not support")
        if not isinstance(shape, list) or len(shape) > MAX_AXES or not all(_is_size(n) for n in shape):
            raise ModelFileError(f"array {name!r} has an invalid shape, {str(shape)[:80]}")
        if not _is_size(about["offset"]) or about["offset"] != at:
            raise ModelFileError(f"array {name!r} must begin at byte {at:,}, not at {about['offset']!r:.40}")
        size, nonzero = prod(shape) * np.dtype(dtype).itemsize, about.get("nonzero")
        if nonzero is not None and not (_is_size(nonzero) and size > 0 and nonzero <= n_words(size)):
            raise ModelFileError(f"array {name!r} cannot have {nonzero!r:.40} nonzero words")
        found[name] = (np.dtype(dtype), tuple(shape), nonzero)
        at = aligned(at + (size if nonzero is None else packed_size(size, nonzero)))
        if at > end:
            raise ModelFileError(f"the file is truncated or damaged: it ends before array {name!r} does")
    if at != end:
        raise ModelFileError(f"the file is {end - at:,} bytes longer than its header says")
    return found


def _is_size(n: Any) -> bool:
    return type(n) is int and 0 <= n < 1 << 48


def _little_endian(name: str, array: Array) -> Array:
    made: Array = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
    if not DTYPES.fullmatch(made.dtype.str):
        raise TypeError(f"{name} has the dtype {array.dtype}, which a model file cannot store")
    return made


def _header_of(
    header: Mapping[str, Any], raw: Mapping[str, Array], packed: Mapping[str, tuple[Array, int | None]]
) -> bytes:
    """Return JSON with the offsets of the arrays; these depend on its length, so repeat until it no longer grows."""
    start = 0
    while True:
        at, table = start, {}
        for name, array in raw.items():
            content, nonzero = packed[name]
            table[name] = {"dtype": array.dtype.str, "shape": list(array.shape), "offset": at}
            table[name] |= {} if nonzero is None else {"nonzero": nonzero}
            at = aligned(at + content.nbytes)
        text = json.dumps({**header, "arrays": table}, allow_nan=False, separators=(",", ":")).encode()
        if start == 0 and has_too_many_entries(text):
            raise ValueError("the model has more parameters, columns or categories than a file can store: use fewer")
        if aligned(16 + len(text)) == start:
            return text.ljust(start - 16)
        if len(text) > MAX_HEADER_SIZE - ALIGNMENT:
            raise ValueError(
                f"the header of the file would have {len(text):,} bytes, more than {MAX_HEADER_SIZE:,}: "
                "use shorter column names"
            )
        start = max(start, aligned(16 + len(text)))
