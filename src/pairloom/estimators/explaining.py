"""Reasons: the contributions of columns to the scores of an estimator."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from pairloom.base.checks import check_count
from pairloom.base.csr import is_sparse
from pairloom.base.parallel import several_threads
from pairloom.base.typing import Array
from pairloom.columns.incoming import named_columns, one_row, table_by_position
from pairloom.columns.loops import DATE
from pairloom.columns.newest import N_NEWEST
from pairloom.estimators.base import StreamEstimator
from pairloom.estimators.column_changes import names_of
from pairloom.explain.explanation import DEFAULT_TOP, Explanation, joined
from pairloom.explain.sentences import Cells
from pairloom.explain.shapley import shapley_values, with_sum


class Target(NamedTuple):
    """An explained score, ``factor`` times the score ``column`` of the stream plus ``shift``.

    ``others``: the codes of the classes whose rows are its background.
    """

    column: int
    factor: float
    shift: float
    others: Array


class ReadRows(NamedTuple):
    """Valid rows: as numbers, encoded for the stream, and the texts of categories by column."""

    numbers: Array
    rows: Array
    texts: list[list[str | None] | None]


class ExplainedEstimator(StreamEstimator):
    """Base class of estimators: which columns make the score of a row what it is.

    Attributes
    ----------
    feature_importances_ : ``importance`` in the order of the columns, with sum 1.
    """

    def explain(
        self, X: Any, background: Any = N_NEWEST, top: int | None = None, *, label: Any = None, seed: int = 0
    ) -> Explanation:
        r"""Explain scores by the contributions of the columns, compared with background rows.

        The contributions of a row are Shapley values (:class:`~pairloom.features.contributions.Explainable`): the mean
        change of the score when a column changes from its value in a background row to that in the row, over all orders
        in which columns can change. They add up to the score of the row minus the mean score of the background. All
        features of a column, such as the parts of a date, are changed at once. Linear models, trees, kernels at
        landmarks or kept rows, and mixtures of these are explained exactly; for other features, such as random Fourier
        features, the values are means over random orders, with standard errors in ``error``. In a mixture, see
        :class:`~pairloom.race.mixture_sum.MixtureSum` for scores that are clipped.

        Parameters
        ----------
        X
            Rows as for ``predict``, or one row as a mapping from column names to values.
        background
            Number of background rows, at most 32: the newest rows of the other classes, or of all rows without classes.
            Or the rows themselves.
        top
            Number of reasons that the methods of the result show; None is 4.
        label
            Class whose score is explained. None: ``pos_label``, or ``classes_[1]`` of two classes, or the predicted
            class of each row.
        seed
            Seed of the random orders.

        Notes
        -----
        Cost: :class:`~pairloom.AUCClassifier` takes a few milliseconds per row of 20 columns.

        Examples
        --------
        >>> from pairloom.systems import ExactAUC
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(500, 3))
        >>> reasons = ExactAUC().fit(X, X[:, 0] - X[:, 2] > 1).explain([[2.0, 0.0, -1.0]], top=2)
        >>> reasons.top_columns()
        [['x0', 'x2']]
        >>> bool(np.allclose(reasons.values.sum(axis=1), reasons.scores - reasons.base))
        True
        """
        check_is_fitted(self)
        n_top = DEFAULT_TOP if top is None else top
        check_count("top, if not None,", n_top)
        given = None if isinstance(background, (int, np.integer)) else self._read(background)
        if given is None:
            check_count("background, if not rows,", background)
            if background > N_NEWEST:
                raise ValueError(f"a model keeps {N_NEWEST} rows of each class; got background={background}: pass rows")
        read, parts = self._read(X), []
        for one, places in self._labels_to_explain(read.rows, label):
            part = ReadRows(read.numbers[places], read.rows[places], [_some(own, places) for own in read.texts])
            target = self._target_of(one)
            usual = self._background(target, background) if given is None else given
            parts.append((places, self._explained(part, usual, one, target, n_top, seed)))
        return joined(parts, len(read.rows))

    def importance(self, X: Any = None, background: Any = N_NEWEST) -> dict[str, float]:
        """Return the mean absolute contribution of each column to the scores of rows, the largest first.

        ``X``: rows; None: the newest 32 rows of each class, which the model keeps. ``background`` is as in
        :meth:`explain`. scikit-learn's ``permutation_importance`` answers another question, how much worse the ranking
        becomes without a column; it needs labels, and takes as many passes over the rows as there are columns.
        """
        check_is_fitted(self)
        if X is not None:
            return self.explain(X, background).importance()
        if self._newest is None:
            raise ValueError(NO_ROWS.format("X=rows and background=rows"))
        codes = np.arange(len(self._newest.counts))
        numbers = self._newest.newest(codes, N_NEWEST * len(codes))
        read = ReadRows(numbers, self._encoded(numbers), [None] * numbers.shape[1])
        given = None if isinstance(background, (int, np.integer)) else self._read(background)
        parts = []
        for one, places in self._labels_to_explain(read.rows, None):
            part, target = ReadRows(numbers[places], read.rows[places], read.texts), self._target_of(one)
            usual = self._background(target, background) if given is None else given
            parts.append((places, self._explained(part, usual, one, target, DEFAULT_TOP, 0)))
        return joined(parts, len(numbers)).importance()

    @property
    def feature_importances_(self) -> Array:
        """``importance`` in the order of the columns, with sum 1 unless all are 0."""
        found = self.importance()
        values = np.array([found[name] for name in names_of(self)])
        return values / (values.sum() or 1.0)

    @abstractmethod
    def _labels_to_explain(self, rows: Array, label: Any) -> Sequence[tuple[Any, Array]]:
        """Return the labels whose scores are explained, each with the places of its rows."""

    @abstractmethod
    def _target_of(self, label: Any) -> Target:
        """Return the score of a class; of rows without classes, the prediction."""

    @property
    def _explain_threads(self) -> int | None:
        """Number of threads, as in ``n_jobs``."""
        return 1

    def _explained(
        self, read: ReadRows, usual: Array | ReadRows, label: Any, target: Target, top: int, seed: int
    ) -> Explanation:
        numbers, rows = (usual.numbers, usual.rows) if isinstance(usual, ReadRows) else (usual, self._encoded(usual))
        names = names_of(self)
        encoder = self._encoder
        players = np.arange(len(names)) if encoder is None else encoder.state.sources
        with several_threads(self._explain_threads if len(read.rows) > 1 else 1):
            values, error, scores = shapley_values(
                self.stream_, read.rows, rows, players, len(names), target.column, seed
            )
        n, factor = len(read.rows), target.factor
        scores = factor * scores.astype(float) + target.shift
        base = float(scores[n:].mean())
        dates = [False] * len(names) if encoder is None else [kind == DATE for kind in encoder.state.plain_kinds]
        return Explanation(
            names, with_sum(factor * values, scores[:n] - base), np.full(n, base), scores[:n], abs(factor) * error,
            None if label is None else [label] * n, _hash(names, numbers), top,
            Cells(read.numbers, [numbers] * n, read.texts, dates),
        )  # fmt: skip

    def _background(self, target: Target, n: int) -> Array:
        """Return the newest rows of the other classes, as numbers."""
        if self._newest is None:
            raise ValueError(NO_ROWS.format("background=rows"))
        numbers = self._newest.newest(target.others, n)
        if not len(numbers):
            raise ValueError("the model has not learned a row of another class yet: pass typical rows, background=rows")
        return numbers

    def _read(self, X: Any) -> ReadRows:
        """Validate rows, with the columns of the model."""
        encoder = self._encoder
        if encoder is None:
            rows: Any = self._row(X) if isinstance(X, Mapping) and not is_sparse(X) else self._rows_to_score(X)
            rows = rows.toarray() if is_sparse(rows) else rows
            return ReadRows(rows.astype(float), rows, [None] * rows.shape[1])
        dtype, one = self.stream_.model.dtype, isinstance(X, Mapping) and not is_sparse(X)
        if one:
            values = encoder.readable(one_row(encoder, X), dtype)
        else:
            table = named_columns(X, encoder.part, encoder)
            if table is None:
                table = table_by_position(encoder, self._rows_to_score(X))
            else:
                validate_data(self, X, reset=False, skip_check_array=True)
            values = encoder.readable(table, dtype)
        columns = [[own] for own in values.columns] if one else values.columns
        numbers = encoder.numbers(values)
        texts: list[list[str | None] | None] = []
        for kind, own in zip(encoder.state.kind_names.values(), columns, strict=True):
            texts.append(list(own) if kind == "category" else None)
        return ReadRows(numbers, encoder.encode_numbers(numbers, dtype), texts)

    def _encoded(self, numbers: Array) -> Array:
        """Return rows given as numbers, encoded for the stream."""
        dtype = self.stream_.model.dtype
        return numbers.astype(dtype) if self._encoder is None else self._encoder.encode_numbers(numbers, dtype)


def importance_shown(model: ExplainedEstimator) -> list[tuple[str, float]]:
    """Return columns and their shares in the importance of all, the largest first, for pages and reports.

    Empty where the importance would be sampled, which takes long, and while there is nothing to compare with.
    """
    stream = model.stream_
    if stream.state is None or model._newest is None or (model._newest.counts > 0).sum() < len(model._newest.counts):
        return []
    if stream.model.explainable(stream.learned) is None:
        return []
    found = model.importance(background=SHOWN_BACKGROUND)
    total = sum(found.values())
    return [(name, value / total) for name, value in found.items()] if total > 0 else []


SHOWN_BACKGROUND = 8
"""Background rows of ``importance_shown``."""

NO_ROWS = (
    "this model keeps no rows to compare with: it has too many columns and classes, or its file is from an earlier "
    "version and it has not learned since: pass typical rows, {}"
)


def _some(texts: list[str | None] | None, places: Array) -> list[str | None] | None:
    return None if texts is None else [texts[i] for i in places.tolist()]


def _hash(names: list[str], numbers: Array) -> str:
    """Return a hash of background rows."""
    digest = blake2b("\0".join(names).encode(errors="replace"), digest_size=8)
    digest.update(np.where(np.isnan(numbers), np.nan, numbers + 0.0).tobytes())
    return digest.hexdigest()
