"""FPOGD: random Fourier features, online stratified sampling and online gradient descent."""

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal, cast

import numpy as np
from sklearn.base import clone

from pairloom.base.checks import check_choice, check_count
from pairloom.base.randomness import fresh_seed, seed_of
from pairloom.base.typing import Array
from pairloom.estimators.base import forgetting_of
from pairloom.estimators.card import Card, model_kind
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.estimators.parameters import estimator
from pairloom.features import FeatureMap
from pairloom.features.fourier import feature_map
from pairloom.features.kernels import Gamma, KernelName
from pairloom.features.scaling import Scaling
from pairloom.losses import LOSSES, LossName
from pairloom.memory import Strata
from pairloom.memory.base import By, Normalization, Space
from pairloom.memory.strata import Representative, StrataState
from pairloom.models.grid import Grid
from pairloom.models.learner import Learner
from pairloom.steps import L2, Average
from pairloom.steps.penalties import L2Form
from pairloom.steps.schedules import schedule_named
from pairloom.stream import Stream
from pairloom.theory import features_needed

Schedules = Literal["constant", "sqrt", "poly", "adagrad"]


@estimator
class FPOGD(PairwiseClassifier):
    r"""Rank one class above the other (AUC) on a stream, in one pass, with a kernel and bounded memory.

    .. math::

        w \leftarrow (1 - \eta\alpha) w - \eta \sum_j p_j\, y_t\, \ell'(y_t \langle w, z_t - B_j\rangle) (z_t - B_j)

    z = phi(x) are random Fourier features, B_j is the representative of stratum j of the opposite class, and p_j the
    share of that stratum in its class. The defaults are those of the paper, if it states them, except for strata and
    weights: Algorithm 1 as printed is ``strata="joint", normalization="history"``, a single clustering of all rows, and
    p_j relative to the rows of both classes.

    Parameters
    ----------
    kernel : "gaussian", "laplace", "cauchy", "matern32", "matern52", or "linear" (phi(x) = x).
    gamma : kernel width: a number, one number per column, "paper" = 1 / (2 d), or "median" = 1 / median squared
        distance.
    n_components : number D of features, rounded up to an even number; "auto" = sqrt(T) ln T, with T the ``horizon``.
    loss : "square", "hinge", "squared_hinge" or "logistic".
    eta : step size.
    schedule : "constant", "sqrt" (eta / sqrt(t)), "poly" (eta t^-0.75) or "adagrad" (one step size per coordinate, see
        :class:`~pairloom.steps.AdaGrad`; not in ``grid``).
    alpha : L2 penalty.
    l2 : "explicit" or "proximal" step of the penalty.
    eps : squared distance within which a row joins a stratum; "auto" = half the mean squared distance.
    max_strata : largest number of strata per class, or in total if joint.
    representative : "fifo" (newest member), "reservoir" (uniformly drawn member) or "centroid".
    centroid_step : step size of the centres of the strata: a number in (0, 1], or "mean".
    cluster_in : space of the strata: "features" (the paper) or "input" (cheaper, and as accurate).
    strata : one clustering per "class", or one "joint" clustering (Algorithm 1).
    normalization : p_j relative to the paired "class", or to the whole "history" (Algorithm 1), or counts ("sum").
    average : the iterate that predicts: "last" (the paper), "mean" or "poly".
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".
    horizon : expected length T of the stream, for ``n_components="auto"``.
    features : any feature map, instead of the one that kernel, gamma, n_components and scale describe.

    Attributes
    ----------
    gamma_ : kernel width in use; None for the linear kernel.
    eps_ : squared radius of the strata in use.
    n_strata_ : number of strata of each class, in the order of ``classes_``; one entry if joint.
    strata_sizes_ : number of rows, or their weight, in each stratum; one array per class.
    strata_centers_ : centres of the strata; one array per class.
    strata_variances_ : mean squared distance of the members of a stratum to its centre; one array per class.

    Notes
    -----
    Cost: d D + 6 s D + 4 s^2 flops per row for s strata per class. Regardless of the length of the stream,
    4 s D + 4 s^2 + d D / 2 numbers, 3 x 4,096 for the calibration, and the first 1,024 rows until parameters that
    depend on data are final; D more with ``schedule="adagrad"``.

    References
    ----------
    AlQuabeh, Mukhoty and Gu, Variance Reduced Online Gradient Descent for Kernelized Pairwise Learning with Limited
    Memory, ACML 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = FPOGD(gamma="median", scale="standard", random_state=0).fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    """

    kernel: KernelName = "gaussian"
    gamma: Gamma = "paper"
    n_components: int | Literal["auto"] = 512
    loss: LossName = "square"
    eta: float = 0.125
    schedule: Schedules = "constant"
    alpha: float = 1e-6
    l2: L2Form = "explicit"
    eps: float | Literal["auto"] = "auto"
    max_strata: int = 16
    representative: Representative = "fifo"
    centroid_step: float | Literal["mean"] = 0.05
    cluster_in: Space = "features"
    strata: By = "class"
    normalization: Normalization = "class"
    average: Average = "last"
    scale: Scaling = None
    horizon: int | None = None
    features: FeatureMap | None = None

    @property
    def card(self) -> Card:
        return Card("AlQuabeh et al. 2023", "d D + s D", "s D + d D", "general", model_kind(self.kernel), "strata")

    def _make_model(self, n_classes: int, seed: int | None) -> Learner:
        check_choice("loss", self.loss, LOSSES)
        return Learner(
            features=feature_map(self.features, self.kernel, self.gamma, self._n_components(), self.scale),
            loss=LOSSES[self.loss],
            memory=Strata(
                eps=self.eps,
                max_strata=self.max_strata,
                representative=self.representative,
                centroid_step=self.centroid_step,
                by=self.strata,
                cluster_in=self.cluster_in,
                normalization=self.normalization,
            ),
            step=schedule_named(self.schedule, self.eta, self.horizon),
            penalty=L2(self.alpha, self.l2),
            average=self.average,
            **self._common_parts(n_classes, seed),
        )

    def grid(
        self,
        *,
        etas: Sequence[float] | None = None,
        alphas: Sequence[float] | None = None,
        losses: Sequence[LossName] | None = None,
        schedules: Sequence[Schedules] | None = None,
        averages: Sequence[Average] | None = None,
        n_classes: int = 2,
    ) -> Stream:
        """Return a stream that learns all combinations of these values in one pass, with this model's other parameters.

        Labels are -1 or 0 and +1 for two classes, 0 to K - 1 for more. The models are in the order of
        ``itertools.product(losses, schedules, averages, alphas, etas)``.

        >>> grid = FPOGD(gamma="median", random_state=0).grid(etas=[0.1, 0.2, 0.4], alphas=[1e-6, 1e-3])
        >>> len(grid.model), grid.model.learners[1].step, grid.model.learners[1].penalty
        (6, Constant(eta=0.2), L2(alpha=1e-06, form='explicit'))
        """
        seed = fresh_seed() if self.random_state is None else seed_of(self.random_state)
        values = {"loss": losses, "schedule": schedules, "average": averages, "alpha": alphas, "eta": etas}
        varied = {name: list(choices) for name, choices in values.items() if choices is not None}
        models = [
            clone(self).set_params(**dict(zip(varied, choice, strict=True))) for choice in product(*varied.values())
        ]
        grid = Grid([model._make_model(n_classes, seed) for model in models])
        return Stream(grid, forgetting_of("a grid", grid, self.half_life))

    def _n_components(self) -> int:
        if self.n_components != "auto":
            return self.n_components
        if self.horizon is None:
            raise ValueError(
                "n_components='auto' is sqrt(T) ln T: pass the expected length T of the stream as horizon="
            )
        check_count("horizon", self.horizon)
        return max(2, features_needed(self.horizon))

    @property
    def gamma_(self) -> Any:
        """Kernel width in use; None for the linear kernel."""
        gamma = getattr(self._learned.phi, "gamma", None)
        return gamma.item() if gamma is not None and gamma.ndim == 0 else gamma

    @property
    def eps_(self) -> float:
        """Squared radius of the strata in use."""
        return self._strata.eps

    @property
    def n_strata_(self) -> Array:
        """Number of strata of each class."""
        return np.array([len(sizes) for sizes in self.strata_sizes_])

    @property
    def strata_sizes_(self) -> list[Array]:
        """Number of rows, or their weight, in each stratum."""
        return self._per_class(self._strata.counts)

    @property
    def strata_centers_(self) -> list[Array]:
        """Centres in feature space or, with ``cluster_in="input"``, in the space of the scaled columns."""
        return self._per_class(self._strata.dense_centers())

    @property
    def strata_variances_(self) -> list[Array]:
        """Mean squared distance of the members of a stratum to its centre: the variance that strata do not remove."""
        return self._per_class(self._strata.scatter / np.maximum(self._strata.counts, 1e-300))

    @property
    def _strata(self) -> StrataState:
        return cast(StrataState, self._learned.memory)

    def _per_class(self, values: Array) -> list[Array]:
        """Return copies of the entries in use, one array per class, or one for joint strata."""
        assert self._labels is not None
        used = self._strata.used
        groups, size = [0] if self.strata == "joint" else self._labels.groups, len(values) // len(used)
        return [values[g * size :][: used[g]].copy() for g in groups]
