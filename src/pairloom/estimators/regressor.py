"""Regression on differences: pairwise least squares."""

import numpy as np
from sklearn.base import RegressorMixin

from pairloom.base.typing import Array
from pairloom.columns import ColumnsLike
from pairloom.engines.base import EngineName
from pairloom.estimators.real import Gamma, PairwiseEstimator, RandomState
from pairloom.features import FeatureMap
from pairloom.features.scaling import Scaling
from pairloom.losses import Loss, Square
from pairloom.memory import Memory
from pairloom.models.base import Dtype
from pairloom.pairs import Difference, Pairs
from pairloom.steps import Average
from pairloom.stream.forgetting import HalfLife


class PairwiseRegressor(RegressorMixin, PairwiseEstimator):
    r"""Learn how far labels differ, on a stream, in one pass, with a kernel and bounded memory.

    .. math:: \min_w \sum_t \sum_{j \in B_t} p_j
        \left(\langle w, \varphi(x_t) - \varphi(x_j)\rangle - (y_t - y_j)\right)^2 + \tfrac{\alpha}{2} \|w\|^2

    ``pair_score`` is the predicted difference s(x) - s(x'). ``predict`` is s(x) + b, with b the mean of y - s over the
    last 4,096 scores, each given before its row was learned. With ``groups`` only differences inside a group are
    learned: whatever adds the same to all labels of a group drops out.

    The scale of y does not matter: labels c y give the predictions of y, times c.

    Parameters
    ----------
    kernel : "gaussian", "laplace", "cauchy", "matern32", "matern52", or "linear" (phi(x) = x; needs a smaller eta).
    gamma : kernel width: a number, one per column, "paper" = 1 / (2 d), or "median" = 1 / median squared distance.
    n_components : number of random Fourier features D, rounded up to even.
    eta : step size.
    schedule : "constant", "sqrt" (eta / sqrt(t)), "poly" (eta t^-0.75) or "adagrad" (a step for each coordinate, see
        :class:`~pairloom.AdaGrad`; then the scale of y does matter: eta is in its units).
    alpha : L2 penalty.
    memory : B_t: any memory that mixes the labels. None is Window(64), the newest 64 examples: right for groups, whose
        rows come together, and for a shuffled stream. For long runs of like labels take Reservoir(64, by="joint").
    average : the iterate that scores: "poly" (forgets the start), "mean" or "last".
    scale : scaling of the columns: "standard", "maxabs", "minmax" or None.
    dtype : "float32" or "float64".
    random_state : seed of all randomness.
    engine : "auto", "fused" or "reference".
    features : any feature map, in place of the one that kernel, gamma, n_components and scale describe.
    columns, half_life : kinds of columns of data frames and mappings, and how fast rows fade, as in
        :class:`~pairloom.systems.FPOGD`.

    Attributes
    ----------
    stream_ : the :class:`~pairloom.Stream` under this face; its ``model`` has the parts, its ``state`` the arrays.
    coef_, intercept_, gamma_ : w, b, and the width in use.
    n_seen_, n_pairs_, loss_, nbytes_ : see :class:`~pairloom.estimators.base.StreamEstimator`.

    Notes
    -----
    Cost: d D + 4 S D flops per example for S = 64 partners; S D + d D / 2 numbers, however long the stream; D more with
    ``schedule="adagrad"``.

    References
    ----------
    Yang et al., Simple Stochastic and Online Gradient Descent Algorithms for Pairwise Learning, NeurIPS 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = PairwiseRegressor(random_state=0).fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.4)
    True
    """

    largest_label = 1e12

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: Gamma = "median",
        n_components: int = 512,
        eta: float = 0.125,
        schedule: str = "constant",
        alpha: float = 1e-6,
        memory: Memory | None = None,
        average: Average = "poly",
        scale: Scaling = "standard",
        dtype: Dtype = "float32",
        random_state: RandomState = None,
        engine: EngineName = "auto",
        features: FeatureMap | None = None,
        columns: ColumnsLike = None,
        half_life: HalfLife = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.eta = eta
        self.schedule = schedule
        self.alpha = alpha
        self.memory = memory
        self.average = average
        self.scale = scale
        self.dtype = dtype
        self.random_state = random_state
        self.engine = engine
        self.features = features
        self.columns = columns
        self.half_life = half_life

    @property
    def intercept_(self) -> float:
        """b: where the scores, which are known up to a constant, meet the labels; their mean while none has a score."""
        scores, labels, weight = self._recent.taught()
        if not len(labels):
            return float(self._recent.view()[1].mean())
        return float(np.average(labels - scores[:, 0], weights=weight))

    def _pairs_and_loss(self) -> tuple[Pairs, Loss]:
        return Difference(), Square()

    def _predictions(self, scores: Array) -> Array:
        return scores + self.intercept_
