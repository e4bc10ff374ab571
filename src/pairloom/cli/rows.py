"""Read rows of files for a model: find its columns by name, and convert them to their kinds."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pairloom.base.typing import Array
from pairloom.cli.console import list_names
from pairloom.cli.conversion import Converter
from pairloom.cli.errors import error_message
from pairloom.cli.labels import distinct_labels
from pairloom.cli.row_batch import RowBatch
from pairloom.columns.kinds import Kinds, columns_of
from pairloom.data.readers.base import PARSE_ERRORS, Chunk, RowErrors, errors_by_bisection
from pairloom.data.readers.opening import FileError
from pairloom.data.readers.text import is_text

LABEL_NAMES = ("label", "target", "class", "y")
"""Columns that are the label by default."""


class RowReader:
    """Reader of rows for a model.

    Parameters
    ----------
    model : an estimator, fitted or not.
    label, weight, keep : columns besides the features; ``label`` None: that of the model, or one of ``LABEL_NAMES``.
    drop : columns that are not used, as those that the model was fitted without.
    labelled : whether a label is required.
    strict : whether unknown columns are errors.
    missing : whether malformed values of number and date columns are treated as missing.
    """

    def __init__(
        self, model: Any, *, label: str | None = None, weight: str | None = None, keep: Sequence[str] = (),
        drop: Sequence[str] = (), labelled: bool = True, strict: bool = False, missing: bool = False,
    ) -> None:  # fmt: skip
        known = model._file_columns
        self.label_of_model = label is None and labelled and known is not None
        self.label = known.label if self.label_of_model else label
        self.model, self.weight, self.keep, self.drop = model, weight, list(keep), list(drop)
        self.ignored = [] if known is None else known.dropped
        self.labelled, self.strict = labelled, strict
        self.missing = missing or columns_of(model.columns).on_text == "missing"
        names = getattr(model, "feature_names_in_", None)
        self.features: list[str] | None = None if names is None else [str(name) for name in names]
        self.width: int | None = getattr(model, "n_features_in_", None)
        self.kinds: Kinds = {}
        self.inferred: Kinds = {}
        self.source = ""

    def open(self, reader: Any) -> None:
        """Find the columns of a file; raise FileError if they do not match the model."""
        self.source = reader.name
        if reader.names is None:
            self._open_unnamed(reader)
        elif reader.names:
            self._open_named(reader.name, reader.names)

    def _open_unnamed(self, reader: Any) -> None:
        named = [name for name in (self.label, self.weight, *self.keep, *self.drop) if name]
        if self.features is not None:
            raise FileError(
                f"{reader.name}: LIBSVM has no column names; the model needs the columns {list_names(self.features)}"
            )
        if named:
            raise FileError(f"{reader.name}: LIBSVM has no column names; there is no column {named[0]!r}")
        if self.width is not None and reader.width > self.width:
            raise FileError(f"{reader.name}: found {reader.width} columns; the model has {self.width}")
        self.width = self.width or reader.width

    def _open_named(self, name: str, names: list[str]) -> None:
        if self.features is None and self.width is not None:
            raise FileError(f"{name}: the model was fitted on {self.width} columns without names; use LIBSVM")
        if self.labelled and self.label is None:
            others = [one for one in names if one not in set(self.features or ())]
            found = [one for one in LABEL_NAMES if one in others]
            if not found:
                also = "" if self.features is None else ", and the model does not name one"
                raise FileError(f"{name}: no label column{also}; set --label to one of {list_names(others or names)}")
            self.label = found[0]
        options: dict[str, list[Any]] = {
            "label": [self.label],
            "weight": [self.weight],
            "keep": self.keep,
            "drop": self.drop,
        }
        for option, wanted in options.items():
            absent = [one for one in wanted if one is not None and one not in names]
            if absent:
                why = "the label of the model" if option == "label" and self.label_of_model else f"--{option}"
                raise FileError(f"{name}: no column {absent[0]!r} ({why}); the columns are {list_names(names)}")
        others = [one for one in names if one not in {self.label, self.weight, *self.drop, *self.ignored}]
        if self.features is None:
            if not others:
                raise FileError(f"{name}: no columns to learn from")
            self.features = others
        here, known = set(names), set(self.features)
        missing = [one for one in self.features if one not in here]
        unknown = [one for one in others if one not in known] if self.strict else []
        if missing or unknown:
            problems = [f"missing {list_names(missing)}"] if missing else []
            problems += [f"unknown {list_names(unknown)}"] if unknown else []
            raise FileError(f"{name}: the columns do not match the model: {', '.join(problems)}")

    def start_chunk(self, chunk: Chunk) -> None:
        """Set the kinds of columns: as the model knows them or as set by the user, else inferred from the chunk."""
        if self.features is None:
            return
        report = getattr(self.model, "columns_", None) if hasattr(self.model, "stream_") else None
        kinds: Kinds = {} if report is None else {k: v for k, v in report.kinds.items() if v != "open"}
        kinds = {**self._given_kinds, **kinds}
        kinds = {name: "category" if kind == "drop" else kind for name, kind in kinds.items()}
        unknown = [name for name in self.features if name not in kinds]
        self.inferred = chunk.infer(unknown) if unknown else {}
        self.kinds = {name: kinds.get(name, self.inferred.get(name)) for name in self.features}

    def read(self, chunk: Chunk, low: int, high: int) -> RowBatch:
        """Return rows ``low`` to ``high`` (exclusive); raise ValueError if one is malformed."""
        rows = np.arange(low, high)
        if self.features is None:
            assert self.width is not None
            X, y = chunk.rows(low, high, self.width)
            return RowBatch(X, y, None, None, rows, {})
        table, converter = chunk.table(low, high, self._columns), self._converter
        if self.missing:
            table, invalid = self._convert_valid(chunk, table, rows)
            return self._batch(table, rows, _masks(invalid, len(rows)))
        for name, kind in self._converted.items():
            j = table.schema.get_field_index(name)
            if is_text(table.column(j)):  # the model checks all other types
                table = table.set_column(j, name, converter.convert(name, kind, table.column(j)))
        return self._batch(table, rows, {})

    def read_valid(
        self, chunk: Chunk, low: int, high: int, read_labels: Callable[[Any], object] | None = None
    ) -> tuple[RowBatch, RowErrors]:
        """Return the rows that are not malformed, and the errors of the others, all found at once."""
        batch, errors = self._read_valid_columns(chunk, low, high)
        invalid = {} if read_labels is None else _label_errors(batch, read_labels)
        return batch[~np.isin(batch.rows, list(invalid))], {**invalid, **errors}

    def _read_valid_columns(self, chunk: Chunk, low: int, high: int) -> tuple[RowBatch, RowErrors]:
        if self.features is None:
            assert self.width is not None
            found = chunk.valid_rows(low, high, self.width)
            X, y = found.table or (np.zeros((0, self.width)), np.zeros(0))
            return RowBatch(X, y, None, None, found.rows, {}), found.errors
        found = chunk.valid_table(low, high, self._columns)
        table, errors = found.table, dict(found.errors)
        if table is None:
            return RowBatch(None, None, None, None, found.rows, {}), errors
        table, invalid_values = self._convert_valid(chunk, table, found.rows)
        for invalid in {} if self.missing else invalid_values.values():
            _add_errors(errors, found.rows, invalid)
        if self.weight is not None:
            weights, invalid = self._valid_weights(chunk, table.column(self.weight), found.rows)
            table = table.set_column(table.schema.get_field_index(self.weight), self.weight, [weights])
            _add_errors(errors, found.rows, invalid)
        valid = np.array([row not in errors for row in found.rows.tolist()], dtype=bool)
        malformed = {name: own[valid] for name, own in _masks(invalid_values, len(valid)).items()}
        return self._batch(table.filter(valid), found.rows[valid], malformed), errors

    def _convert_valid(self, chunk: Chunk, table: Any, rows: Array) -> tuple[Any, dict[str, RowErrors]]:
        """Return a table with nulls in place of malformed values, and the errors of these by column and position."""
        errors: dict[str, RowErrors] = {}
        for name, kind in self._converted.items():
            j = table.schema.get_field_index(name)

            def read_alone(place: int, name: str = name, kind: str = kind) -> Any:
                row = int(rows[place])
                return chunk.table(row, row + 1, {name: kind}).column(0)

            column, errors[name] = self._converter.convert_valid(name, kind, table.column(j), read_alone)
            table = table.set_column(j, name, column)
        return table, errors

    def _valid_weights(self, chunk: Chunk, column: Any, rows: Array) -> tuple[Array, RowErrors]:
        """Return weights and errors; a value such as NA is missing in a column of numbers, but not in one of text."""
        name, weights, errors = str(self.weight), np.zeros(len(rows)), RowErrors()

        def attempt(low: int, high: int) -> None:
            weights[low:high] = _weights(name, column.slice(low, high - low))

        for place in errors_by_bisection(0, len(rows), attempt):
            row = int(rows[place])
            try:
                weights[place] = _weights(name, chunk.table(row, row + 1, {name: "number"}).column(0))[0]
            except PARSE_ERRORS as error:
                errors[place] = error_message(error)
        return weights, errors

    @property
    def _columns(self) -> Kinds:
        """All columns to read."""
        besides: Kinds = {name: "category" for name in [self.label, *self.keep] if name is not None}
        if self.weight is not None:
            besides[self.weight] = "number"
        return {**besides, **self.kinds}

    @property
    def _given_kinds(self) -> dict[str, Any]:
        return dict(columns_of(self.model.columns).kinds)

    @property
    def _converted(self) -> dict[str, str]:
        """The columns whose values must be numbers or dates."""
        dropped = {name for name, kind in self._given_kinds.items() if kind == "drop"}
        return {name: kind for name, kind in self.kinds.items() if kind in ("number", "date") and name not in dropped}

    @property
    def _converter(self) -> Converter:
        stream = getattr(self.model, "stream_", None)
        dtype = self.model.dtype if stream is None else stream.model.dtype
        return Converter(dtype)

    def _batch(self, table: Any, rows: Array, malformed: dict[str, Array]) -> RowBatch:
        weight = None if self.weight is None else _weights(self.weight, table.column(self.weight))
        label = None if self.label is None else table.column(self.label)
        if label is not None and label.type.num_fields:  # lists and other nested types
            raise FileError(f"{self.source}: the label {self.label!r} has type {label.type}; expected numbers or text")
        X = table.select(self.features)
        for j, name in enumerate(X.column_names):
            if self.inferred.get(name) == "category" and is_text(X.column(j)):
                X = X.set_column(j, name, X.column(j).dictionary_encode())  # so that the model infers the same kind
        return RowBatch(X, label, weight, table.select(self.keep), rows, malformed)


def _label_errors(batch: RowBatch, read: Callable[[Any], object]) -> RowErrors:
    """Return the errors of labels; each distinct one is read once."""
    if not len(batch):
        return {}
    try:
        read(batch.labels)
        return {}
    except PARSE_ERRORS:
        pass
    try:
        _, codes = distinct_labels(batch.labels)
    except PARSE_ERRORS:
        codes = np.arange(len(batch))
    errors: RowErrors = {}
    for code in np.unique(codes).tolist():
        places = np.flatnonzero(codes == code)
        try:
            read(batch.labels[int(places[0]) : int(places[0]) + 1])
        except PARSE_ERRORS as error:
            errors |= dict.fromkeys(batch.rows[places].tolist(), error_message(error))
    return errors


def _masks(invalid: dict[str, RowErrors], n: int) -> dict[str, Array]:
    """Return which of n rows have an invalid value, for columns that have any."""
    return {name: np.isin(np.arange(n), list(errors)) for name, errors in invalid.items() if errors}


def _add_errors(errors: RowErrors, rows: Array, invalid: RowErrors) -> None:
    """Add errors of values to those of their rows; the first error of a row is kept."""
    for place, text in invalid.items():
        errors.setdefault(int(rows[place]), text)


def _weights(name: str, column: Any) -> Array:
    try:
        weights = np.asarray(column.cast("float64").to_numpy(zero_copy_only=False), dtype=float)
    except Exception as error:
        raise ValueError(f"the weight {name!r} is not a number: {str(error).splitlines()[0]}") from None
    if np.isnan(weights).any():
        raise ValueError(f"the weight {name!r} is missing")
    return weights
