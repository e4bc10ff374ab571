"""Packed arrays: without the zeros of rings, trees and weights that are not full yet."""

import numpy as np

from pairloom.base.typing import Array

WORD = np.dtype("<u4")

MIN_BYTES = 4096
"""Smaller arrays are written as they are."""


def n_words(n_bytes: int) -> int:
    """Return the number of words of an array, the last of which may be longer than the array."""
    return -(-n_bytes // WORD.itemsize)


def packed_size(n_bytes: int, n_nonzero: int) -> int:
    """Return the bytes of a packed array: a bit for each word, and the words that are not 0.

    >>> packed_size(4096, 3), packed_size(5, 1)
    (140, 5)
    """
    return -(-n_words(n_bytes) // 8) + WORD.itemsize * n_nonzero


def pack(array: Array) -> tuple[Array, int] | None:
    """Return a contiguous array in packed form, and its number of words that are not 0; None if that is not shorter."""
    if array.nbytes < MIN_BYTES:
        return None
    content = array.reshape(-1).view(np.uint8)
    words = np.pad(content, (0, -len(content) % WORD.itemsize)).view(WORD)
    nonzero = words != 0
    count = int(np.count_nonzero(nonzero))
    if packed_size(array.nbytes, count) >= array.nbytes:
        return None
    return np.concatenate([np.packbits(nonzero, bitorder="little"), words[nonzero].view(np.uint8)]), count


def unpack(content: Array, dtype: np.dtype, shape: tuple[int, ...], n_bytes: int, n_nonzero: int) -> Array:
    """Return the array that ``pack`` packed; ValueError if the bits do not mark ``n_nonzero`` of its words.

    It is at most 32 times as large as its packed form, which has a bit for each of its words.

    >>> array = np.zeros(2000)
    >>> array[5] = 1.5
    >>> content, count = pack(array)
    >>> bool((unpack(content, array.dtype, array.shape, array.nbytes, count) == array).all()), len(content), count
    (True, 504, 1)
    """
    size = n_words(n_bytes)
    bits = -(-size // 8)
    marked = np.unpackbits(content[:bits], bitorder="little")
    if marked[size:].any() or np.count_nonzero(marked) != n_nonzero:
        raise ValueError(f"must mark {n_nonzero:,} of {size:,} words")
    words = np.zeros(size, WORD)
    words[marked[:size].view(bool)] = content[bits:].copy().view(WORD)
    return words.view(np.uint8)[:n_bytes].view(dtype).reshape(shape)
