"""``save`` and ``load``: a model in a file that holds no code."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import pairloom
from pairloom.base.tree import NODES, Flat, flatten, unflatten
from pairloom.base.typing import Array
from pairloom.columns.kinds import columns_of
from pairloom.estimators.base import EstimatorState, StreamEstimator
from pairloom.estimators.class_labels import declared_classes
from pairloom.estimators.class_weight import is_balanced
from pairloom.estimators.transformer import FeatureTransformer
from pairloom.features import RandomFourier
from pairloom.features.choice import chosen_map
from pairloom.persist.checks import check_class_counts, check_labels, check_stream, numbers_in
from pairloom.persist.columns import check_columns
from pairloom.persist.format import ModelFileError, read_file, write_file
from pairloom.persist.parts import decode, encode, known_parts
from pairloom.persist.scopes import map_rule
from pairloom.persist.walk import Scope, Walk
from pairloom.stream import Stream

SCHEMA = 1
"""The version of what a file holds. A change by which older files would be misread raises it."""

FEW = 1 << 16
"""Classes that a model may have whatever the length of its file."""

CHANGED = (
    "the parameters of this {} were changed after it was fitted: fit it anew, or set them back, and then save. A file "
    "that says other parameters than those the model learned with would go on as neither"
)

Saved = StreamEstimator | FeatureTransformer | Stream


def save(model: Saved, path: str | os.PathLike[str]) -> None:
    """Write a model to a file: any estimator of this package, a ``FeatureTransformer``, or a bare ``Stream``.

    The file holds parameters and all that was learned, as JSON and raw arrays; nothing in it is code. It is complete or
    it is not there: a temporary file is written beside it and renamed, so that a file of this name stays as it is until
    then. OSError if that fails.

    A ``random_state`` that is a generator is refused; so are parameters that were changed after ``fit``.

    >>> import pairloom, tempfile
    >>> from pairloom.systems import FPOGD
    >>> model = FPOGD(n_components=8, random_state=0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pairloom.save(model, f"{folder}/model.pairloom")
    ...     found = pairloom.load(f"{folder}/model.pairloom")
    >>> bool((found.decision_function([[1.5]]) == model.decision_function([[1.5]])).all())
    True
    """
    write_file(Path(path), *packed(model))


def load(path: str | os.PathLike[str], parts: Iterable[type] = ()) -> Any:
    """The model that ``save`` wrote: it scores and learns on, bit for bit, as if it had never been away.

    ``parts``: your own classes that the model is made of, such as a loss. Nothing that a file names is imported.

    ModelFileError, a ValueError, for all that is no such file, or is damaged, or does not fit this version. Whatever a
    file says, nothing is made that is larger than the file, and no state that its model could not have.
    """
    return read_model(path, parts)[0]


def read_model(path: str | os.PathLike[str], parts: Iterable[type] = ()) -> tuple[Any, int | None]:
    """The model of a file, and its position in the stream if it is a checkpoint."""
    parts = list(parts)
    known = known_parts(parts)
    try:
        header, arrays = read_file(Path(path))
        return unpacked(header, arrays, known, parts), _position(header)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error.__cause__
    except OSError:
        raise
    except Exception as error:  # a part, or NumPy, that was given what no model has
        text = f"what the file describes is no model: {type(error).__name__}: {str(error)[:400]}"
        raise ModelFileError(f"{os.fspath(path)}: {text}") from error


def packed(model: Saved, position: int | None = None) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a file."""
    if not isinstance(model, Saved):
        raise TypeError(f"pairloom.save takes an estimator of pairloom, or a Stream; got a {type(model).__name__}")
    described = _described(model)
    tree, names = _learned(model)
    flat = Flat({}, {}, {}) if tree is None else flatten(tree)
    header = {
        "schema": SCHEMA,
        "pairloom": pairloom.__version__,
        "model": described,
        "position": position,
        "names": names,
        "state": {"values": {path: encode(value, path) for path, value in flat.values.items()}, "kinds": flat.kinds},
    }
    return header, flat.arrays


def unpacked(
    header: Mapping[str, Any], arrays: dict[str, Array], known: Mapping[str, type], parts: Iterable[type]
) -> Any:
    """The model of a header and arrays, which are as hostile as they like."""
    _check_version(header)
    room = FEW + sum(array.size for array in arrays.values())
    model = decode(header.get("model"), known, room)
    if not isinstance(model, Saved):
        raise ModelFileError(f"the file describes a {type(model).__name__}, which is not what pairloom.save writes")
    flat = _flat(header.get("state"), arrays)
    walk = Walk(flat, NODES | {kind.__name__: kind for kind in parts if is_dataclass(kind)})
    if not (flat.arrays or flat.values or flat.kinds):
        return model
    if isinstance(model, Stream):
        check_stream(walk, "", model.model, model.observers)
        walk.finish()
        model.resume(unflatten(flat, walk.nodes.values()))
        return model
    if isinstance(model, FeatureTransformer):
        return _fitted_transformer(model, walk, header.get("names"))
    return _fitted(model, walk, header.get("names"))


def _learned(model: Saved) -> tuple[Any, list[str] | None]:
    """What was learned, as a tree, and the names of the columns; None before the first row."""
    if isinstance(model, Stream):
        model.check_whole()
        return model.state, None
    names = getattr(model, "feature_names_in_", None)
    names = None if names is None else [str(name) for name in names]
    if isinstance(model, FeatureTransformer):
        if not hasattr(model, "state_"):
            return None, None
        if chosen_map(model.features, RandomFourier()) != model._features:
            raise ValueError(CHANGED.format("FeatureTransformer"))
        return {"n_features": model.n_features_in_, "map": model.state_}, names
    if not hasattr(model, "stream_"):
        declared = getattr(model, "_declared", None)
        return (None if declared is None else {"declared": declared}), None
    model.stream_.check_whole()
    state = model.state_
    counts = is_balanced(getattr(model, "class_weight", None)) == (state.class_counts is not None)
    pinned = model._encoder is None or model._encoder.part == columns_of(model.columns)
    anew = model._stream_of(state.labels, state.seed)
    same = (anew.model, anew.observers) == (model.stream_.model, model.stream_.observers)
    if not counts or not pinned or not same:
        raise ValueError(CHANGED.format(type(model).__name__))
    return replace(state, names=None), names


def _described(model: Saved) -> dict[str, Any]:
    """The class and the parameters of a model."""
    if isinstance(model, Stream):
        observers = [encode(observer, "an observer") for observer in model.observers[1:]]
        return {"part": "Stream", "model": encode(model.model, "the model"), "observers": observers}
    name = type(model).__name__
    local = getattr(model, "local", ())
    values = {key: value for key, value in model.get_params(deep=False).items() if key not in local}
    return {"part": name, **{key: encode(value, f"{name}.{key}") for key, value in values.items()}}


def _check_version(header: Mapping[str, Any]) -> None:
    schema, version = header.get("schema"), str(header.get("pairloom"))[:40]
    if type(schema) is not int or schema < 1:
        raise ModelFileError("the header of the file does not say which version of the format it has")
    if schema > SCHEMA:
        raise ModelFileError(
            f"the file was written by pairloom {version} in version {schema} of the format, and this is pairloom "
            f"{pairloom.__version__}, which reads version {SCHEMA}: install pairloom {version} or newer"
        )


def _position(header: Mapping[str, Any]) -> int | None:
    position = header.get("position")
    if position is not None and (type(position) is not int or position < 0):
        raise ModelFileError(f"the position in the file must be a whole number, not {position!r:.40}")
    return position


def _flat(state: Any, arrays: dict[str, Array]) -> Flat:
    """The flat state of a file: tables of the right types, whatever is in them."""
    if not isinstance(state, dict) or state.keys() != {"values", "kinds"}:
        raise ModelFileError("the header of the file does not describe the state of a model")
    values, kinds = state["values"], state["kinds"]
    if not isinstance(values, dict) or not isinstance(kinds, dict):
        raise ModelFileError("the values and kinds of a state must be JSON objects")
    if not all(isinstance(kind, str) for kind in kinds.values()):
        raise ModelFileError("the kinds of a state must be text")
    plain = {path: decode(value, {}, 0) if isinstance(value, dict) else value for path, value in values.items()}
    if any(isinstance(value, (list, tuple, np.generic, np.ndarray)) for value in plain.values()):
        raise ModelFileError("the values of a state must be numbers, text, true, false or null")
    return Flat(arrays, plain, kinds)


def _fitted(model: StreamEstimator, walk: Walk, names: Any) -> StreamEstimator:
    """The estimator with the state of a file."""
    if walk.kind("") == "dict declared":
        walk.anything("", Scope())
        walk.finish()
        model._declared = declared_classes(unflatten(walk.flat)["declared"])
        return model
    walk.branch("", "EstimatorState")
    walk.value("names", "none")
    seed: Any = walk.value("seed", "none" if walk.flat.values.get("seed") is None else "seed")
    labels = check_labels(walk, "labels")
    check_class_counts(walk, "class_counts", getattr(model, "class_weight", None), labels)
    stream = model._stream_of(labels, seed)
    check_stream(walk, "stream", stream.model, stream.observers)
    n_features: Any = walk.flat.values["stream.n_features"]
    known = None
    if "columns" in walk.flat:
        known = check_columns(walk, "columns", columns_of(model.columns), n_features)
    walk.finish()
    state: EstimatorState = unflatten(walk.flat, walk.nodes.values())
    state.names = _names(names, n_features if known is None else len(known))
    if known is not None and known != state.names:
        raise ModelFileError("the names of the columns must be those that the model knows")
    return model.with_state(state)


def _fitted_transformer(model: FeatureTransformer, walk: Walk, names: Any) -> FeatureTransformer:
    """The transformer with the map of a file."""
    walk.branch("", "dict n_features|map")
    d = walk.value("n_features", "count")
    if not 0 < d <= numbers_in(walk.flat):
        raise walk.refuse("n_features", "must be the number of columns")
    features, work = chosen_map(model.features, RandomFourier()), f"f{np.dtype(model.dtype).itemsize}"
    walk.take("map", map_rule(walk, features, d, 0, work, 1), Scope({"d": d}), {})
    walk.finish()
    model._features, model.state_, model.n_features_in_ = features, unflatten(walk.flat, walk.nodes.values())["map"], d
    columns = _names(names, d)
    if columns is not None:
        model.feature_names_in_ = np.asarray(columns, dtype=object)
    return model


def _names(names: Any, n_features: int) -> list[str] | None:
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != n_features or not all(isinstance(name, str) for name in names):
        raise ModelFileError(f"the names of the columns must be {n_features} texts")
    return names
