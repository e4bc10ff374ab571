"""Base classes of the systems: linear models of features, and sums of kernels at kept examples."""

from typing import Any, Literal, cast

from sklearn.utils.validation import check_is_fitted

from pairloom.base.typing import Array
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.estimators.parameters import estimator
from pairloom.features import FeatureMap, Identity
from pairloom.features.compiled_kernels import exact_kernel
from pairloom.features.identity import linear_map
from pairloom.features.kernels import KernelName
from pairloom.features.scaling import Scaling
from pairloom.models.expansion import Expansion


@estimator
class LinearClassifier(PairwiseClassifier):
    """A classifier with the score <w, phi(x)>, where phi(x) are the columns themselves unless ``features`` is given.

    Parameters
    ----------
    features : any feature map, such as ``RandomFourier(512)``. None: the columns themselves.
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".
    """

    features: FeatureMap | None = None
    scale: Scaling = None

    def _common_parts(self, n_classes: int, seed: int | None) -> dict[str, Any]:
        return {"features": linear_map(self.features, self.scale), **super()._common_parts(n_classes, seed)}


@estimator
class KernelClassifier(PairwiseClassifier):
    """A classifier whose score is a sum of kernels at kept examples, an :class:`~pairloom.models.expansion.Expansion`.

    Parameters
    ----------
    kernel : "gaussian", "laplace", "cauchy", "matern32", "matern52" or "linear".
    gamma : kernel width: a number, "paper" = 1 / (2 d), or "median" = 1 / median squared distance.
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".

    Attributes
    ----------
    support_ : the kept examples, scaled, of shape (n, d); with more than two classes, a list of arrays.
    coef_ : their coefficients, of shape (n,): s(x) = sum_j coef_[j] k(x, support_[j]); or a list of arrays.
    gamma_ : kernel width in use; None for the linear kernel.
    """

    kernel: KernelName = "gaussian"
    gamma: float | Literal["paper", "median"] = "paper"
    scale: Scaling = None

    def _common_parts(self, n_classes: int, seed: int | None) -> dict[str, Any]:
        own = {"kernel": exact_kernel(self.kernel, self.gamma), "features": Identity(scale=self.scale)}
        return own | super()._common_parts(n_classes, seed)

    @property
    def gamma_(self) -> float | None:
        """Kernel width in use; None for the linear kernel."""
        gamma: float = self._learned.memory.gamma.item()
        return None if self._model.kernel.gamma is None else gamma

    @property
    def support_(self) -> Any:
        """The kept examples, scaled, of shape (n, d); with more than two classes, a list of arrays, one per class."""
        return self._per_model([supports.copy() for supports, coef in self._terms() for _ in coef])

    @property
    def coef_(self) -> Any:
        """Their coefficients (n,) in the score of ``classes_[1]``; with more than two classes, a list of arrays."""
        return self._per_model([self._labels.sign * own for _, coef in self._terms() for own in coef])

    @property
    def _model(self) -> Expansion:
        check_is_fitted(self)
        return cast(Expansion, self.stream_.model)

    def _terms(self) -> list[tuple[Array, Array]]:
        return self._model.terms(self._learned.memory)

    def _per_model(self, values: list[Array]) -> Any:
        return values[0] if len(values) == 1 else values
