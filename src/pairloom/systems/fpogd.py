"""FPOGD: random Fourier features, online stratified sampling, online gradient descent."""

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal, cast

import numpy as np
from sklearn.base import clone

from pairloom.base.checks import check_choice, check_count
from pairloom.base.randomness import fresh_seed, seed_of
from pairloom.base.typing import Array
from pairloom.columns import ColumnsLike
from pairloom.engines.base import EngineName
from pairloom.estimators.card import Card
from pairloom.estimators.class_weight import ClassWeight
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.estimators.forgetting import forgetting_of
from pairloom.features import FeatureMap, feature_map
from pairloom.features.choice import KernelName
from pairloom.features.scaling import Scaling
from pairloom.losses import LOSSES, LossName
from pairloom.memory import Strata
from pairloom.memory.base import By, Normalization, Space
from pairloom.memory.strata import Representative, StrataState
from pairloom.models.base import Dtype
from pairloom.models.grid import Grid
from pairloom.models.learner import Learner
from pairloom.pairs import OppositeClass
from pairloom.steps import L2, Average, Form, schedule_named
from pairloom.stream import Stream
from pairloom.stream.drift import Drift
from pairloom.stream.forgetting import HalfLife
from pairloom.theory import features_needed

Schedules = Literal["constant", "sqrt", "poly", "adagrad"]


class FPOGD(PairwiseClassifier):
    r"""Rank one class above the other (AUC) on a stream, in one pass, with a kernel and bounded memory.

    .. math::

        w \leftarrow (1 - \eta\alpha) w - \eta \sum_j p_j\, y_t\, \ell'(y_t \langle w, z_t - B_j\rangle) (z_t - B_j)

    z = phi(x) are random Fourier features; B_j is the representative of stratum j of the opposite class, p_j
    that stratum's share of the class. The defaults are the paper's, where it gives one.

    Parameters
    ----------
    kernel : "gaussian", "laplace", "cauchy", "matern32", "matern52", or "linear" (phi(x) = x).
    gamma : kernel width: a number, one per column, "paper" = 1 / (2 d), or "median" = 1 / median squared distance.
    n_components : number of features D, rounded up to even; "auto" = sqrt(T) ln T, with T the ``horizon``.
    loss : "square", "hinge", "squared_hinge" or "logistic".
    eta : step size.
    schedule : "constant", "sqrt" (eta / sqrt(t)), "poly" (eta t^-0.75) or "adagrad" (a step for each coordinate, see
        :class:`~pairloom.AdaGrad`; not in ``grid``).
    alpha : L2 penalty.
    l2 : "explicit" or "proximal" step of the penalty.
    eps : squared distance within which an example joins a stratum; "auto" = half the mean squared distance.
    max_strata : strata per class (in all, if joint).
    representative : "fifo" (newest member), "reservoir" (uniform member) or "centroid".
    centroid_step : step of the strata's centres: a number in (0, 1], or "mean".
    cluster_in : space of the strata: "features" (the paper) or "input" (cheaper, and as good).
    strata : one clustering per "class", or "joint".
    normalization : weights relative to the paired "class" or to the whole "history", or counts ("sum").
    average : the iterate that scores: "last" (the paper), "mean" or "poly".
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax".
    horizon : expected length of the stream, for ``n_components="auto"``.
    dtype : "float32" or "float64".
    pos_label : the positive class, for which ``score_one`` and ``score_many`` speak; by default ``classes_[1]``.
    class_weight : weights of the classes, by label, that multiply those of rows; or "balanced", n / (classes x n_class)
        of the rows so far, the present one included.
    random_state : seed of all randomness.
    engine : "auto", "fused" or "reference".
    features : any feature map, in place of the one that kernel, gamma, n_components and scale describe.
    columns : for data frames and mappings: kinds of columns by name, such as {"device": "category"}, or a
        :class:`~pairloom.columns.Columns`; None: as their types say.
    half_life : rows after which a row counts half as much, such as 10_000. Or by time: the name of the column that
        tells it, and a length of time: ("when", "7d"), with s, m, h, d or w, or a datetime.timedelta; for a column of
        numbers, a number in its units (in rows without names, by the column's place). None: no row counts less. See
        :class:`~pairloom.stream.Forgetting` for the rules.
    drift : "auto": watch the share of pairs in the wrong order, and forget what was before when it has grown; None: do
        not. Or a detector of your own, with ``update(x)`` and ``drift_detected``, such as ``river.drift.ADWIN()``: it
        is copied, and a model with one cannot be saved. See :class:`~pairloom.stream.DriftWatch` for the rules.

    Attributes
    ----------
    stream_ : the :class:`~pairloom.Stream` under this face; its ``model`` has the parts, its ``state`` the arrays.
    coef_ : w, speaking for ``classes_[1]``.
    gamma_, eps_ : the width and radius in use, after rules on data.
    n_strata_, strata_sizes_, strata_centers_, strata_variances_ : per class, as in ``classes_`` (one entry if joint).
    n_seen_, n_pairs_, loss_, nbytes_, balanced_threshold_ : see
        :class:`~pairloom.estimators.classifier.PairwiseClassifier`.

    Notes
    -----
    Cost: d D + 7 s D flops per example for s strata per class. However long the stream, 4 s D + d D / 2 numbers, 3 x
    4,096 for the calibration, and 1,024 rows until rules on data are settled; D more with ``schedule="adagrad"``.

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

    def __init__(
        self,
        *,
        kernel: KernelName = "gaussian",
        gamma: float | Sequence[float] | Literal["paper", "median"] = "paper",
        n_components: int | Literal["auto"] = 512,
        loss: LossName = "square",
        eta: float = 0.125,
        schedule: Schedules = "constant",
        alpha: float = 1e-6,
        l2: Form = "explicit",
        eps: float | Literal["auto"] = "auto",
        max_strata: int = 16,
        representative: Representative = "fifo",
        centroid_step: float | Literal["mean"] = 0.05,
        cluster_in: Space = "features",
        strata: By = "class",
        normalization: Normalization = "class",
        average: Average = "last",
        scale: Scaling = None,
        horizon: int | None = None,
        dtype: Dtype = "float32",
        pos_label: Any = None,
        class_weight: ClassWeight = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        engine: EngineName = "auto",
        features: FeatureMap | None = None,
        columns: ColumnsLike = None,
        half_life: HalfLife = None,
        drift: Drift = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.loss = loss
        self.eta = eta
        self.schedule = schedule
        self.alpha = alpha
        self.l2 = l2
        self.eps = eps
        self.max_strata = max_strata
        self.representative = representative
        self.centroid_step = centroid_step
        self.cluster_in = cluster_in
        self.strata = strata
        self.normalization = normalization
        self.average = average
        self.scale = scale
        self.horizon = horizon
        self.dtype = dtype
        self.pos_label = pos_label
        self.class_weight = class_weight
        self.random_state = random_state
        self.engine = engine
        self.features = features
        self.columns = columns
        self.half_life = half_life
        self.drift = drift

    @property
    def card(self) -> Card:
        return Card(
            "AlQuabeh et al. 2023", "d D + s D", "s D + d D", problem="general",
            model="linear" if self.kernel == "linear" else "kernel", variance_reduction="strata",
        )  # fmt: skip

    def _make_model(self, n_classes: int, seed: int | None) -> Learner:
        check_choice("loss", self.loss, LOSSES)
        return Learner(
            features=feature_map(self.features, self.kernel, self.gamma, self._n_components(), self.scale),
            pairs=OppositeClass(n_classes),
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
            dtype=self.dtype,
            seed=seed,
            engine=self.engine,
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
        """All combinations of these values, learned side by side in one pass; what is not given is as in this model.

        Labels are -1 or 0 and +1 for two classes, 0 ... K - 1 for more. The order of the models is that of
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
        """Strata in use."""
        return np.array([len(sizes) for sizes in self.strata_sizes_])

    @property
    def strata_sizes_(self) -> list[Array]:
        """Examples that joined each stratum, or their weight."""
        return self._per_class(self._strata.counts)

    @property
    def strata_centers_(self) -> list[Array]:
        """Centres, in feature space or, with ``cluster_in="input"``, in the space of the scaled inputs."""
        return self._per_class(self._strata.dense_centers())

    @property
    def strata_variances_(self) -> list[Array]:
        """Mean squared distance of the members to the moving centre: what a single representative leaves out."""
        return self._per_class(self._strata.scatter / np.maximum(self._strata.counts, 1e-300))

    @property
    def _strata(self) -> StrataState:
        return cast(StrataState, self._learned.memory)

    def _per_class(self, values: Array) -> list[Array]:
        """The entries in use, one copied array per class, or one for joint strata."""
        assert self._labels is not None
        used = self._strata.used
        groups, size = [0] if self.strata == "joint" else self._labels.groups, len(values) // len(used)
        return [values[g * size :][: used[g]].copy() for g in groups]
