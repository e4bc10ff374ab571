"""``save`` and ``load``: models in files without code."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import pairloom
from pairloom.base.saving import Savable
from pairloom.base.tree import Flat, flatten
from pairloom.base.typing import Array
from pairloom.persist.format import ModelFileError, read_file, write_file
from pairloom.persist.parts import decode, encode, known_parts, own_parts
from pairloom.persist.walk import Walk

SCHEMA = 3
"""The version of the file format; it increases with every incompatible change, also of defaults that affect states."""

FORMER = 2
"""The first version in which defaults have their present meaning."""

MIN_CLASSES = 1 << 16
"""Number of classes that a model may have regardless of its file size."""


def save(model: Savable, path: str | os.PathLike[str]) -> None:
    """Write a model to a file: any estimator of this package, a ``FeatureTransformer``, or a ``Stream``.

    The file contains the parameters and the learned state as JSON and raw arrays, and no code. It is written
    atomically: a temporary file is written beside it and renamed, and until then an existing file is unchanged. OSError
    if that fails.

    TypeError if ``random_state`` is a generator; ValueError if parameters were changed after ``fit``.

    >>> import pairloom, tempfile
    >>> from pairloom.systems import FPOGD
    >>> model = FPOGD(n_components=8, random_state=0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pairloom.save(model, f"{folder}/model.pairloom")
    ...     found = pairloom.load(f"{folder}/model.pairloom")
    >>> bool((found.decision_function([[1.5]]) == model.decision_function([[1.5]])).all())
    True
    """
    write_file(Path(path), *pack(model))


def load(path: str | os.PathLike[str], parts: Iterable[type] = ()) -> Any:
    """Return the model that ``save`` wrote; it scores and continues to learn bit for bit as the saved one.

    ``parts``: your own classes that the model uses, such as a loss. Nothing that a file names is imported.

    ModelFileError, a ValueError, for files that are not model files, are damaged, or are not supported by this version.
    A manipulated file can neither allocate more than about 32 times its own size (long runs of zeros are stored as one
    bit for each four bytes) nor create a state that is impossible for its model.
    """
    return read_model(path, parts)[0]


def read_model(path: str | os.PathLike[str], parts: Iterable[type] = ()) -> tuple[Any, int | None]:
    """Return the model of a file, and its position in the stream if it is a checkpoint."""
    known = known_parts(parts)
    try:
        header, arrays = read_file(Path(path))
        return unpack(header, arrays, known), _position(header)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error.__cause__
    except OSError:
        raise
    except Exception as error:  # raised by a part, or by NumPy, for invalid values
        text = f"the file does not describe a valid model: {type(error).__name__}: {str(error)[:400]}"
        raise ModelFileError(f"{os.fspath(path)}: {text}") from error


def pack(model: Savable, position: int | None = None) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays of a file."""
    if not isinstance(model, Savable):
        raise TypeError(f"pairloom.save takes an estimator of pairloom, or a Stream; got a {type(model).__name__}")
    name = type(model).__name__
    params = {key: encode(value, f"{name}.{key}") for key, value in model._saved_params().items()}
    state, names = model._saved_state()
    flat = Flat({}, {}, {}) if state is None else flatten(state)
    if state is not None:
        try:
            read_state(model, flat)
        except ModelFileError as error:
            raise ValueError(f"this model would not load, so it was not saved: {error}") from None
    header = {
        "schema": SCHEMA,
        "pairloom": pairloom.__version__,
        "model": {"part": name, **params},
        "position": position,
        "names": names,
        "state": {"values": {path: encode(value, path) for path, value in flat.values.items()}, "kinds": flat.kinds},
    }
    return header, flat.arrays


def unpack(header: Mapping[str, Any], arrays: dict[str, Array], known: Mapping[str, type]) -> Any:
    """Return the model of a header and arrays, which may be malicious."""
    _check_version(header)
    room = MIN_CLASSES + sum(array.size for array in arrays.values())
    model = decode(with_former_defaults(header.get("model"), header["schema"]), known, room)
    if not isinstance(model, Savable):
        raise ModelFileError(f"the file describes a {type(model).__name__}, which pairloom.save does not write")
    flat = _flat_state(header.get("state"), arrays)
    if not (flat.arrays or flat.values or flat.kinds):
        return model
    return model._restored(read_state(model, flat), header.get("names"))


def read_state(model: Savable, flat: Flat) -> Any:
    """Return a flat state as a tree; ModelFileError unless it is a state that the model could have."""
    walk = Walk(flat)
    return walk.read(model._state_spec(walk))


def with_former_defaults(model: Any, schema: int) -> Any:
    """Return an encoded model with each None replaced by the value that None meant in files of its version."""
    kind = own_parts().get(str(model.get("part"))) if isinstance(model, dict) and schema < FORMER else None
    former = getattr(kind, "former_defaults", {})
    return model | {name: encode(value, name) for name, value in former.items() if model.get(name, 0) is None}


def _check_version(header: Mapping[str, Any]) -> None:
    schema, version = header.get("schema"), str(header.get("pairloom"))[:40]
    if type(schema) is not int or schema < 1:
        raise ModelFileError("the header of the file has no valid version of the format")
    if schema > SCHEMA:
        raise ModelFileError(
            f"the file was written by pairloom {version} in version {schema} of the format, but this is pairloom "
            f"{pairloom.__version__}, which reads version {SCHEMA}: install pairloom {version} or newer"
        )


def _position(header: Mapping[str, Any]) -> int | None:
    position = header.get("position")
    if position is not None and (type(position) is not int or position < 0):
        raise ModelFileError(f"the position in the file must be an integer, not {position!r:.40}")
    return position


def _flat_state(state: Any, arrays: dict[str, Array]) -> Flat:
    """Return the flat state of a header: tables of the right types, whose entries are not checked."""
    if not isinstance(state, dict) or state.keys() != {"values", "kinds"}:
        raise ModelFileError("the header of the file does not describe the state of a model")
    values, kinds = state["values"], state["kinds"]
    if not isinstance(values, dict) or not isinstance(kinds, dict):
        raise ModelFileError("the values and kinds of a state must be JSON objects")
    if not all(isinstance(kind, str) for kind in kinds.values()):
        raise ModelFileError("the kinds of a state must be strings")
    plain = {path: decode(value, {}, 0) if isinstance(value, dict) else value for path, value in values.items()}
    if any(isinstance(value, (list, tuple, np.generic, np.ndarray)) for value in plain.values()):
        raise ModelFileError("the values of a state must be numbers, strings, true, false or null")
    return Flat(arrays, plain, kinds)
