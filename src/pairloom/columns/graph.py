"""Mixed columns in an ONNX graph: an input for each column, encoded as an encoder does."""

import re
import warnings
from math import pi

import numpy as np

from pairloom.base.graph import ML, Graph, NoGraph, OnHashed, Value, joined
from pairloom.base.typing import Array
from pairloom.columns.encoder import UNKNOWN_CODE, Encoder
from pairloom.columns.loops import (
    CATEGORY,
    COUNT,
    DATE,
    DATE_WIDTH,
    HIGH,
    LOW,
    MASS,
    MISSING,
    NUMBER,
    SUM,
    WEEK,
    YEAR,
    looks_like_id,
)
from pairloom.columns.state import CODES, COMPACT, MARKED

LONG_NAME = re.compile(r".{40}#[0-9a-f]{16}", re.DOTALL)
"""The name of a category whose text is too long: its start and its hash."""

Placed = tuple[Array, Value]
"""Columns, and the features (n,) of a row that they are."""


def encoded(encoder: Encoder, graph: Graph, dtype: str, on_hashed: OnHashed) -> Value:
    """Return encoded rows (rows, features), from inputs (rows, 1) named like the columns.

    Numbers are inputs of this dtype, categories are text ("" is missing), dates are days since 1970 in UTC, in double.
    Columns that the model does not read have no input: dropped ones, those without values so far, and those that look
    like ids.
    """
    state = encoder.state
    by_kind: dict[int, list[tuple[int, Value]]] = {NUMBER: [], CATEGORY: [], DATE: []}
    types = {NUMBER: dtype, CATEGORY: "U", DATE: "f8"}
    for j, (name, kind) in enumerate(zip(state.names, state.plain_kinds, strict=True)):
        hidden = encoder.hides_ids[j] and looks_like_id(kind, state.statistics[:, j], encoder.n_named)
        if kind in types and not hidden:
            if not name:
                raise NoGraph("a column without a name cannot be an input: give each column a name")
            by_kind[kind].append((j, graph.input(name, types[kind], 1)))
    if not graph.inputs:
        raise NoGraph("the model reads no column: all are dropped, without values, or look like ids")
    stays = state.layout in (COMPACT, CODES)
    made: list[Placed] = []
    for add, kind in ((_numbers, NUMBER), (_categories, CATEGORY), (_dates, DATE)):
        if by_kind[kind]:
            columns = np.array([j for j, _ in by_kind[kind]])
            if kind == CATEGORY:
                _check_hashed(encoder, columns, on_hashed)
            made += add(encoder, columns, [value for _, value in by_kind[kind]], dtype, stays)
    return _in_order(made, state.width, np.nan if state.layout == COMPACT else 0.0)


def _in_order(made: list[Placed], width: int, rest: float) -> Value:
    """Return all features of a row in order; those that no column makes are ``rest``."""
    places = np.concatenate([features for features, _ in made])
    columns = joined([value for _, value in made])
    if len(places) < width:
        columns = joined([columns, columns.take([0]).zeros(1).to(columns.dtype) + rest])
    order = np.full(width, len(places))
    order[places] = np.arange(len(places))
    return columns if np.array_equal(order, np.arange(len(places))) else columns.take(order)


def _marks(encoder: Encoder, columns: Array) -> Array:
    """Return which of these columns have a missing indicator that is used."""
    statistics = encoder.state.statistics[:, columns]
    used = encoder.state.layout == MARKED and statistics[MISSING] >= encoder.part.marks_after
    return np.flatnonzero(used & (statistics[COUNT] > 0))


def _means(encoder: Encoder, columns: Array) -> Array:
    """Return the means of columns; 0 without values."""
    statistics = encoder.state.statistics[:, columns]
    seen = statistics[COUNT] > 0
    return np.where(seen, statistics[SUM] / np.where(seen, statistics[MASS], 1.0), 0.0)


def _numbers(encoder: Encoder, columns: Array, values: list[Value], dtype: str, stays: bool) -> list[Placed]:
    starts, x, marks = encoder.state.starts[columns], joined(values), _marks(encoder, columns)
    made = [(starts, x if stays else x.filled(_means(encoder, columns)))]
    return [*made, (starts[marks] + 1, x.isnan().to(dtype).take(marks))] if len(marks) else made


def _categories(encoder: Encoder, columns: Array, values: list[Value], dtype: str, stays: bool) -> list[Placed]:
    state, starts = encoder.state, encoder.state.starts[columns]
    unknown = float("nan") if state.layout == CODES else float(UNKNOWN_CODE)
    codes = [
        value.graph.add(
            "LabelEncoder", [value], "f4", ML, keys_strings=["", *state.categories[j]],
            values_floats=[float("nan"), *map(float, range(len(state.categories[j])))], default_float=unknown,
        )
        for j, value in zip(columns, values, strict=True)
    ]  # fmt: skip
    code = joined(codes)
    if stays:
        opened = set(state.open_categories) if state.layout == COMPACT else set()
        moved = [start + DATE_WIDTH if start in opened else start for start in starts.tolist()]
        return [(np.array(moved), code.to(dtype))]
    c, n_codes = len(columns), encoder.n_named + encoder.n_shared
    hits = code.reshape(-1, c, 1).equals(np.arange(float(n_codes))).to(dtype).reshape(-1, c * n_codes)
    places = (starts[:, None] + 1 + np.arange(n_codes)).ravel()
    seen = np.flatnonzero(state.statistics[COUNT, columns] > 0)
    return [(places, hits), (starts[seen], code.isnan().to(dtype).take(seen))]


def _dates(encoder: Encoder, columns: Array, values: list[Value], dtype: str, stays: bool) -> list[Placed]:
    statistics, starts = encoder.state.statistics, encoder.state.starts[columns]
    days, marks = joined(values), _marks(encoder, columns)
    seen = statistics[COUNT] > 0
    latest = statistics[HIGH, seen & (encoder.state.kinds == DATE)].max(initial=-np.inf)
    known = [value.isnan().where(value._operand(-np.inf), value) for value in values]
    now = known[0].graph.add("Max", [*known, known[0]._operand(latest)], "f8")
    ages = now - days
    made = [(starts, (ages if stays else ages.filled(_means(encoder, columns))).to(dtype))]
    span = statistics[HIGH, columns] - statistics[LOW, columns]
    for k, period in enumerate((1.0, WEEK, YEAR)):
        # A period of which less than half was seen is not used; codes mark its missing values.
        used = 2.0 * span >= period
        chosen = np.flatnonzero(used | (encoder.state.layout == CODES))
        if not len(chosen):
            continue
        moments = days.take(chosen)
        turns = (moments + 3.0) / period if period == WEEK else moments / period
        part = (turns - turns.call("Floor")) * (2.0 * pi)
        for q, wave in enumerate((part.sin(), part.cos())):
            values_of = wave * np.where(used[chosen], 1.0, 0.0)
            made.append((starts[chosen] + 1 + 2 * k + q, (values_of if stays else values_of.filled(0.0)).to(dtype)))
    return [*made, (starts[marks] + DATE_WIDTH, days.isnan().to(dtype).take(marks))] if len(marks) else made


def _check_hashed(encoder: Encoder, columns: Array, on_hashed: OnHashed) -> None:
    """Raise NoGraph, or warn, if categories have codes that only a hash finds."""
    state = encoder.state
    many = [state.names[j] for j in columns if len(state.categories[j]) >= encoder.n_named]
    long = [state.names[j] for j in columns if any(map(LONG_NAME.fullmatch, state.categories[j]))]
    if not many and not long:
        return
    what = f"more than {encoder.n_named:,} categories" if many else "categories with more than 64 letters"
    problem = f"column {(many or long)[0]!r} has {what}, which share codes by a hash; ONNX has no operator for it"
    if on_hashed == "raise":
        raise NoGraph(f"{problem}: on_hashed='unknown' exports them as unknown categories")
    warnings.warn(f"{problem}: they are unknown categories in the file, and scores of such rows differ", stacklevel=5)
