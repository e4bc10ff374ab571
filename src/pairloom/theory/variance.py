"""The variance of a gradient from a sample of the past: uniform, or one for each stratum."""

from dataclasses import dataclass

import numpy as np

from pairloom.base.checks import check_count, check_number
from pairloom.base.typing import Array


@dataclass(frozen=True, eq=False)
class Partition:
    r"""N values cut into strata: of each its size n_j and its variance, and the variance between the strata's means.

    The values are the gradients of the pairs of one row with all its partners; a variance is the trace of a covariance,
    E ||v - E v||^2, divided by n and not n - 1. The mean over a sample estimates the mean of all N. With weights
    p_j = n_j / N:

    .. math::

        \sigma^2 = \sum_j p_j \sigma_j^2 + \sum_j p_j \|\mu_j - \mu\|^2

    Parameters
    ----------
    sizes : n_j.
    variances : sigma_j^2.
    between : the last sum; 0 where all strata have the same mean.

    Sizes (97, 1, 1, 1), equal means, and all variance in the large stratum: four uniform draws are four times as good
    as one from each stratum.

    >>> unequal = Partition(np.array([97, 1, 1, 1]), np.array([1.0, 0, 0, 0]))
    >>> round(unequal.stratified(), 4), round(unequal.uniform(4), 4), round(unequal.proportional(4), 4)
    (0.9409, 0.2425, 0.2425)

    Reference: Cochran, Sampling Techniques, chapter 5, for all of them.
    """

    sizes: Array
    variances: Array
    between: float = 0.0

    def __post_init__(self) -> None:
        if self.sizes.ndim != 1 or self.sizes.shape != self.variances.shape or not len(self.sizes):
            raise ValueError(
                f"sizes and variances must be one number for each stratum; got {self.sizes.shape} and "
                f"{self.variances.shape}"
            )
        if self.sizes.min() < 1 or self.variances.min() < 0:
            raise ValueError("sizes must be at least 1 and variances at least 0: leave empty strata out")
        check_number("between", self.between, 0)

    @classmethod
    def of(cls, values: Array, strata: Array) -> "Partition":
        """The partition of values (N, D), given the stratum of each.

        >>> Partition.of(np.array([[0.0], [2.0], [5.0]]), np.array([0, 0, 1])).variances
        array([1., 0.])
        """
        names, place, sizes = np.unique(strata, return_inverse=True, return_counts=True)
        means = np.zeros((len(names), values.shape[1]))
        np.add.at(means, place, values)
        means /= sizes[:, None]
        squares = np.bincount(place, np.square(values - means[place]).sum(axis=1))
        between = float(sizes @ np.square(means - values.mean(axis=0)).sum(axis=1)) / len(values)
        return cls(sizes, squares / sizes, between)

    @property
    def shares(self) -> Array:
        """p_j."""
        return np.asarray(self.sizes / self.sizes.sum())

    @property
    def total(self) -> float:
        """sigma^2."""
        return float(self.shares @ self.variances) + self.between

    def stratified(self, slots: Array | int = 1) -> float:
        """Exact: sum_j p_j^2 sigma_j^2 / m_j, for m_j independent uniform draws from stratum j; OSS keeps one of each.

        It is what the paper minimises, but not what its appendix compares with uniform sampling: see ``proportional``.
        One draw from each of k strata is better than k uniform ones where strata are of like size, and may be worse by
        a factor of up to k where they are not.
        """
        return float(np.square(self.shares) @ (self.variances / slots))

    def uniform(self, size: int, *, replacement: bool = True) -> float:
        """Exact: sigma^2 / size; times (N - size) / (N - 1) without replacement, as a reservoir draws."""
        check_count("size", size)
        n = float(self.sizes.sum())
        drawn = 1.0 if replacement else max(0.0, n - size) / max(1.0, n - 1.0)
        return self.total / size * drawn

    def proportional(self, size: int) -> float:
        """sum_j p_j sigma_j^2 / size: of ``size`` draws shared out in proportion to n_j; never above ``uniform``.

        The appendix gives this, with the number of strata for ``size``, as the variance of one draw from each. That is
        true only if all strata are of the same size.
        """
        check_count("size", size)
        return float(self.shares @ self.variances) / size

    def neyman(self, size: int) -> float:
        """(sum_j p_j sigma_j)^2 / size: the least that ``size`` draws can have, m_j in proportion to n_j sigma_j."""
        check_count("size", size)
        return float(self.shares @ np.sqrt(self.variances)) ** 2 / size

    def uniform_bound(self, lipschitz: float) -> float:
        """Lemma 1, of a partition of *features*: M^2 E ||x - E x||^2, a bound of the variance of one uniform draw.

        ``lipschitz``: :func:`~pairloom.theory.partner_smoothness`. All partners must have the same label.
        """
        return lipschitz**2 * self.total

    def stratified_bound(self, lipschitz: float) -> float:
        """The same for one draw from each stratum: sum_j p_j^2 M^2 Var_j. Strata must not mix labels."""
        return lipschitz**2 * self.stratified()
