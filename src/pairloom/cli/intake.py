"""Rows of files as a model takes them: which columns are what, and of which kind."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pairloom.base.typing import Array
from pairloom.cli.conversion import CONVERTED, Converter, each
from pairloom.cli.ending import message_of
from pairloom.cli.taken import Taken
from pairloom.columns.kinds import columns_of
from pairloom.data.readers import Faults, InputError, Kinds, Piece
from pairloom.data.readers.sifting import REFUSED

LABELS = ("label", "target", "class", "y")
"""Names of a column that is taken for the label, unless one is named."""

MOST_NAMED = 40
"""Columns that a message names, one by one."""


class Intake:
    """Takes rows out of pieces for a model.

    Parameters
    ----------
    model : an estimator, which may not have seen any rows.
    label, weight, keep : columns besides those of the model; ``label`` None: by its name.
    drop : columns that are not learned.
    labelled : whether there must be a label.
    strict : whether a file may have no columns that nobody asked for.
    """

    def __init__(
        self, model: Any, *, label: str | None = None, weight: str | None = None, keep: Sequence[str] = (),
        drop: Sequence[str] = (), labelled: bool = True, strict: bool = False,
    ) -> None:  # fmt: skip
        self.model, self.label, self.weight, self.keep, self.drop = model, label, weight, list(keep), list(drop)
        self.labelled, self.strict = labelled, strict
        self.features: list[str] | None = self._known
        self.width: int | None = getattr(model, "n_features_in_", None)
        self.kinds: Kinds = {}
        self.source = ""

    @property
    def _known(self) -> list[str] | None:
        names = getattr(self.model, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def open(self, reader: Any) -> None:
        """Begin a file: find its columns, or say what does not fit."""
        self.source = reader.name
        if reader.names is None:
            self._open_unnamed(reader)
        elif reader.names:
            self._open_named(reader.name, reader.names)

    def _open_unnamed(self, reader: Any) -> None:
        asked = [self.label, self.weight, *self.keep, *self.drop]
        if self.features is not None:
            raise InputError(
                f"{reader.name}: LIBSVM has no names of columns, and the model has: {self.features[:5]} ..."
            )
        if any(asked):
            raise InputError(
                f"{reader.name}: LIBSVM has no column {next(filter(None, asked))!r}: its columns have no names"
            )
        if self.width is not None and reader.width > self.width:
            raise InputError(f"{reader.name}: found {reader.width} columns, and the model has {self.width}")
        self.width = self.width or reader.width

    def _open_named(self, name: str, names: list[str]) -> None:
        if self.features is None and self.width is not None:
            raise InputError(
                f"{name}: the columns have names, and the model learned {self.width} columns without: LIBSVM"
            )
        if self.labelled and self.label is None:
            learned = set(self.features or ())
            others = [one for one in names if one not in learned]
            found = [one for one in LABELS if one in others]
            if not found:
                raise InputError(
                    f"{name}: which column is the label? Say --label; there are {shortened(others or names)}"
                )
            self.label = found[0]
        for option, asked in (
            ("label", [self.label]),
            ("weight", [self.weight]),
            ("keep", self.keep),
            ("drop", self.drop),
        ):
            absent = [one for one in asked if one is not None and one not in names]
            if absent:
                raise InputError(f"{name}: there is no column {absent[0]!r} (--{option}); there are {shortened(names)}")
        besides = {self.label, self.weight, *self.drop}
        others = [one for one in names if one not in besides]
        if self.features is None:
            if not others:
                raise InputError(f"{name}: there is no column to learn from")
            self.features = others
        here, learned = set(names), set(self.features)
        missing = [one for one in self.features if one not in here]
        strange = [one for one in others if one not in learned] if self.strict else []
        if missing or strange:
            told = [
                f"{what} {shortened(which)}" for what, which in (("missing", missing), ("unknown", strange)) if which
            ]
            raise InputError(f"{name}: the columns do not match the model's: {', '.join(told)}")

    def begin(self, piece: Piece) -> None:
        """Begin a piece: the kinds that the model knows, or that are pinned; of the rest, as the piece says."""
        if self.features is None:
            return
        report = getattr(self.model, "columns_", None) if hasattr(self.model, "stream_") else None
        kinds: Kinds = {} if report is None else {k: v for k, v in report.kinds.items() if v != "open"}
        kinds = {**dict(columns_of(self.model.columns).kinds), **kinds}
        kinds = {name: "category" if kind == "drop" else kind for name, kind in kinds.items()}
        unknown = [name for name in self.features if name not in kinds]
        told = piece.infer(unknown) if unknown else {}
        self.kinds = {name: kinds.get(name, told.get(name)) for name in self.features}

    def take(self, piece: Piece, low: int, high: int) -> Taken:
        """Rows from ``low`` to before ``high``; ValueError if one is malformed."""
        rows = np.arange(low, high)
        if self.features is None:
            assert self.width is not None
            X, y = piece.rows(low, high, self.width)
            return Taken(X, y, None, None, rows)
        table = piece.table(low, high, self._wanted)
        converter = self._converter
        for name, kind in self._converted.items():
            j = table.schema.get_field_index(name)
            if converter.is_text(table.column(j)):  # all else the model checks itself
                table = table.set_column(j, name, converter.convert(name, kind, table.column(j)))
        return self._taken(table, rows)

    def sift(self, piece: Piece, low: int, high: int) -> tuple[Taken, Faults]:
        """The rows that can be taken, and what is wrong with the others, found for all of them at once."""
        if self.features is None:
            assert self.width is not None
            found = piece.sift_rows(low, high, self.width)
            X, y = found.table or (np.zeros((0, self.width)), np.zeros(0))
            return Taken(X, y, None, None, found.rows), found.faults
        found = piece.sift(low, high, self._wanted)
        table, faults = found.table, dict(found.faults)
        if table is None:
            return Taken(None, None, None, None, found.rows), faults
        for name, kind in self._converted.items():
            j = table.schema.get_field_index(name)

            def alone(place: int, name: str = name, kind: str = kind) -> Any:
                row = int(found.rows[place])
                return piece.table(row, row + 1, {name: kind}).column(0)

            column, said = self._converter.sift(name, kind, table.column(j), alone)
            table = table.set_column(j, name, column)
            _add(faults, found.rows, said)
        if self.weight is not None:
            weights, said = self._weights(piece, table.column(self.weight), found.rows)
            table = table.set_column(table.schema.get_field_index(self.weight), self.weight, [weights])
            _add(faults, found.rows, said)
        keep = np.array([row not in faults for row in found.rows.tolist()], dtype=bool)
        return self._taken(table.filter(keep), found.rows[keep]), faults

    def _weights(self, piece: Piece, column: Any, rows: Array) -> tuple[Array, Faults]:
        """Weights, and what is wrong with some: a value may be a gap among numbers and text among text."""
        name, weights, said = str(self.weight), np.zeros(len(rows)), Faults()

        def attempt(low: int, high: int) -> None:
            weights[low:high] = _numbers(name, column.slice(low, high - low))

        for place in each(len(rows), attempt):
            row = int(rows[place])
            try:
                weights[place] = _numbers(name, piece.table(row, row + 1, {name: "number"}).column(0))[0]
            except REFUSED as error:
                said[place] = message_of(error)
        return weights, said

    @property
    def _wanted(self) -> Kinds:
        """All columns that are read."""
        besides: Kinds = {name: "category" for name in [self.label, *self.keep] if name is not None}
        if self.weight is not None:
            besides[self.weight] = "number"
        return {**besides, **self.kinds}

    @property
    def _converted(self) -> dict[str, str]:
        """The columns whose values must be of a kind."""
        dropped = {name for name, kind in dict(columns_of(self.model.columns).kinds).items() if kind == "drop"}
        return {name: kind for name, kind in self.kinds.items() if kind in CONVERTED and name not in dropped}

    @property
    def _converter(self) -> Converter:
        started = getattr(self.model, "stream_", None)
        dtype = self.model.dtype if started is None else started.model.dtype
        return Converter(columns_of(self.model.columns).on_text, dtype)

    def _taken(self, table: Any, rows: Array) -> Taken:
        weight = None if self.weight is None else _numbers(self.weight, table.column(self.weight))
        label = None if self.label is None else table.column(self.label)
        if label is not None and label.type.num_fields:  # lists and the like
            raise InputError(f"{self.source}: the label {self.label!r} holds {label.type}, not numbers or text")
        return Taken(table.select(self.features), label, weight, table.select(self.keep), rows)


def _add(faults: Faults, rows: Array, said: Faults) -> None:
    """What is wrong with values is wrong with their rows; the first that was found is said."""
    for place, text in said.items():
        faults.setdefault(int(rows[place]), text)


def shortened(names: Sequence[str]) -> str:
    """Names; of very many the first ones and the last, which may be the label.

    >>> shortened("abc")
    "'a', 'b', 'c'"
    >>> shortened([f"c{j}" for j in range(1000)])[-27:]
    "'c18', 980 more, and 'c999'"
    """
    if len(names) <= MOST_NAMED:
        return ", ".join(map(repr, names))
    shown = names[: MOST_NAMED // 2 - 1]
    return f"{', '.join(map(repr, shown))}, {len(names) - len(shown) - 1:,} more, and {names[-1]!r}"


def _numbers(name: str, column: Any) -> Array:
    try:
        made = np.asarray(column.cast("float64").to_numpy(zero_copy_only=False), dtype=float)
    except Exception as error:
        raise ValueError(f"the weight {name!r} is no number: {str(error).splitlines()[0]}") from None
    if np.isnan(made).any():
        raise ValueError(f"the weight {name!r} is missing")
    return made
