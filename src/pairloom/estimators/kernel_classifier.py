"""The scikit-learn face of a model that is a sum of kernels at kept examples."""

from typing import Any, cast

from sklearn.utils.validation import check_is_fitted

from pairloom.base.typing import Array
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.models.expansion import Expansion


class KernelClassifier(PairwiseClassifier):
    """A classifier whose model is an :class:`~pairloom.models.expansion.Expansion`.

    f(x) = sum_j coef_[j] k(x, support_[j]), with x and ``support_`` scaled as ``scale`` says.
    """

    @property
    def gamma_(self) -> float | None:
        """Kernel width in use; None for the linear kernel."""
        gamma: float = self._learned.memory.gamma.item()
        return None if self._model.kernel.gamma is None else gamma

    @property
    def support_(self) -> Any:
        """The kept examples, scaled (n, d); with more than two classes, a list of such arrays, one for each."""
        return self._per_model([supports.copy() for supports, coef in self._terms() for _ in coef])

    @property
    def coef_(self) -> Any:
        """Their coefficients (n,), speaking for ``classes_[1]``; with more than two classes, a list, one for each."""
        return self._per_model([self._labels.sign * own for _, coef in self._terms() for own in coef])

    @property
    def _model(self) -> Expansion:
        check_is_fitted(self)
        return cast(Expansion, self.stream_.model)

    def _terms(self) -> list[tuple[Array, Array]]:
        return self._model.terms(self._learned.memory)

    def _per_model(self, values: list[Array]) -> Any:
        return values[0] if len(values) == 1 else values
