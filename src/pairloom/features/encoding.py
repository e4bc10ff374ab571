"""Compact rows as models need them: statistics of categories, and missing values filled in."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, get_args

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.capabilities import decay_factors
from pairloom.base.checks import check_choice, check_count
from pairloom.base.compact import CODE, DATE_PART, NUMBER, Form
from pairloom.base.graph import Value, joined
from pairloom.base.merging import added
from pairloom.base.spec import StateSpec, WrongState
from pairloom.base.tree import copy, node
from pairloom.base.typing import Array
from pairloom.features.encoding_loops import encode_rows

FIRST_CODES = 16
"""Entries of a column for which there is room at first."""


@node
class EncodingState:
    """What is known about the columns.

    ``sums``: for each category, one column after the other, the weight of its rows, and for each target the weight of
    the rows with it (for real labels the weighted sum); the first entry of a column is for missing values, entry 1 + k
    for code k. ``offsets``: the first entry of each column, and the end. ``totals``: the same sums of all rows, and
    their number. ``numbers``: for each number the weight and the weighted sum of its values, and how many are missing.
    """

    sums: Annotated[Array, "f8 _r _w finite"]
    offsets: Annotated[Array, "i8 _o 0:_r+1"]
    totals: Annotated[Array, "f8 _k finite"]
    numbers: Annotated[Array, "f8 3 _m finite"]

    def check(self) -> None:
        if self.sums.shape[1] < 2 or len(self.totals) != self.sums.shape[1] + 1 or not len(self.offsets):
            raise WrongState("must have a sum for each target", "sums")
        if self.offsets[0] or self.offsets[-1] != len(self.sums) or (np.diff(self.offsets) < FIRST_CODES).any():
            raise WrongState("must be in order", "offsets")
        if (self.totals[0] > 0) != (self.totals[-1] > 0):
            raise WrongState("must have a weight and a number of rows", "totals")
        if (self.sums[:, 0] < 0).any() or (self.totals[[0, -1]] < 0).any() or (self.numbers[[0, 2]] < 0).any():
            raise WrongState("must not be negative", "sums")

    def grow(self, needed: Array) -> None:
        """Make room for these numbers of entries in each column: the next power of two."""
        sizes = np.diff(self.offsets)
        larger = [max(s, 1 << int(n - 1).bit_length()) for s, n in zip(sizes.tolist(), needed.tolist(), strict=True)]
        offsets = np.concatenate([[0], np.cumsum(larger)]).astype(np.int64)
        if offsets[-1] == self.offsets[-1]:
            return
        sums = np.zeros((int(offsets[-1]), self.sums.shape[1]))
        for j, size in enumerate(sizes.tolist()):
            sums[offsets[j] : offsets[j] + size] = self.sums[self.offsets[j] : self.offsets[j + 1]]
        self.sums, self.offsets = sums, offsets

    def forget(self, keep: float) -> None:
        """Multiply the weight of the rows so far by ``keep``."""
        factor = decay_factors(self.totals[:1], keep)
        self.sums *= factor
        self.totals *= factor


@dataclass(frozen=True)
class Encoding:
    r"""Rows with one number per column, as models need them; a row is encoded with what was known before it.

    Category c of a column is represented, for each target, by the log-odds of the target among the rows with this
    category, relative to those among all rows,

    .. math::

        \log \frac{p_c}{1 - p_c} - \log \frac{q}{1 - q}, \qquad p_c = \frac{n^+_c + a q}{n_c + a},

    where q is the share of the target among all rows, and a = max(10, 2 / min(q, 1 - q)) rows; with real labels, by
    their smoothed mean, relative to the mean of all rows. A missing category is a category. A missing number is
    replaced by the mean of the column so far; an indicator marks it once there are 256 missing values.

    Parameters
    ----------
    kinds : a letter for each column: "n" number, "p" further part of a date, "c" code of a category.
    targets : the classes with a score of their own; empty for real labels.
    form : "numbers" for linear and kernel models, without missing values; "trees": the numbers as they are, and the
        statistics of categories; "codes": categories as codes, then the numbers as they are; "all": everything, of
        which each model of a race reads its form.
    n_codes : the maximum number of codes of a column; larger codes are unknown categories.

    Cost: about a microsecond for a row of 15 columns; 8 (1 + targets) bytes for each category.

    >>> Encoding("nc", (1.0,), "trees").width
    2
    """

    kinds: str
    targets: tuple[float, ...]
    form: Form
    n_codes: int = 5120

    def __post_init__(self) -> None:
        check_choice("form", self.form, Form)
        check_count("n_codes", self.n_codes)
        if not self.kinds or set(self.kinds) - {NUMBER, DATE_PART, CODE}:
            raise ValueError(f"kinds must consist of the letters n, p and c; got {self.kinds!r}")

    @cached_property
    def codes(self) -> Array:
        """The columns that are categories."""
        return np.array([j for j, kind in enumerate(self.kinds) if kind == CODE], np.int64)

    @cached_property
    def values(self) -> Array:
        """The columns that are not categories."""
        return np.array([j for j, kind in enumerate(self.kinds) if kind != CODE], np.int64)

    @cached_property
    def indicators(self) -> Array:
        """For each column in ``values``, the place of its missing indicator; -1 without one."""
        marked = np.array([self.kinds[j] == NUMBER for j in self.values.tolist()], bool)
        return np.where(marked, np.cumsum(marked) - 1, -1)

    @cached_property
    def _targets(self) -> Array:
        return np.array(self.targets)

    @property
    def n_targets(self) -> int:
        """Number of statistics of a category."""
        return max(1, len(self.targets))

    @property
    def categories(self) -> tuple[int, ...]:
        """The columns of the form "codes" that are categories."""
        return tuple(range(len(self.codes)))

    def columns(self, form: Form) -> slice:
        """Return the part of a row in the form "all" that is the row in another form."""
        return self._parts[form]

    @cached_property
    def _parts(self) -> dict[str, slice]:
        c, m = len(self.codes), len(self.values)
        end = c + 2 * m + c * self.n_targets + int((self.indicators >= 0).sum())
        starts = {"codes": (0, c + m), "trees": (c, c + m + c * self.n_targets), "numbers": (c + m, end)}
        return {form: slice(*starts.get(form, (0, end))) for form in get_args(Form)}

    @cached_property
    def sources(self) -> Array:
        """The column that each feature of a row comes from."""
        marked = self.values[self.indicators >= 0]
        parts = (self.codes, self.values, np.repeat(self.codes, self.n_targets), self.values, marked)
        return np.concatenate(parts)[self.columns(self.form)]

    def part(self, X: Array, form: Form) -> Array:
        """Return another form of rows in the form "all"."""
        return np.ascontiguousarray(X[:, self.columns(form)])

    def width_of(self, form: Form) -> int:
        """Return the number of features of a form."""
        part = self.columns(form)
        return int(part.stop - part.start)

    @property
    def width(self) -> int:
        """Number of features of an encoded row."""
        return self.width_of(self.form)

    def init(self) -> EncodingState:
        """Return the state before the first row."""
        c, v = len(self.codes), self.n_targets
        numbers = np.zeros((3, len(self.values)))
        return EncodingState(
            np.zeros((FIRST_CODES * c, 1 + v)), FIRST_CODES * np.arange(c + 1), np.zeros(2 + v), numbers
        )

    def learn(self, state: EncodingState, batch: Batch) -> Batch:
        """Return encoded rows, each with the statistics of earlier rows, and learn them."""
        if len(self.codes):
            largest = np.fmax.reduce(batch.X[:, self.codes], axis=0, initial=0.0)
            needed = 2 + np.minimum(largest, self.n_codes - 1)
            if (needed > state.offsets[1:] - state.offsets[:-1]).any():
                state.grow(needed.astype(np.int64))
        hits = batch.y[:, None] == self._targets if self.targets else batch.y[:, None]
        return replace(batch, X=self._encoded(state, batch.X, hits.astype(float), batch.weight))

    def encode(self, state: EncodingState, X: Array) -> Array:
        """Return encoded rows."""
        return self._encoded(state, X, np.zeros((0, self.n_targets)), np.zeros(0))

    def to_onnx(self, state: EncodingState, x: Value) -> Value:
        """Return encoded rows in an ONNX graph."""
        codes, values = x.take(self.codes), x.take(self.values)
        dtype, marks = np.dtype(x.dtype), np.flatnonzero(self.indicators >= 0)
        unknown = np.full((1, len(self.kinds)), np.nan, dtype)
        means = replace(self, form="numbers").encode(state, unknown)[:, len(self.codes) * self.n_targets :]
        filled, used = means[:, : len(self.values)], means[:, len(self.values) :]
        missing = values.isnan().to(x.dtype).take(marks) * used
        pieces = [codes, values, self._effects_onnx(state, codes), values.filled(filled), missing]
        sizes = [len(self.codes), len(self.values), len(self.codes) * self.n_targets, len(self.values), len(marks)]
        chosen = {"codes": slice(0, 2), "trees": slice(1, 3), "numbers": slice(2, 5)}.get(self.form, slice(0, 5))
        return joined([piece for piece, size in zip(pieces[chosen], sizes[chosen], strict=True) if size])

    def part_onnx(self, x: Value, form: Form) -> Value:
        """Return ``part`` in an ONNX graph."""
        part = self.columns(form)
        return x.take(np.arange(part.start, part.stop))

    def _effects_onnx(self, state: EncodingState, codes: Value) -> Value:
        """Return the statistics of categories, looked up in a table with a row for NaN, -1, and each code."""
        c = len(self.codes)
        known = int(np.diff(state.offsets).max(initial=0))
        rows = np.full((known + 3, len(self.kinds)), np.nan, codes.dtype)
        rows[1:, self.codes] = np.arange(-1, known + 1)[:, None]
        table = replace(self, form="numbers").encode(state, rows)[:, : c * self.n_targets]
        places = codes.isnan().where(codes._operand(-2.0), codes).clip(-2.0, known) + 2.0
        starts = len(rows) * np.arange(c)
        found = (places.to("i8") + starts).rows_of(by_column(table, c, self.n_targets), codes.dtype)
        return found.reshape(-1, c * self.n_targets)

    def effects(self, state: EncodingState, column: int, names: list[str], n: int = 5) -> dict[str, float]:
        """Return the n categories of a column that matter most, with their log-odds relative to all rows.

        ``names``: of the codes 0, 1, ...; with several targets, the largest value of each category counts.
        """
        rows = np.full((len(names), len(self.kinds)), np.nan)
        rows[:, column] = np.arange(len(names))
        first = len(self.codes) + len(self.values) + int(np.searchsorted(self.codes, column)) * self.n_targets
        values = replace(self, form="all").encode(state, rows)[:, first : first + self.n_targets]
        largest = values[np.arange(len(values)), np.abs(values).argmax(axis=1)]
        order = np.argsort(-np.abs(largest), kind="stable")[:n]
        return {names[k]: float(largest[k]) for k in order.tolist() if largest[k]}

    def recode(self, state: EncodingState, codes: dict[int, Array]) -> None:
        """Move the sums of categories to new codes; ``codes``: for the k-th category column, that of each old code."""
        needed = np.diff(state.offsets)
        for k, new in codes.items():
            needed[k] = max(int(needed[k]), 2 + int(new.max(initial=0)))
        state.grow(needed)
        for k, new in codes.items():
            own = state.sums[state.offsets[k] + 1 : state.offsets[k + 1]]
            before = own[: len(new)].copy()
            own[: len(new)] = 0.0
            np.add.at(own, new, before)

    def merge(self, base: EncodingState, parts: Sequence[EncodingState]) -> EncodingState:
        """Return the sums of all rows."""
        states = [copy(one) for one in (base, *parts)]
        sizes = np.max([np.diff(one.offsets) for one in states], axis=0) if len(self.codes) else np.zeros(0, np.int64)
        for one in states:
            one.grow(sizes)
        first, *others = states
        sums, totals, numbers = (
            added(getattr(first, name), [getattr(one, name) for one in others])
            for name in ("sums", "totals", "numbers")
        )
        return EncodingState(sums, first.offsets, totals, numbers)

    def state_spec(self) -> StateSpec:
        """Return the specification of the state."""
        return StateSpec(EncodingState, check=self._check)

    def _check(self, state: EncodingState) -> None:
        if len(state.offsets) != len(self.codes) + 1 or state.numbers.shape[1] != len(self.values):
            raise WrongState("must be of the columns of the model")
        if state.sums.shape[1] != 1 + self.n_targets:
            raise WrongState("must have a sum for each target", "sums")

    def _encoded(self, state: EncodingState, X: Array, hits: Array, weight: Array) -> Array:
        out = np.empty((len(X), self.width_of("all")), X.dtype)
        # Offsets before sums: another thread may be growing the table, and sums are replaced first.
        columns = self.codes, self.values, self.indicators, state.offsets
        arrays = state.sums, state.totals, state.numbers
        encode_rows(X, hits, weight, columns, bool(self.targets), arrays, out)
        return out if self.form == "all" else self.part(out, self.form)


def by_column(table: Array, c: int, n_targets: int) -> Array:
    """Return a table (entries, columns x targets) as one table (columns x entries, targets)."""
    return table.reshape(len(table), c, n_targets).transpose(1, 0, 2).reshape(-1, n_targets)
