"""Shift-invariant kernels: their width rules, matrices, and distributions of random frequencies."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from pairloom.base.checks import check_number
from pairloom.base.graph import HasGraph, Value, no_graph
from pairloom.base.typing import Array
from pairloom.features.distances import (
    coordinate_sums,
    median_distance,
    median_rows,
    median_squared_distance,
    squared_distances,
)
from pairloom.features.scaling import Scaler, Scaling, fit_scaler, scale_columns, smallest_spread

Gamma = float | Sequence[float] | Literal["paper", "median"]
KernelName = Literal["gaussian", "laplace", "cauchy", "matern32", "matern52", "linear"]

DRAW_BLOCK = 64
"""Number of frequencies drawn at a time."""


@dataclass(frozen=True)
class Kernel(HasGraph, ABC):
    """A kernel k(x - x') with width parameter gamma: a number, one number per column, or a rule; times ``factor``.

    ``"paper"`` is 1 / (2 d), for every kernel. ``"median"`` is the inverse of the median distance between two of the
    first rows of the stream, so that k is about 1/e at that distance: the squared distance where gamma multiplies it
    (Gaussian, Matern), the L1 distance (Laplace), the distance (Cauchy).
    """

    graph_forms: ClassVar[Mapping[str, str]] = {
        "__call__": "to_onnx", "profile": "profile_onnx", "term": "term_onnx",
    }  # fmt: skip

    name: ClassVar[str]
    code: ClassVar[int]
    """Code of the kernel in the compiled ``kernel_row``."""
    is_gaussian: ClassVar[bool] = False

    gamma: Gamma = "paper"
    factor: float = 1.0

    @property
    def is_compiled(self) -> bool:
        """Whether the compiled ``kernel_row`` supports this kernel; False for subclasses, which may override values."""
        return type(self) in KERNELS.values()

    @property
    def isotropic(self) -> "Isotropic | None":
        """The kernel, if k depends only on the Euclidean length of (gamma-scaled) x - x'."""
        return None

    def __post_init__(self) -> None:
        check_number("factor", self.factor, 0, open_low=True)
        if isinstance(self.gamma, str):
            if self.gamma not in ("paper", "median"):
                raise ValueError(f"gamma must be positive, 'paper' or 'median', got {self.gamma!r}")
            return
        try:
            gamma = np.asarray(self.gamma, dtype=float)
        except (TypeError, ValueError):
            gamma = np.zeros(0)
        if gamma.ndim > 1 or gamma.size == 0 or not (np.isfinite(gamma).all() and (gamma > 0).all()):
            raise ValueError(f"gamma must be a positive number, or one per column, got {self.gamma!r}")
        # A tuple, so that the part stays hashable.
        object.__setattr__(self, "gamma", gamma.item() if gamma.ndim == 0 else tuple(gamma.tolist()))

    def width(self, n_features: int, rows: Any, smallest: float = 0.0) -> Array:
        """Return gamma as a number (0-d) or an array of length d; ``rows`` are scaled, and may be CSR.

        A median distance of at most ``smallest`` is treated as 0, as for equal rows.
        """
        gamma = np.asarray(0.5 / n_features)
        if self.gamma == "median" and rows is not None:
            distance = self.typical_distance(rows)
            gamma = np.asarray(1.0 / distance) if distance > smallest else gamma
        elif not isinstance(self.gamma, str):
            gamma = np.asarray(self.gamma, dtype=float)
            if gamma.ndim and gamma.size != n_features:
                raise ValueError(f"gamma has {gamma.size} widths, but the rows have {n_features} columns")
        return np.asarray(self.factor * gamma)

    def width_of(self, n_features: int, rows: Any, scaler: Scaler) -> Array:
        """Return the ``width`` for rows that are not scaled yet."""
        if rows is None:
            return self.width(n_features, None)
        return self.width(n_features, scaler.apply(median_rows(rows)), smallest_spread(rows))

    @abstractmethod
    def factors(self, gamma: Array) -> Array:
        """Return the factors of the scaled columns that give the kernel width 1."""

    def fit(self, rule: Scaling, n_features: int, rows: Any) -> tuple[Scaler, Array]:
        """Return the scaler and the width for these rows."""
        scaler = fit_scaler(rule, n_features, rows)
        gamma = self.width_of(n_features, rows, scaler)
        known = rows is not None and (rule is not None or self.gamma == "median")
        return scaler.within(self.factors(gamma)) if known else scaler, gamma

    @abstractmethod
    def typical_distance(self, rows: Any) -> float:
        """Return the median distance between two rows, in units of 1 / gamma; 0 if all are equal."""

    @abstractmethod
    def frequencies(self, gamma: Array, n_features: int, count: int, rng: np.random.Generator) -> Array:
        """Draw random frequencies, an array (d, count); the first columns do not depend on ``count``."""

    @abstractmethod
    def __call__(self, gamma: Array, X: Any, Y: Any) -> Array:
        """Return the kernel matrix between the rows of X and Y, dense or CSR, in float64."""

    def to_onnx(self, gamma: Array, x: Value, Y: Array) -> Value:
        """Return the kernel values between dense rows and the rows of Y in an ONNX graph: f8."""
        return no_graph(self)


@dataclass(frozen=True)
class Isotropic(Kernel):
    """A function of r^2 = sum_i gamma_i (x_i - x'_i)^2.

    The frequencies are q = sqrt(2 gamma) g / sqrt(c / (2 nu)), with g ~ N(0, I) and one c ~ chi^2_{2 nu} each; for
    the Gaussian, nu = infinity, there is no c.

    Cost of the matrix: n m d flops (CSR: one sparse product).
    """

    two_nu: ClassVar[int] = 0
    """Degrees of freedom of c; 0: no c."""

    @property
    def isotropic(self) -> "Isotropic":
        return self

    def typical_distance(self, rows: Any) -> float:
        return median_squared_distance(rows)

    def factors(self, gamma: Array) -> Array:
        return np.sqrt(gamma)

    def frequencies(self, gamma: Array, n_features: int, count: int, rng: np.random.Generator) -> Array:
        # A few at a time: with very many columns, no other array may be as large as the frequencies.
        q = np.empty((n_features, count))
        for start in range(0, count, DRAW_BLOCK):
            normals = rng.standard_normal((min(DRAW_BLOCK, count - start), n_features + self.two_nu))
            q[:, start : start + DRAW_BLOCK] = self.from_normals(gamma, normals)
        return q

    def from_normals(self, gamma: Array, normals: Array) -> Array:
        """Return frequencies from standard normal rows: d numbers for g, then 2 nu whose squares sum to c.

        Overwrites the rows.
        """
        d = normals.shape[1] - self.two_nu
        q = normals[:, :d]
        q *= np.sqrt(2.0 * gamma)
        if self.two_nu:
            q /= np.sqrt(np.square(normals[:, d:]).mean(axis=1, keepdims=True))
        return np.ascontiguousarray(q.T)

    def __call__(self, gamma: Array, X: Any, Y: Any) -> Array:
        root = np.sqrt(gamma)
        U = scale_columns(X, root)
        return self.profile(squared_distances(U, U if Y is X else scale_columns(Y, root)))

    def to_onnx(self, gamma: Array, x: Value, Y: Array) -> Value:
        # In double, and about the mean of Y: squares of large values would cancel.
        root, center = np.sqrt(gamma), Y.mean(axis=0, dtype=float)
        u, V = (x.to("f8") - center) * root, (Y - center) * root
        r2 = (u * u).sum() - 2.0 * (u @ V.T) + np.square(V).sum(axis=1)
        return self.profile_onnx(r2.at_least(0.0))

    def profile_onnx(self, r2: Value) -> Value:
        """Return k as a function of r^2 in an ONNX graph."""
        return no_graph(self)

    @staticmethod
    @abstractmethod
    def profile(r2: Array) -> Array:
        """Return k as a function of r^2."""


@dataclass(frozen=True)
class Gaussian(Isotropic):
    """k = exp(-r^2), with r^2 = sum_i gamma_i (x_i - x'_i)^2; frequencies q ~ N(0, 2 diag(gamma)).

    >>> Gaussian()(np.asarray(0.5), np.array([[0.0]]), np.array([[2.0]])).round(4)
    array([[0.1353]])
    """

    name: ClassVar[str] = "gaussian"
    code: ClassVar[int] = 0
    is_gaussian: ClassVar[bool] = True

    @staticmethod
    def profile(r2: Array) -> Array:
        return np.asarray(np.exp(-r2))

    def profile_onnx(self, r2: Value) -> Value:
        return (-r2).exp()


@dataclass(frozen=True)
class Matern32(Isotropic):
    """k = (1 + s) exp(-s), s = sqrt(6) r, with r^2 = sum_i gamma_i (x_i - x'_i)^2: Matern of smoothness 3/2.

    The length scale is 1 / sqrt(2 gamma), as for the Gaussian. Frequencies are Student t with 3 degrees of freedom:
    the rougher the kernel, the heavier their tails.

    Reference: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 4.2.1.

    >>> Matern32()(np.asarray(0.5), np.array([[0.0]]), np.array([[2.0]])).round(4)
    array([[0.1397]])
    """

    name: ClassVar[str] = "matern32"
    code: ClassVar[int] = 3
    two_nu: ClassVar[int] = 3

    @staticmethod
    def profile(r2: Array) -> Array:
        s = np.sqrt(6.0 * r2)
        return np.asarray((1.0 + s) * np.exp(-s))

    def profile_onnx(self, r2: Value) -> Value:
        s = (6.0 * r2).sqrt()
        return (1.0 + s) * (-s).exp()


@dataclass(frozen=True)
class Matern52(Isotropic):
    """k = (1 + s + s^2 / 3) exp(-s), s = sqrt(10) r, with r^2 = sum_i gamma_i (x_i - x'_i)^2: smoothness 5/2.

    The length scale is 1 / sqrt(2 gamma), as for the Gaussian. Frequencies are Student t with 5 degrees of freedom.

    Reference: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 4.2.1.

    >>> Matern52()(np.asarray(0.5), np.array([[0.0]]), np.array([[2.0]])).round(4)
    array([[0.1387]])
    """

    name: ClassVar[str] = "matern52"
    code: ClassVar[int] = 4
    two_nu: ClassVar[int] = 5

    @staticmethod
    def profile(r2: Array) -> Array:
        s = np.sqrt(10.0 * r2)
        return np.asarray((1.0 + s + s * s / 3.0) * np.exp(-s))

    def profile_onnx(self, r2: Value) -> Value:
        s = (10.0 * r2).sqrt()
        return (1.0 + s + s * s / 3.0) * (-s).exp()


@dataclass(frozen=True)
class Product(Kernel):
    """A product over the columns, exp(-sum_i f(u_i)), with u_i = gamma_i (x_i - x'_i): gamma is an inverse length.

    Cost of the matrix: n m d evaluations of f (CSR: n times the stored entries of Y).
    """

    def factors(self, gamma: Array) -> Array:
        return gamma

    def __call__(self, gamma: Array, X: Any, Y: Any) -> Array:
        sums = coordinate_sums(scale_columns(X, gamma), scale_columns(Y, gamma), self.term)
        return np.asarray(np.exp(-sums))

    def to_onnx(self, gamma: Array, x: Value, Y: Array) -> Value:
        # In blocks of columns (rows, 1, d) - (m, d): one value for each row, support and column.
        u = x.to("f8").reshape(-1, 1, Y.shape[1]) * gamma - Y * gamma
        return (-self.term_onnx(u).sum(keep=False)).exp()

    def term_onnx(self, u: Value) -> Value:
        """Return f(u) in an ONNX graph."""
        return no_graph(self)

    def frequencies(self, gamma: Array, n_features: int, count: int, rng: np.random.Generator) -> Array:
        return np.ascontiguousarray((gamma * self.draw(rng, (count, n_features))).T)

    @staticmethod
    @abstractmethod
    def term(u: Array) -> Array:
        """Return f(u): even, and 0 at 0."""

    @staticmethod
    @abstractmethod
    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Draw coordinates of frequencies for gamma = 1."""


@dataclass(frozen=True)
class Laplace(Product):
    """k = exp(-sum_i gamma_i |x_i - x'_i|); the coordinates of q are Cauchy with scale gamma.

    Reference: Rahimi and Recht, Random Features for Large-Scale Kernel Machines, NIPS 2007, figure 1.

    >>> Laplace()(np.asarray(0.5), np.array([[0.0]]), np.array([[2.0]])).round(4)
    array([[0.3679]])
    """

    name: ClassVar[str] = "laplace"
    code: ClassVar[int] = 1

    def typical_distance(self, rows: Any) -> float:
        return median_distance(rows, lambda X, Y: coordinate_sums(X, Y, np.abs))

    @staticmethod
    def term(u: Array) -> Array:
        return np.abs(u)

    def term_onnx(self, u: Value) -> Value:
        return u.abs()

    @staticmethod
    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        return rng.standard_cauchy(shape)


@dataclass(frozen=True)
class Cauchy(Product):
    """k = prod_i 1 / (1 + gamma_i^2 (x_i - x'_i)^2); the coordinates of q are Laplace with scale gamma.

    With many columns it is close to exp(-gamma^2 ||x - x'||^2): ``"paper"`` = 1 / (2 d) is then far wider than for the
    Gaussian, where gamma is not squared; ``"median"`` is as wide as the Gaussian's.

    Reference: Rahimi and Recht, Random Features for Large-Scale Kernel Machines, NIPS 2007, figure 1.

    >>> Cauchy()(np.asarray(0.5), np.array([[0.0]]), np.array([[2.0]])).round(4)
    array([[0.5]])
    """

    name: ClassVar[str] = "cauchy"
    code: ClassVar[int] = 2

    def typical_distance(self, rows: Any) -> float:
        return float(np.sqrt(median_squared_distance(rows)))

    @staticmethod
    def term(u: Array) -> Array:
        return np.asarray(np.log1p(np.square(u)))

    def term_onnx(self, u: Value) -> Value:
        return (1.0 + u * u).log()

    @staticmethod
    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        return rng.laplace(size=shape)


KERNELS: dict[str, type[Kernel]] = {kernel.name: kernel for kernel in (Gaussian, Laplace, Cauchy, Matern32, Matern52)}
"""Kernels by name."""


def check_kernel(kernel: Any) -> None:
    """Raise ValueError unless ``kernel`` is a kernel."""
    if not isinstance(kernel, Kernel):
        raise ValueError(f"kernel must be a Kernel, such as Gaussian('median'); got {kernel!r}")
