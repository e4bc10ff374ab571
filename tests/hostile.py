"""Hostile model files: valid files with changes, and a digest that matches."""

import copy
import json
from contextlib import suppress
from hashlib import blake2b

import numpy as np

from pairloom.persist.format import DIGEST_SIZE, aligned

INTS = [0, 1, -1, -2, 2, 3, 16, 17, 4095, 4097, 2**31 - 1, 2**31, -(2**31), 2**53, 2**62, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, -1e300, np.inf, -np.inf, np.nan]
PLAIN = [None, True, False, "", "x", "csr 2 2", "__import__('os')", 10**400, -1, 0, 2**64, 1e308, [], {}, [[]],
         {"float": "nan"}, {"float": "1"}, {"part": "Square"}, {"part": "os.system"}, {"tuple": [1]},
         *INTS]  # fmt: skip
KINDS = ["", "x", "list", "list 99999999", "list -1", "dict", "dict a|b", "csr 1 1", "csr 99999999999 4", "objects 3",
         "generator MT19937", "generator PCG64", "State", "Strata", "Slots", "LazyModel", "tuple 2"]  # fmt: skip
DTYPES = ["f4", "f8", "i8", "i4", "b1", "u8", "U3", "M8[D]"]


def read(path):
    """Read the header and the arrays of a file, using only the documentation of the format."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[8:16], "little")
    header = json.loads(raw[16 : 16 + size])
    arrays = {}
    for name, about in header.pop("arrays").items():
        dtype, count = np.dtype(about["dtype"]), int(np.prod(about["shape"]))
        if "nonzero" in about:
            content = unpacked(raw, about["offset"], count * dtype.itemsize, about["nonzero"])
            arrays[name] = np.frombuffer(content, dtype, count).reshape(about["shape"]).copy()
        else:
            arrays[name] = np.frombuffer(raw, dtype, count, about["offset"]).reshape(about["shape"]).copy()
    return header, arrays


def unpacked(raw, offset, size, nonzero):
    """Return the bytes of a packed array."""
    n = (size + 3) // 4
    marked = [raw[offset + k // 8] >> k % 8 & 1 for k in range(n)]
    assert sum(marked) == nonzero
    words = iter(np.frombuffer(raw, "<u4", nonzero, offset + (n + 7) // 8).tolist())
    return b"".join((next(words) if bit else 0).to_bytes(4, "little") for bit in marked)[:size]


def sign(header, arrays, table=None):
    """Return the bytes of a file with a valid digest; ``table`` changes the description of the arrays in its header."""
    start, described = 0, None
    while described is None or aligned(16 + len(described)) != start:
        start = max(start, aligned(16 + len(described or b"")))
        at, about = start, {}
        for name, array in arrays.items():
            about[name] = {"dtype": array.dtype.str, "shape": list(array.shape), "offset": at}
            at = aligned(at + array.nbytes)
        described = json.dumps({**header, "arrays": about if table is None else table(about)}).encode()
    text = described.ljust(start - 16)
    body = b"".join(array.tobytes() + bytes(-array.nbytes % 64) for array in arrays.values())
    raw = b"pairloom" + len(text).to_bytes(8, "little") + text + body
    return raw + blake2b(raw, digest_size=DIGEST_SIZE).digest()


def damaged(raw, rng):
    """Return a truncated file, or one with a flipped bit or additional bytes."""
    choice = rng.integers(4)
    if choice == 0:
        return raw[: rng.integers(len(raw))]
    if choice == 1:
        return raw + rng.bytes(int(rng.integers(1, 200)))
    at = int(rng.integers(64 if choice == 2 else len(raw)))
    return raw[:at] + bytes([raw[at] ^ 1 << int(rng.integers(8))]) + raw[at + 1 :]


def hostile(header, arrays, rng, *, state_only=False):
    """Return the bytes of a file with one to three changes and a valid digest."""
    header, arrays = copy.deepcopy(header), dict(arrays)
    tables = []
    for _ in range(rng.integers(1, 4)):
        ways = [_content, _content, _shape, _dtype, _swap, _value, _kind, _path]
        way = ways[rng.integers(len(ways))] if state_only or rng.random() < 0.7 else _leaf
        if way is _leaf and rng.random() < 0.5:
            tables.append(rng.integers(2**32))
        else:
            with suppress(AttributeError, KeyError, TypeError, ValueError):  # an earlier change removed its object
                way(header, arrays, rng)
    return sign(header, arrays, (lambda about: _lied(about, tables)) if tables else None)


FLIPS = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "-1": -1, "huge": 2**52, "0": 0}


def flipped(header, arrays):
    """Return (path, new value) for each number of a state, and the first of each array, that can be changed."""
    values = header["state"]["values"]
    numbers = {
        path: isinstance(value, (float, dict)) for path, value in values.items() if type(value) in (int, float, dict)
    }
    numbers |= {
        path: array.dtype.kind == "f" for path, array in arrays.items() if array.dtype.kind in "fi" and array.size
    }
    return [(path, name) for path, real in numbers.items() for name in FLIPS if real or name in ("-1", "huge", "0")]


def with_flip(header, arrays, path, name):
    """Return the bytes of a file with one number changed; None if that changes nothing or is not possible."""
    header, arrays, value = copy.deepcopy(header), dict(arrays), FLIPS[name]
    values = header["state"]["values"]
    if path in values:
        real = type(values[path]) is not int
        values[path] = (float(value) if np.isfinite(value) else {"float": name}) if real else value
        return sign(header, arrays)
    array = arrays[path].copy()
    with suppress(OverflowError):
        array.reshape(-1)[0] = value
    same = array.tobytes() == arrays[path].tobytes()
    return None if same else sign(header, {**arrays, path: array})


def _pick(rng, items):
    items = list(items)
    return items[rng.integers(len(items))]


def _content(header, arrays, rng):
    name = _pick(rng, arrays)
    array = arrays[name].copy()
    if array.size:
        flat = array.reshape(-1)
        for _ in range(rng.integers(1, 4)):
            at = rng.integers(flat.size)
            if array.dtype.kind == "f":
                flat[at] = np.float64(_pick(rng, FLOATS)).astype(array.dtype)
            elif array.dtype.kind in "iu":
                flat[at] = np.array(_pick(rng, INTS)).astype(array.dtype)
            else:
                flat.view(np.uint8)[rng.integers(flat.nbytes)] = rng.integers(256)
    arrays[name] = array


def _shape(header, arrays, rng):
    name = _pick(rng, arrays)
    shape = list(arrays[name].shape)
    way = rng.integers(4)
    if way == 0 and shape:
        axis = rng.integers(len(shape))
        shape[axis] = max(0, shape[axis] + int(_pick(rng, (-1, 1, shape[axis], -shape[axis]))))
    elif way == 1:
        shape.insert(0, int(rng.integers(3)))
    elif way == 2 and shape:
        shape.pop()
    else:
        shape = shape[::-1]
    arrays[name] = np.resize(arrays[name], shape) if np.prod(shape) < 1e6 else arrays[name]


def _dtype(header, arrays, rng):
    name = _pick(rng, arrays)
    with np.errstate(all="ignore"):
        try:
            arrays[name] = arrays[name].astype(_pick(rng, DTYPES))
        except (RuntimeError, TypeError, ValueError):
            arrays[name] = np.zeros(arrays[name].shape, _pick(rng, DTYPES))


def _swap(header, arrays, rng):
    one, other = _pick(rng, arrays), _pick(rng, arrays)
    arrays[one], arrays[other] = arrays[other], arrays[one]


def _value(header, arrays, rng):
    values = header["state"]["values"]
    values[_pick(rng, values)] = copy.deepcopy(_pick(rng, PLAIN))


def _kind(header, arrays, rng):
    kinds = header["state"]["kinds"]
    kinds[_pick(rng, kinds)] = _pick(rng, [*KINDS, *kinds.values()])


def _path(header, arrays, rng):
    """Remove, duplicate or move an entry."""
    table = _pick(rng, (arrays, header["state"]["values"], header["state"]["kinds"]))
    name = _pick(rng, table)
    if rng.random() < 0.5:
        table[_pick(rng, (*arrays, *header["state"]["values"], name + ".x", "", "y"))] = table[name]
    if rng.random() < 0.5:
        del table[name]


def _leaf(header, arrays, rng):
    """Change an entry of the header at any depth."""
    here = header
    while True:
        keys = list(here) if isinstance(here, dict) else range(len(here))
        if not len(keys):
            return
        key = _pick(rng, keys)
        below = here[key]
        if not isinstance(below, (dict, list)) or rng.random() < 0.1:
            break
        here = below
    way = rng.integers(8)
    if way == 0 and isinstance(here, dict):
        del here[key]
    elif way == 1 and isinstance(here, dict):
        here["new"] = copy.deepcopy(below)
    elif way == 2:
        for _ in range(int(_pick(rng, (2, 30, 300)))):
            below = [below]
        here[key] = below
    else:
        here[key] = copy.deepcopy(_pick(rng, PLAIN))


def _lied(about, seeds):
    """Return a wrong description of the arrays."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        if not about:
            return about
        one = about[_pick(rng, about)]
        field = _pick(rng, ("dtype", "shape", "offset"))
        if field == "dtype":
            one[field] = _pick(
                rng, ("|O", "<f16", ">f8", "<U999999999", "<U0", "V8", "<c16", "i8,i8", 3, None, *DTYPES)
            )
        elif field == "shape":
            one[field] = _pick(rng, ([2**60], [-1], [0, 2**47], [2**40, 2**40], [1] * 40, [1.5], [True], None, "3"))
        else:
            one[field] = _pick(rng, (0, 16, -64, 2**63, 1.0, None, 6400))
    return about
