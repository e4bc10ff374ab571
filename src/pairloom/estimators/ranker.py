"""Ranking by graded or real labels, also inside queries."""

from typing import Any

from pairloom.base.checks import check_choice
from pairloom.base.typing import Array
from pairloom.columns import ColumnsLike
from pairloom.engines.base import EngineName
from pairloom.estimators.real import Gamma, PairwiseEstimator, RandomState
from pairloom.features import FeatureMap
from pairloom.features.scaling import Scaling
from pairloom.losses import LOSSES, Loss
from pairloom.memory import Memory
from pairloom.metrics.concordance import concordance
from pairloom.models.base import Dtype
from pairloom.pairs import Order, Pairs
from pairloom.steps import Average
from pairloom.stream.forgetting import HalfLife


class PairwiseRanker(PairwiseEstimator):
    r"""Rank rows by graded or real labels on a stream, in one pass, with a kernel and bounded memory.

    .. math:: \min_w \sum_t \sum_{j \in B_t} p_j\,
        \ell\left(\mathrm{sign}(y_t - y_j) \langle w, \varphi(x_t) - \varphi(x_j)\rangle\right)
        + \tfrac{\alpha}{2} \|w\|^2

    The partners B_t are those of the newest examples that have another label and, if there are ``groups``, the same
    query. The score s(x) = <w, phi(x)> has no scale and no zero, only its order counts: this is no regressor.

    Parameters
    ----------
    kernel : "gaussian", "laplace", "cauchy", "matern32", "matern52", or "linear" (phi(x) = x; needs a smaller eta).
    gamma : kernel width: a number, one per column, "paper" = 1 / (2 d), or "median" = 1 / median squared distance.
    n_components : number of random Fourier features D, rounded up to even.
    loss : "squared_hinge", "hinge", "square" or "logistic" (with a longer step, about eta=2).
    eta : step size.
    schedule : "constant", "sqrt" (eta / sqrt(t)), "poly" (eta t^-0.75) or "adagrad" (a step for each coordinate, see
        :class:`~pairloom.AdaGrad`).
    alpha : L2 penalty.
    memory : B_t: any memory that mixes the labels. None is Window(64), the newest 64 examples: right for queries, whose
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
    coef_, gamma_ : w, and the width in use.
    n_seen_, n_pairs_, loss_, nbytes_ : see :class:`~pairloom.estimators.base.StreamEstimator`.

    Notes
    -----
    Cost: d D + 4 S D flops per example for S = 64 partners; S D + d D / 2 numbers, however long the stream; D more with
    ``schedule="adagrad"``.

    References
    ----------
    Herbrich, Graepel and Obermayer, Large Margin Rank Boundaries for Ordinal Regression, 2000, for pairs by order;
    Yang et al., Simple Stochastic and Online Gradient Descent Algorithms for Pairwise Learning, NeurIPS 2021, for
    partners from the newest examples.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ranker = PairwiseRanker(random_state=0).fit(X[:300], y[:300])
    >>> bool(ranker.score(X[300:], y[300:]) > 0.7)
    True
    """

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: Gamma = "median",
        n_components: int = 512,
        loss: str = "squared_hinge",
        eta: float = 0.25,
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
        self.loss = loss
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

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Share of the pairs with different labels, inside a query if there are ``groups``, that are ranked rightly.

        See :func:`~pairloom.estimators.concordance`: 1 is perfect, 0.5 is chance, for two labels it is the AUC.
        """
        return concordance(y, self.predict(X), sample_weight=sample_weight, groups=groups)

    def _pairs_and_loss(self) -> tuple[Pairs, Loss]:
        check_choice("loss", self.loss, LOSSES)
        return Order(), LOSSES[self.loss]

    def _predictions(self, scores: Array) -> Array:
        return scores
