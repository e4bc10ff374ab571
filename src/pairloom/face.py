"""What every estimator over a learner shares: rows in, one at a time or many, and counters out."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from pairloom.card import Card
from pairloom.checks import check_choice
from pairloom.onepass import Dtype, OnePass
from pairloom.state import LOSS, PAIRS, STEPS, State, nbytes
from pairloom.typing import Array
from pairloom.validation import check_finite, checked_rows, named_row, row_of


class Face(BaseEstimator, ABC):
    """An estimator whose model is a :class:`~pairloom.onepass.OnePass`.

    Rows are a dense array, CSR or a data frame; one row is a sequence or a mapping from column names. Nothing here
    changes the model but ``_remember_columns``.
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}}
    """Parameters of the published forms of a system, by what is added to its name; each is tested and tabulated."""

    dtype: Dtype
    random_state: Any
    learner_: OnePass

    @property
    @abstractmethod
    def card(self) -> Card:
        """Its line in the table of systems."""

    @property
    def n_seen_(self) -> int:
        """Rows learned."""
        return self._state.t

    @property
    def n_pairs_(self) -> int:
        """Pairs the model has learned from."""
        return int(self._state.tally[PAIRS])

    @property
    def loss_(self) -> float:
        """Mean loss of the rows against their partners, each taken before its step; NaN before the first."""
        steps = self._state.tally[STEPS]
        return float(self._state.tally[LOSS] / steps) if steps else float("nan")

    @property
    def nbytes_(self) -> int:
        """Bytes of all arrays that the model holds."""
        check_is_fitted(self)
        return nbytes(self.learner_)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = str(super().__repr__(N_CHAR_MAX=N_CHAR_MAX))
        if not self._started:
            return text
        seen = f"{self.n_seen_:,} rows, {self.n_pairs_:,} pairs, loss {self.loss_:.4g}, {self.nbytes_ / 1e6:.3g} MB"
        return f"{text}  # {seen}"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def _started(self) -> bool:
        return hasattr(self, "learner_")

    @property
    def _state(self) -> State:
        check_is_fitted(self)
        state: State | None = self.learner_.state
        assert state is not None
        return state

    def _row(self, x: Any) -> Array:
        """One example as a valid (1, d) array of the model's dtype."""
        if self._started:
            return row_of(x, self.n_features_in_, getattr(self, "feature_names_in_", None), self.learner_.dtype)
        check_choice("dtype", self.dtype, Dtype)
        x = named_row(x)
        if isinstance(x, Mapping) and not all(isinstance(name, str) for name in x):
            raise ValueError(f"the columns of a row given as a mapping must be named by text, got {list(x)}")
        return row_of(x, None, list(x) if isinstance(x, Mapping) else None, self.dtype)

    def _rows_to_learn(self, X: Any, *, first: bool) -> Any:
        """Valid rows, dense or CSR; unless it is the first call, with the columns that the model knows."""
        check_choice("dtype", self.dtype, Dtype)
        dtype = self.dtype if first else self.learner_.dtype
        if not first and self._is_plain(X):
            rows = X
            check_finite(rows, dtype)
        else:
            rows = checked_rows(X, dtype, partial(check_array, estimator=self))
            if not first:
                validate_data(self, X, reset=False, skip_check_array=True)
        return rows

    def _rows_to_score(self, X: Any) -> Any:
        """Valid rows with the columns that the model knows."""
        check_is_fitted(self)
        return checked_rows(X, self.learner_.dtype, partial(validate_data, self, reset=False))

    def _is_plain(self, X: Any) -> bool:
        """Whether rows need no more than a check for finite values.

        scikit-learn's validation costs as much as learning a hundred rows.
        """
        return (
            type(X) is np.ndarray
            and X.dtype in (np.float32, np.float64)
            and X.ndim == 2
            and len(X) > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        )

    def _remember_columns(self, x: Any, n_features: int) -> None:
        """Take the number and the names of the columns from the first row, given alone."""
        self.n_features_in_ = n_features
        x = named_row(x)
        if isinstance(x, Mapping):
            self.feature_names_in_ = np.asarray(list(x), dtype=object)
