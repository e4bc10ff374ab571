"""Feature maps as scikit-learn transformers."""

from functools import partial
from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from pairloom.base.batch import Batch
from pairloom.base.checks import check_choice
from pairloom.base.interrupts import DeferredSignals
from pairloom.base.randomness import fresh_seed, generator, next_seed, seed_of
from pairloom.base.saving import CHANGED_AFTER_FIT, Savable, StateReader, checked_names
from pairloom.base.spec import StateSpec
from pairloom.base.threads import on_one_thread
from pairloom.base.tree import cast
from pairloom.base.typing import Array
from pairloom.base.validation import checked_rows
from pairloom.features import FeatureMap, RandomFourier
from pairloom.features.base import chosen_map
from pairloom.features.capabilities import check_not_growing, fix_features
from pairloom.models.base import Dtype, code_of


class FeatureTransformer(Savable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Transform rows by any feature map: phi(X), for scikit-learn pipelines.

    The map is fitted once: parameters that depend on data ("median", a scaling) are fitted to all rows of the first
    call, and random frequencies are drawn with ``random_state``.

    Parameters
    ----------
    features : the feature map; None is RandomFourier().
    dtype : type of the output, "float32" or "float64".
    random_state : seed of the random frequencies; None for a fresh seed.

    Attributes
    ----------
    state_ : the arrays of the fitted map.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Notes
    -----
    Cost: that of the map, and the bytes of its output.

    Examples
    --------
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
        """Fit the map to X, dense or CSR. Labels y are for maps that use them, such as a forest."""
        features = chosen_map(self.features, RandomFourier())
        check_not_growing(features, "FeatureTransformer")
        check_choice("dtype", self.dtype, Dtype)
        rows = checked_rows(X, self.dtype, partial(check_array, estimator=self), nan=features.takes_nan)
        seed = next_seed(self.random_state)
        rng = generator(fresh_seed() if seed is None else seed)
        d = rows.shape[1]
        state = features.fix(d, rows, rng) if y is None else fix_features(features, d, _labelled(rows, y), rng)
        # Run everything that may raise before changing any attribute.
        state = cast(state, self.dtype)
        with DeferredSignals():
            validate_data(self, X, skip_check_array=True)
            seed_of(self.random_state)
            self._features, self.state_ = features, state
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Fit the map to X in the first call; later calls only validate X.

        The map stays fixed, so that all rows are mapped alike.
        """
        if not hasattr(self, "state_"):
            return self.fit(X, y)
        self._rows_as_fitted(X)
        return self

    @on_one_thread
    def transform(self, X: Any) -> Array:
        """Return phi(X) of shape (n, D): CSR for a sparse map, and for linear maps if X is CSR."""
        check_is_fitted(self)
        return self._features.apply(self.state_, self._rows_as_fitted(X))

    def _saved_params(self) -> dict[str, Any]:
        params: dict[str, Any] = self.get_params(deep=False)
        return params

    def _saved_state(self) -> tuple[Any, list[str] | None]:
        if not hasattr(self, "state_"):
            return None, None
        if chosen_map(self.features, RandomFourier()) != self._features:
            raise ValueError(CHANGED_AFTER_FIT.format("FeatureTransformer"))
        names = getattr(self, "feature_names_in_", None)
        state = {"n_features": self.n_features_in_, "map": self.state_}
        return state, None if names is None else list(map(str, names))

    def _state_spec(self, reader: StateReader) -> StateSpec:
        features, d = (
            chosen_map(self.features, RandomFourier()),
            reader.read_early("n_features", Annotated[int, "1:room+1"]),
        )
        parts = {"n_features": StateSpec(int), "map": features.state_spec(d, 0, 1)}
        return StateSpec(Annotated[Any, "@all"], {"R": code_of(self.dtype)}, {"all": parts})

    def _restored(self, state: dict[str, Any], names: Any) -> Self:
        self._features = chosen_map(self.features, RandomFourier())
        self.n_features_in_, self.state_ = state["n_features"], state["map"]
        columns = checked_names(names, self.n_features_in_)
        if columns is not None:
            self.feature_names_in_ = np.asarray(columns, dtype=object)
        return self

    @property
    def _n_features_out(self) -> int:
        return self._features.n_outputs(self.n_features_in_)

    def _rows_as_fitted(self, X: Any) -> Any:
        """Validate rows with the columns seen by ``fit``."""
        check = partial(validate_data, self, reset=False)
        return checked_rows(X, self.dtype, check, nan=self._features.takes_nan)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = getattr(self.features, "takes_nan", False)
        tags.transformer_tags.preserves_dtype = [self.dtype]
        return tags


def _labelled(rows: Any, y: Any) -> Batch:
    """Return rows with labels: numbers, or codes of classes."""
    y = column_or_1d(y)
    check_consistent_length(rows, y)
    codes = y if y.dtype.kind == "f" else np.unique(y, return_inverse=True)[1]
    return Batch(rows, codes, np.ones(len(y)), np.zeros(len(y), np.int64))
