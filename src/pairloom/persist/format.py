"""The layout of a model file: magic bytes, a JSON header, raw arrays, a digest.

    offset 0    8 bytes   b"pairloom"
           8    8 bytes   length of the header, little-endian
          16              the header: JSON, padded with spaces so that it ends at a multiple of 64
                          raw arrays, C order, little-endian, each at the next multiple of 64
         -32    32 bytes  BLAKE2b digest of all bytes before it

The header's ``arrays`` says dtype, shape and offset of each, in the order of the file. Nothing in a file is code.
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

MAGIC = b"pairloom"
ALIGN, DIGEST, CHUNK = 64, 32, 1 << 20

MOST_HEADER = 1 << 24
"""Bytes of a header: a million names of columns fit."""

MOST_BRANCHES, MOST_ENTRIES = 1 << 16, 1 << 20
"""Lists and objects in a header, and entries of all of them: no model has as many, and to read more would take long."""

MOST_AXES = 8

DTYPES = re.compile(r"\|b1|\|[iu]1|<[iuf][248]|<U[1-9]\d{0,5}|<M8\[(Y|M|W|D|h|m|s|ms|us|ns)\]")
"""Truth values, whole and floating numbers, text and dates. No objects: these would be pickles."""


class ModelFileError(ValueError):
    """A file that is no model, or is damaged, or asks for what this version does not have."""


def write_file(path: Path, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a file, complete or not at all: into a temporary one beside it, flushed to the disk, then renamed."""
    raw = {name: _little_endian(name, array) for name, array in arrays.items()}
    text = _header_of(header, raw)
    try:
        with replacing(path) as file:
            _write(file, text, raw.values())
    except OSError as error:
        about = f"{error.strerror}; the model was not saved, and a file that was there before is unchanged"
        raise OSError(error.errno, about, os.path.realpath(path)) from error


def _write(file: BinaryIO, header: bytes, arrays: Iterable[Array]) -> None:
    digest = blake2b(digest_size=DIGEST)
    for part in (MAGIC, len(header).to_bytes(8, "little"), header):
        file.write(part)
        digest.update(part)
    for array in arrays:
        content = array.reshape(-1).view(np.uint8).data if array.size else b""
        for piece in (content, bytes(-array.nbytes % ALIGN)):
            file.write(piece)
            digest.update(piece)
    file.write(digest.digest())


def read_file(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays; ModelFileError unless all of the file is as it should be.

    Sizes are checked against the file's length before an array is made.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ModelFileError(f"{path} is not a regular file")
    with open(path, "rb") as file:
        return _read(file, os.fstat(file.fileno()).st_size)


def is_crowded(text: bytes) -> bool:
    """Whether JSON has more lists, objects or entries than a header may have, by its signs outside of text.

    >>> is_crowded(b'{"a": "[[[", "b": [1, 2]}'), is_crowded(b"[" * 100_000)
    (False, True)
    """
    signs = np.frombuffer(text.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    inside = np.bitwise_xor.accumulate(signs == ord('"'), dtype=np.uint8).astype(bool)
    lists, objects, commas = (np.count_nonzero((signs == ord(sign)) & ~inside) for sign in "[{,")
    return bool(lists + objects > MOST_BRANCHES or commas > MOST_ENTRIES)


def padded(size: int) -> int:
    """The next multiple of 64."""
    return size + -size % ALIGN


def _read(file: BinaryIO, size: int) -> tuple[dict[str, Any], dict[str, Array]]:
    start = file.read(16)
    if start[:8] != MAGIC:
        raise ModelFileError("this is not a model file: pairloom.save writes them")
    length = int.from_bytes(start[8:], "little")
    end = size - DIGEST
    if len(start) < 16 or length > MOST_HEADER or 16 + length > end or (16 + length) % ALIGN:
        raise ModelFileError(f"the file is cut off or damaged: {size:,} bytes do not hold its header")
    text = file.read(length)
    if is_crowded(text):
        raise ModelFileError("the header of the file has more entries than any model")
    digest = blake2b(start + text, digest_size=DIGEST)
    header = _parsed(text)
    made = {}
    for name, (dtype, shape) in _described(header, 16 + length, end).items():
        made[name] = array = np.empty(shape, dtype)
        if array.size:
            _fill(file, array.reshape(-1).view(np.uint8).data, digest)
            if dtype.kind == "b" and array.view(np.uint8).max() > 1:
                raise ModelFileError(f"{name} holds what is neither true nor false")
        digest.update(file.read(-array.nbytes % ALIGN))
    if file.read() != digest.digest():
        raise ModelFileError("the file is damaged: it does not have the digest with which it was written")
    return header, {name: array.astype(array.dtype.newbyteorder("="), copy=False) for name, array in made.items()}


def _fill(file: BinaryIO, room: memoryview, digest: Any) -> None:
    """Read bytes into an array, a piece at a time."""
    for at in range(0, len(room), CHUNK):
        piece = room[at : at + CHUNK]
        if file.readinto(piece) != len(piece):  # type: ignore[attr-defined]
            raise ModelFileError("the file is cut off: it became shorter while it was read")
        digest.update(piece)


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"the header of the file is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise ModelFileError("the header of the file is not a JSON object")
    return header


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _described(header: dict[str, Any], start: int, end: int) -> dict[str, tuple[np.dtype, tuple[int, ...]]]:
    """Dtype and shape of each array, if they lie in the file one after the other and fill it."""
    table = header.pop("arrays", None)
    if not isinstance(table, dict):
        raise ModelFileError("the header of the file does not describe its arrays")
    found, at = {}, start
    for name, about in table.items():
        if not isinstance(about, dict) or about.keys() != {"dtype", "shape", "offset"}:
            raise ModelFileError(f"array {name!r} must have a dtype, a shape and an offset")
        dtype, shape = about["dtype"], about["shape"]
        if not isinstance(dtype, str) or not DTYPES.fullmatch(dtype):
            raise ModelFileError(f"array {name!r} has the dtype {dtype!r}, which no model has")
        if not isinstance(shape, list) or len(shape) > MOST_AXES or not all(_is_size(n) for n in shape):
            raise ModelFileError(f"array {name!r} has the shape {str(shape)[:80]}, which is none")
        if not _is_size(about["offset"]) or about["offset"] != at:
            raise ModelFileError(f"array {name!r} must begin at byte {at:,}; the header says {about['offset']!r:.40}")
        found[name] = (np.dtype(dtype), tuple(shape))
        at = padded(at + prod(shape) * found[name][0].itemsize)
        if at > end:
            raise ModelFileError(f"the file is cut off or damaged: it ends before array {name!r} does")
    if at != end:
        raise ModelFileError(f"the file is {end - at:,} bytes longer than its header says")
    return found


def _is_size(n: Any) -> bool:
    return type(n) is int and 0 <= n < 1 << 48


def _little_endian(name: str, array: Array) -> Array:
    made: Array = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
    if not DTYPES.fullmatch(made.dtype.str):
        raise TypeError(f"{name} has the dtype {array.dtype}, which a model file does not hold")
    return made


def _header_of(header: Mapping[str, Any], raw: Mapping[str, Array]) -> bytes:
    """JSON with the offsets of the arrays, which depend on its own length: as long as it takes."""
    start = 0
    while True:
        at, table = start, {}
        for name, array in raw.items():
            table[name] = {"dtype": array.dtype.str, "shape": list(array.shape), "offset": at}
            at = padded(at + array.nbytes)
        text = json.dumps({**header, "arrays": table}, allow_nan=False, separators=(",", ":")).encode()
        if start == 0 and is_crowded(text):
            raise ValueError(
                "the model has more parameters, columns or categories than a file holds: keep fewer of them"
            )
        if padded(16 + len(text)) == start:
            return text.ljust(start - 16)
        if len(text) > MOST_HEADER - ALIGN:
            raise ValueError(
                f"the header of the file would have {len(text):,} bytes, more than {MOST_HEADER:,}: "
                "name the columns in fewer letters"
            )
        start = max(start, padded(16 + len(text)))
