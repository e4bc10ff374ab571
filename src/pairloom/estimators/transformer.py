"""Every feature map as a scikit-learn transformer."""

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from pairloom.base.batch import Batch
from pairloom.base.checks import check_choice
from pairloom.base.interrupts import Unbroken
from pairloom.base.randomness import fresh_seed, generator, next_seed, seed_of
from pairloom.base.threads import on_one_thread
from pairloom.base.tree import cast
from pairloom.base.typing import Array
from pairloom.base.validation import checked_rows
from pairloom.features import FeatureMap, RandomFourier
from pairloom.features.choice import chosen_map
from pairloom.features.growing import refuse_growing
from pairloom.models.base import Dtype


class FeatureTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """phi(X), for pipelines of scikit-learn.

    A map is fixed once: its rules on data ("median", a scaling) from all rows of the first call, its frequencies from
    ``random_state``.

    Parameters
    ----------
    features : the map; None is RandomFourier().
    dtype : of the output, "float32" or "float64".
    random_state : of the random frequencies: None takes fresh ones, never the global generator's.

    Attributes
    ----------
    state_ : the arrays that make the map a function.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Cost: that of the map, and the bytes of its output.

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from pairloom.features import Gaussian
    >>> X = np.random.default_rng(1).normal(size=(500, 2))
    >>> y = (X ** 2).sum(axis=1) > 2
    >>> phi = FeatureTransformer(RandomFourier(64, Gaussian("median")), random_state=0)
    >>> bool(make_pipeline(phi, LogisticRegression()).fit(X, y).score(X, y) > 0.95)
    True
    """

    state_: Any
    _features: FeatureMap

    def __init__(self, features: FeatureMap | None = None, *, dtype: Dtype = "float32", random_state: Any = None):
        self.features = features
        self.dtype = dtype
        self.random_state = random_state

    @on_one_thread
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fix the map's rules on X, dense or CSR, and draw its frequencies; y is for a map that is grown by labels."""
        features = chosen_map(self.features, RandomFourier())
        refuse_growing(features, "FeatureTransformer")
        check_choice("dtype", self.dtype, Dtype)
        rows = checked_rows(X, self.dtype, partial(check_array, estimator=self), nan=features.takes_nan)
        seed = next_seed(self.random_state)
        rng = generator(fresh_seed() if seed is None else seed)
        state = features.fix(rows.shape[1], rows, rng) if y is None else features.fix_on(*_labelled(rows, y), rng)
        # Nothing is changed before all that may raise is done.
        state = cast(state, self.dtype)
        with Unbroken():
            validate_data(self, X, skip_check_array=True)
            seed_of(self.random_state)
            self._features, self.state_ = features, state
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Fix the map on X if this is the first call; later calls only check X.

        A map is fixed before learning and never changed by it: rows mapped earlier stay comparable with later ones.
        """
        if not hasattr(self, "state_"):
            return self.fit(X, y)
        self._rows_as_fitted(X)
        return self

    @on_one_thread
    def transform(self, X: Any) -> Array:
        """phi(X), of shape (n, D): CSR for a sparse map, and for the linear ones if X is CSR; a row sees no others."""
        check_is_fitted(self)
        return self._features.apply(self.state_, self._rows_as_fitted(X))

    @property
    def _n_features_out(self) -> int:
        return self._features.n_outputs(self.n_features_in_)

    def _rows_as_fitted(self, X: Any) -> Any:
        """X as finite rows, with the columns that ``fit`` saw."""
        check = partial(validate_data, self, reset=False)
        return checked_rows(X, self.dtype, check, nan=self._features.takes_nan)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = getattr(self.features, "takes_nan", False)
        tags.transformer_tags.preserves_dtype = [self.dtype]
        return tags


def _labelled(rows: Any, y: Any) -> tuple[int, Batch]:
    """The number of columns, and rows with labels: numbers, or codes of classes."""
    y = column_or_1d(y)
    check_consistent_length(rows, y)
    codes = y if y.dtype.kind == "f" else np.unique(y, return_inverse=True)[1]
    return rows.shape[1], Batch(rows, codes, np.ones(len(y)), np.zeros(len(y), np.int64))
