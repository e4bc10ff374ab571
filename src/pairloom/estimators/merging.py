"""Merging estimators: labels, counts, columns and streams of parts that continued from one base."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pairloom.base.merging import added
from pairloom.base.threads import ONE_THREAD
from pairloom.base.tree import copy
from pairloom.columns.kinds import columns_of
from pairloom.columns.merging import Recoding, check_codes, merge_columns
from pairloom.columns.state import COMPACT, ColumnsState
from pairloom.estimators.class_labels import Labels
from pairloom.estimators.class_weight import ClassCounts
from pairloom.stream.merging import merge_streams
from pairloom.stream.state import StreamState

if TYPE_CHECKING:
    from pairloom.estimators.saving import EstimatorState, SavableEstimator


def merge_estimators(base: "SavableEstimator", parts: "Sequence[SavableEstimator]") -> "EstimatorState":
    """Return the merged state; ValueError, naming the part, if parts are not copies of the base."""
    check_parts(base, parts)
    state, others = base.state_, [part.state_ for part in parts]
    labels = merge_labels(state.labels, [one.labels for one in others])
    streams, columns = [one.stream for one in others], state.columns
    if columns is not None:
        rules = columns_of(base.columns)
        known = [one.columns for one in others if one.columns is not None]
        n_codes = rules.n_codes(len(columns.names), compact=columns.layout == COMPACT)
        columns, recodings = merge_columns(columns, known, n_codes)
        if columns.layout != COMPACT or base.stream_.encoding is None:
            check_codes(columns, recodings)
        streams = [recoded(base, columns, *pair) for pair in zip(streams, recodings, strict=True)]
    stream = base.stream_
    try:
        with ONE_THREAD:
            merged = merge_streams(stream.model, stream.hooks, state.stream, streams, stream.encoding)
    except TypeError as error:
        raise TypeError(f"{type(base).__name__}: {error}") from None
    counts = merge_counts(state.class_counts, [one.class_counts for one in others])
    return replace(
        state, labels=labels, stream=merged, columns=columns, class_counts=counts, windows=copy(state.windows)
    )


def check_parts(base: "SavableEstimator", parts: "Sequence[SavableEstimator]") -> None:
    """Raise ValueError unless parts are fitted, with the parameters of the base."""
    check_is_fitted(base)
    mine = base._saved_params()
    for k, part in enumerate(parts):
        if type(part) is not type(base):
            raise ValueError(f"part {k} is a {type(part).__name__}, but the base is a {type(base).__name__}")
        check_is_fitted(part)
        part.stream_.check_whole()
        its = part._saved_params()
        different = [name for name in mine if repr(mine[name]) != repr(its[name])]
        if different:
            name = different[0]
            raise ValueError(f"part {k} has {name}={its[name]!r}, but the base has {name}={mine[name]!r}")
        if part.stream_.model != base.stream_.model:
            raise ValueError(
                f"part {k} has another model than the base, such as another seed: parts must be copies, base.fork(n)"
            )
        if part.n_features_in_ != base.n_features_in_:
            raise ValueError(f"part {k} has {part.n_features_in_} columns, but the base has {base.n_features_in_}")


def merge_labels(base: Labels | None, parts: list[Labels | None]) -> Labels | None:
    """Return the labels of the part that knows most; ValueError if another part knows others."""
    most = max([base, *parts], key=lambda one: 0 if one is None else len(one.classes))
    for k, part in enumerate(parts):
        if part is None or most is None or part is most:
            continue
        if part.first != most.first or not set(part.classes.tolist()) <= set(most.classes.tolist()):
            raise ValueError(
                f"part {k} has the classes {part.classes.tolist()}, but another has {most.classes.tolist()}: pass all "
                "labels as classes= in the first call of partial_fit of the base"
            )
    return most


def merge_counts(base: ClassCounts | None, parts: list[ClassCounts | None]) -> ClassCounts | None:
    """Return the sums of the weights of the classes."""
    if base is None:
        return None
    known = [part for part in parts if part is not None]
    mass = added(base.mass, [part.mass for part in known])
    return ClassCounts(mass, float(added(base.total, [part.total for part in known])))


def recoded(base: "SavableEstimator", columns: ColumnsState, stream: StreamState, recoding: Recoding) -> StreamState:
    """Return the state of a part with the codes that its new categories have after the merge."""
    encoding = base.stream_.encoding
    if not recoding or encoding is None or stream.encoding is None:
        return stream
    made = copy(stream)
    codes: dict[int, Any] = {}
    for j, new in recoding.items():
        place = columns.places[columns.names[j]]
        codes[int(np.searchsorted(encoding.codes, place))] = new
    assert made.encoding is not None
    encoding.recode(made.encoding, codes)
    base.stream_.model.recode(made.learned, codes)
    return made
