"""Strata: the variance of a gradient from a stratified or a uniform sample, and the number of strata."""

from dataclasses import dataclass
from math import ceil, floor, inf

import numpy as np

from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.typing import Array
from pairloom.theory.features import Form


@dataclass(frozen=True, eq=False)
class Partition:
    r"""N values in strata: the size n_j and the variance of each, and the variance between their means.

    The values are the gradients of the pairs of one row with all its partners; a variance is the trace of a covariance,
    E ||v - E v||^2, divided by n and not n - 1. The mean over a sample estimates the mean of all N. With weights
    p_j = n_j / N:

    .. math::

        \sigma^2 = \sum_j p_j \sigma_j^2 + \sum_j p_j \|\mu_j - \mu\|^2

    Parameters
    ----------
    sizes : n_j.
    variances : sigma_j^2.
    between : the last sum; 0 if all strata have the same mean.

    With sizes (97, 1, 1, 1), equal means, and all variance in the large stratum, four uniform draws are four times as
    good as one from each stratum.

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
        """Return the partition of values (N, D), given the stratum of each.

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
        """Return the variance sum_j p_j^2 sigma_j^2 / m_j of m_j independent uniform draws from stratum j; 1 in OSS.

        The paper minimises this, but its appendix compares another quantity with uniform sampling: see
        ``proportional``. One draw from each of k strata is better than k uniform ones if strata are of similar size,
        and may be worse by a factor of up to k if not.
        """
        return float(np.square(self.shares) @ (self.variances / slots))

    def uniform(self, size: int, *, replacement: bool = True) -> float:
        """Return the variance sigma^2 / size; times (N - size) / (N - 1) without replacement, as in a reservoir."""
        check_count("size", size)
        n = float(self.sizes.sum())
        drawn = 1.0 if replacement else max(0.0, n - size) / max(1.0, n - 1.0)
        return self.total / size * drawn

    def proportional(self, size: int) -> float:
        """Return sum_j p_j sigma_j^2 / size, for ``size`` draws allocated by n_j; never above ``uniform``.

        The appendix states this, with ``size`` equal to the number of strata, as the variance of one draw from each
        stratum. That is true only if all strata have the same size.
        """
        check_count("size", size)
        return float(self.shares @ self.variances) / size

    def neyman(self, size: int) -> float:
        """Return (sum_j p_j sigma_j)^2 / size: the minimum variance of ``size`` draws, allocated by n_j sigma_j."""
        check_count("size", size)
        return float(self.shares @ np.sqrt(self.variances)) ** 2 / size

    def uniform_bound(self, lipschitz: float) -> float:
        """Return the bound of Lemma 1 on the variance of one uniform draw: M^2 E ||x - E x||^2.

        This is for a partition of *features*; all partners must have the same label. ``lipschitz``:
        :func:`~pairloom.theory.partner_smoothness`.
        """
        return lipschitz**2 * self.total

    def stratified_bound(self, lipschitz: float) -> float:
        """Return the bound for one draw from each stratum: sum_j p_j^2 M^2 Var_j. Strata must not mix labels."""
        return lipschitz**2 * self.stratified()


def strata_bound(
    radius: float, distance: float, dim: int, *, n_rows: int | None = None, form: Form = "corrected"
) -> float:
    r"""Return a bound on the number of strata in a ball of R^d, whose centres are farther than epsilon from each other.

    .. math::

        \kappa \le (1 + 2R/\epsilon)^d, \quad\text{printed: } \lceil (R/\epsilon)^d \rceil

    Centres farther than epsilon apart have disjoint balls of radius epsilon / 2, all inside a ball of radius
    R + epsilon / 2: hence the first. The second assumes that balls of radius epsilon are disjoint; the points -R, 0, R
    of a line, with epsilon = 0.9 R, are a counterexample. Both are for fixed centres: with moving centres, as in the
    method, the only bound is the number of rows. In D features the bound is too large to be useful: set ``max_strata``.

    Parameters
    ----------
    radius
        R, of a ball that contains all points; 1 for unit features.
    distance
        epsilon; ``Strata(eps=...)`` is its square.
    dim
        d.
    n_rows
        Rows so far, an upper bound too; None: any number.
    form
        "corrected" or "printed".

    >>> strata_bound(1.0, 0.9, 1), strata_bound(1.0, 0.9, 1, form="printed")
    (3.0, 2.0)
    """
    check_number("radius", radius, 0)
    check_number("distance", distance, 0, open_low=True)
    check_count("dim", dim)
    check_choice("form", form, Form)
    corrected = form == "corrected"
    try:
        count = (1.0 + 2.0 * radius / distance if corrected else radius / distance) ** dim
        whole = float(floor(count) if corrected else max(1, ceil(count)))
    except OverflowError:
        whole = inf
    return whole if n_rows is None else min(float(n_rows), whole)
