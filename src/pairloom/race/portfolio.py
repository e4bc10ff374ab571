"""Portfolio: the candidates of a race, feature maps with models on them."""

from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

from pairloom.base.batch import Batch
from pairloom.base.checks import check_count, check_number, check_part
from pairloom.base.compact import Form
from pairloom.features import Compressed, FeatureMap, Forest, Gaussian, Identity, Landmarks
from pairloom.features.capabilities import cost_of
from pairloom.features.encoding import Encoding
from pairloom.features.kernels import Gamma
from pairloom.features.scaling import Scaling, check_scaling
from pairloom.models.base import Many
from pairloom.pairs import OppositeClass
from pairloom.race.evidence import MAX_WINDOWS, WINDOW_ROWS
from pairloom.race.heads import Boosted, Descent, Exact, Head, Steps, n_targets
from pairloom.stream.hooks import N_RECENT

FLOPS_PER_MICROSECOND = 1e5
"""Speed of one core for products of float32 matrices; it defines a nominal microsecond."""

OVERHEAD_MICROSECONDS = 3.0
"""Nominal time per example that is added for each candidate."""


@dataclass(frozen=True)
class Candidate:
    """A feature map and a head, which makes models on it.

    The candidates of a ``family`` are similar: in the prior of the mixture they share the weight of one candidate.
    ``large``: a larger map, which replaces that of the best candidate of the family if its share is large enough.
    ``encoding``: of rows with mixed columns, of which the candidate reads its own form. ``n_features`` is the number of
    columns of a row, unless there is an encoding.
    """

    name: str
    family: str
    features: FeatureMap
    head: Head
    large: FeatureMap | None = None
    encoding: Encoding | None = None

    @property
    def form(self) -> Form:
        """The form in which it reads mixed columns."""
        return self.head.form or ("trees" if self.features.takes_nan else "numbers")

    def reading(self, encoding: Encoding) -> "Candidate":
        """Return the candidate for rows with this encoding."""
        return replace(self, encoding=encoding)

    def width(self, n_features: int) -> int:
        """Return the number of columns that it reads."""
        return n_features if self.encoding is None else self.encoding.width_of(self.form)

    def columns_of(self, X: Any) -> Any:
        """Return the columns of rows that it reads."""
        return X if self.encoding is None else self.encoding.part(X, self.form)

    def read(self, batch: Batch) -> Batch:
        """Return rows with the columns that it reads."""
        return batch if self.encoding is None else replace(batch, X=self.columns_of(batch.X))

    @property
    def refits(self) -> bool:
        """Whether it has data-dependent settings, which are fixed several times during the first rows."""
        return self.features.needs_data or self.head.needs_data

    def larger(self, n_features: int) -> "dict[int, Candidate]":
        """Return its larger forms by their number of features: with the ``large`` map, and with halves of that."""
        forms: dict[int, Candidate] = {}
        features = self.large
        while features is not None:
            forms[features.n_outputs(self.width(n_features))] = replace(self, features=features, large=None)
            features = halved(features)
        return forms

    def model(self, pairs: OppositeClass, **rest: Any) -> Many:
        """Return the models of this candidate; ``rest`` as in :meth:`Head.learner`."""
        model = self.head.learner(self.features, pairs, **rest)
        return model if self.encoding is None else model.reading(self.encoding)

    def microseconds(self, n_features: int) -> float:
        """Return the nominal time per example."""
        of_map = cost_of(self.features, self.width(n_features)).flops
        of_head = self.head.flops(self.features, self.width(n_features))
        return OVERHEAD_MICROSECONDS + (of_map + of_head) / FLOPS_PER_MICROSECOND

    def nbytes(self, n_features: int, n_classes: int, itemsize: int = 4) -> int:
        """Return the approximate bytes of its arrays, for a dtype of ``itemsize`` bytes."""
        return self.space(n_features, n_classes, itemsize) + self.scores(n_classes)

    def space(self, n_features: int, n_classes: int, itemsize: int = 4) -> int:
        """Return the bytes of its map and its models."""
        of_map = itemsize * cost_of(self.features, self.width(n_features)).numbers
        return of_map + self.head.nbytes(self.features, self.width(n_features), n_classes, itemsize)

    def scores(self, n_classes: int) -> int:
        """Return the bytes of the scores of its models that a race keeps."""
        return 8 * (N_RECENT + MAX_WINDOWS * WINDOW_ROWS) * n_targets(n_classes) * self.head.n_models

    def smaller(self) -> "Candidate | None":
        """Return the candidate with a map of half the size; None if the map cannot be halved."""
        features = halved(self.features)
        return None if features is None else replace(self, features=features)


def halved(features: FeatureMap) -> FeatureMap | None:
    """Return a map of half the size; None if the map cannot be halved."""
    racing = features.racing
    return None if racing is None else racing.halved()


@dataclass(frozen=True)
class Portfolio:
    """The candidates of a race, of different kinds.

    Parameters
    ----------
    forests : maps of cells, each with a path of ``steps``.
    boosted : gradient boosting; None: without.
    kernels : scaling of the columns, and factor of the kernel's width, of each small kernel space.
    gamma : rule of the kernel's width.
    n_landmarks : landmarks of the small kernel spaces.
    large_landmarks : landmarks of the space that replaces the best of them at row 1,024, if the budget allows it.
    scale : scaling of the columns of the linear model.
    exact, steps, descent : the heads: exact minimisers on linear and kernel maps (None: neither kernels nor exact
        linear models), steps per coordinate on forests, and gradient steps on a linear map of more than ``max_exact``
        columns.
    max_exact : maximum number of columns for an exact linear model.
    max_grown : maximum number of columns for boosting and forests. Data with more columns is mostly sparse, and trees
        are slow to find columns that are not empty. A second, unscaled linear model replaces them: scaling would give
        the rarest columns the largest values.
    max_kernel : maximum number of columns for kernels. Beyond it data is mostly text, in which rows are far from all
        landmarks.
    compressed : whether the linear model and kernels compress columns with heavy tails
        (:class:`~pairloom.features.Compressed`).

    For other candidates, override ``candidates`` in a subclass.

    >>> [candidate.name for candidate in Portfolio(kernels=(("wide", 1.0),)).candidates(10)]
    ['linear', 'boosted', 'forest, renewed', 'kernel, width 1, wide']
    """

    forests: tuple[Forest, ...] = (Forest(100, max_leaves=4096, growth="renewed", pace=4, deep_rows=8192),)
    boosted: Boosted | None = field(default_factory=Boosted)
    kernels: tuple[tuple[Scaling, float], ...] = (("wide", 1.0), ("minmax", 4.0))
    gamma: Gamma = "median"
    n_landmarks: int = 128
    large_landmarks: int = 1024
    scale: Scaling = "wide"
    exact: Exact | None = field(default_factory=Exact)
    steps: Steps = field(default_factory=Steps)
    descent: Descent = field(default_factory=Descent)
    max_exact: int = 200
    max_grown: int = 2000
    max_kernel: int = 2000
    compressed: bool = True

    added: ClassVar[dict[str, Any]] = {"boosted": None, "compressed": False, "max_kernel": 2**62}

    def __post_init__(self) -> None:
        for name in ("n_landmarks", "large_landmarks", "max_exact", "max_grown", "max_kernel"):
            check_count(name, getattr(self, name))
        if not isinstance(self.forests, tuple):
            raise ValueError(f"forests must be a tuple of Forest maps; got {self.forests!r}")
        for forest in self.forests:
            check_part("each of forests", forest, Forest)
        pairs = isinstance(self.kernels, tuple) and all(isinstance(k, tuple) and len(k) == 2 for k in self.kernels)
        if not pairs:
            raise ValueError(f"kernels must be pairs (scale, factor), such as (('wide', 1.0),); got {self.kernels!r}")
        for scale, factor in self.kernels:
            check_scaling(scale)
            check_number("the factor of a kernel", factor, 0, open_low=True)
        check_scaling(self.scale)
        Gaussian(self.gamma)
        if self.exact is not None:
            check_part("exact", self.exact, Exact)
        if self.boosted is not None:
            check_part("boosted", self.boosted, Boosted)
        check_part("steps", self.steps, Steps)
        check_part("descent", self.descent, Descent)

    @property
    def takes_nan(self) -> bool:
        """Whether values may be missing (NaN), which all candidates must support."""
        return False

    def candidates(self, n_features: int) -> list[Candidate]:
        """Return the candidates in the order in which the budget is spent; the first is always included."""
        head = self.exact if self.exact is not None and n_features <= self.max_exact else self.descent
        found = [Candidate("linear", "linear", self._compressed(Identity(scale=self.scale)), head)]
        if n_features > self.max_grown and self.scale is not None:
            found.append(Candidate("linear, unscaled", "linear", Identity(), self.descent))
        if self.boosted is not None and n_features <= self.max_grown:
            found.append(Candidate("boosted", "boosted", Identity(), self.boosted))
        for k, forest in enumerate(self.forests if n_features <= self.max_grown else ()):
            twin = any(other.growth == forest.growth for other in self.forests[:k])
            name = f"forest, {forest.growth}" + (f", {k + 1}" if twin else "")
            found.append(Candidate(name, name, forest, self.steps))
        if self.exact is not None and n_features <= self.max_kernel:
            for scale, factor in self.kernels:
                small, large = (
                    self._compressed(Landmarks(m, Gaussian(self.gamma, factor), scale=scale))
                    for m in (self.n_landmarks, self.large_landmarks)
                )
                larger = large if self.large_landmarks > self.n_landmarks else None
                name = f"kernel, width {factor:g}, {scale}"
                found.append(Candidate(name, "kernel", small, self.exact, larger))
        return found

    def _compressed(self, features: FeatureMap) -> FeatureMap:
        return Compressed(features) if self.compressed else features


FORMER_PORTFOLIO = Portfolio(
    forests=(
        Forest(100, max_leaves=4096, growth="renewed", pace=8, deep_rows=8192),
        Forest(100, max_leaves=1024, growth="boosted"),
    ),
    boosted=None, steps=Steps((0.01, 0.03, 0.1, 0.3), partners=4), compressed=False,
)  # fmt: skip
"""The default of model files in version 1 of the format: models from such files go on with it."""


@dataclass(frozen=True)
class OneMap(Portfolio):
    """A portfolio of different heads on one feature map."""

    features: FeatureMap = field(default_factory=Identity)

    @property
    def takes_nan(self) -> bool:
        return self.features.takes_nan

    def candidates(self, n_features: int) -> list[Candidate]:
        if self.features.sparse is not None:
            return [Candidate("steps", "steps", self.features, self.steps)]
        heads: list[Head] = [self.descent, replace(self.descent, representative="fifo")]
        if self.exact is not None and self.features.n_outputs(n_features) <= self.max_exact:
            heads.insert(0, self.exact)
        names = [f"{type(head).__name__.lower()} {k}" for k, head in enumerate(heads)]
        return [Candidate(name, name, self.features, head) for name, head in zip(names, heads, strict=True)]


def pinned(
    portfolio: Portfolio,
    features: FeatureMap | None = None,
    gamma: Any = "race",
    scale: Any = "race",
    loss: str = "race",
    n_components: int | None = None,
    max_strata: int | None = None,
) -> Portfolio:
    """Return a portfolio whose candidates have these values; "race" and None leave it as it is."""
    if features is not None:
        values = {f.name: getattr(portfolio, f.name) for f in fields(Portfolio)}
        portfolio = OneMap(**values, features=features)
    if not (isinstance(gamma, str) and gamma == "race"):
        kernels = dict.fromkeys((scale, 1.0) for scale, _ in portfolio.kernels)
        portfolio = replace(portfolio, gamma=gamma, kernels=tuple(kernels))
    if not (isinstance(scale, str) and scale == "race"):
        check_scaling(scale)
        kernels = dict.fromkeys((scale, factor) for _, factor in portfolio.kernels)
        portfolio = replace(portfolio, scale=scale, kernels=tuple(kernels))
    if max_strata is not None:
        portfolio = replace(portfolio, descent=replace(portfolio.descent, max_strata=max_strata))
    if n_components is not None:
        sizes = {name: min(n_components, getattr(portfolio, name)) for name in ("n_landmarks", "large_landmarks")}
        portfolio = replace(portfolio, **sizes)
    return portfolio if loss == "race" else _with_loss(portfolio, loss)


def _with_loss(portfolio: Portfolio, loss: str) -> Portfolio:
    """Return a portfolio of one loss, with its own etas or those of the logistic loss.

    Exact heads need the square loss, boosting the logistic one.
    """
    etas = [eta for name, eta in portfolio.descent.steps if name == loss]
    etas = etas or [eta for name, eta in portfolio.descent.steps if name != "square"]
    descent = replace(portfolio.descent, steps=tuple((loss, eta) for eta in etas))
    steps = replace(portfolio.steps, loss=loss)
    exact = portfolio.exact if loss == "square" else None
    boosted = portfolio.boosted if loss == "logistic" else None
    return replace(portfolio, descent=descent, steps=steps, exact=exact, boosted=boosted)
