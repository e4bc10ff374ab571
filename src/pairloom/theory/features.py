"""Random Fourier features: the number needed, and the probability of a kernel error above delta.

D components are D / 2 frequencies q_i: k_hat(x, x') = (2 / D) sum_i cos(<q_i, x - x'>). The pairwise kernel of two
pairs is k(x1, x1') + k(x2, x2') - k(x1, x2') - k(x2, x1'), and its estimate is the same expression in k_hat.
"""

from math import ceil, exp, log, sqrt
from typing import Literal

from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.typing import Array

Form = Literal["corrected", "printed"]
"""A statement as the paper prints it, or a corrected one."""

Decay = Literal["slow", "polynomial", "geometric"]


def features_needed(n_rows: int, decay: Decay = "polynomial", power: float = 1.0) -> int:
    r"""Return D for a stream of T rows, by the decay of the eigenvalues of the kernel operator.

    ============ ================= =========================
    decay        eigenvalues       D
    ============ ================= =========================
    slow         1 / i             5 T ln(2 T)
    polynomial   1 / i^(2 power)   T^(1 / (2 power)) ln T
    geometric    r^(-i), r > 1     (ln T)^2
    ============ ================= =========================

    The default, sqrt(T) ln T, is the paper's choice for the Gaussian kernel. All are of order d ln d, with d the
    :func:`degrees_of_freedom` at the penalty 1 / T. This is enough for frequencies drawn by leverage scores; drawn from
    the kernel's spectrum, as random Fourier features are, up to T ln T may be needed. ("r^i, r > 1" is the paper's
    misprint for r^(-i).)

    Reference: Bach, On the Equivalence between Kernel Quadrature Rules and Random Feature Expansions, JMLR 2017.

    >>> features_needed(768), features_needed(581_012), features_needed(768, "geometric")
    (185, 10117, 45)
    """
    check_count("n_rows", n_rows)
    check_choice("decay", decay, Decay)
    check_number("power", power, 0.5)
    if decay == "slow":
        return ceil(5.0 * n_rows * log(2.0 * n_rows))
    root = sqrt(n_rows) if power == 1 else n_rows ** (0.5 / power)
    return max(1, ceil(root * log(n_rows) if decay == "polynomial" else log(n_rows) ** 2))


def degrees_of_freedom(eigenvalues: Array, penalty: float) -> float:
    """Return sum_i mu_i / (mu_i + penalty): the effective dimension of the kernel at a penalty.

    >>> import numpy as np
    >>> round(degrees_of_freedom(np.array([1.0, 1.0, 1e-9]), 1e-3), 3)
    1.998
    """
    check_number("penalty", penalty, 0, open_low=True)
    return float((eigenvalues / (eigenvalues + penalty)).sum())


def pointwise_failure(n_components: int, delta: float) -> float:
    """Return the bound 2 exp(-D delta^2 / 4) on P(|k_hat - k| > delta) for two given points, by Hoeffding's inequality.

    >>> round(pointwise_failure(1024, 0.1), 3)
    0.155
    """
    check_count("n_components", n_components)
    check_number("delta", delta, 0)
    return min(1.0, 2.0 * exp(-n_components * delta**2 / 4.0))


def pairwise_failure(n_components: int, delta: float, *, form: Form = "corrected") -> float:
    """Return the bound 2 exp(-D delta^2 / 64) on P(|k_hat - k| > delta) of the pairwise kernel, for two given pairs.

    By Hoeffding's inequality: each frequency adds a number in [-4, 4]. (The appendix bounds each of the four terms
    by delta / 4, which gives a factor of 8 instead of 2.) "printed", 8 exp(-D^2 delta / 2), has the square
    in the wrong place, and is false.

    >>> round(pairwise_failure(4096, 0.2), 3), round(pairwise_failure(4, 0.5, form="printed"), 3)
    (0.155, 0.147)
    """
    check_count("n_components", n_components)
    check_number("delta", delta, 0)
    check_choice("form", form, Form)
    if form == "printed":
        return min(1.0, 8.0 * exp(-(n_components**2) * delta / 2.0))
    return min(1.0, 2.0 * exp(-n_components * delta**2 / 64.0))


def uniform_failure(
    n_components: int,
    delta: float,
    *,
    n_features: int,
    diameter: float,
    spread: float,
    pairwise: bool = True,
    form: Form = "corrected",
) -> float:
    r"""Return a bound on P(|k_hat - k| > delta for some points of a set), which the theorem omits.

    .. math::

        2^8 \Bigl(\frac{\sigma R}{\delta}\Bigr)^2 \exp\Bigl(-\frac{D \delta^2}{8(d + 2)}\Bigr)
        \quad\text{printed: } 2^8 \frac{\sigma R}{\delta} \exp\Bigl(-\frac{D \delta^2}{4(d + 2)}\Bigr)

    The first is Rahimi and Recht's claim with D / 2 frequencies; for the pairwise kernel, with delta / 4 for delta,
    since four errors add up. The printed form lacks the square, counts D frequencies, and does not divide by 4.

    Parameters
    ----------
    n_components
        D.
    delta
        The error.
    n_features
        d, columns of x.
    diameter
        R, of a set that contains all rows.
    spread
        sigma, the root of E ||q||^2; sqrt(2 gamma d) of the Gaussian kernel exp(-gamma ||x - x'||^2).
    pairwise
        Whether the error is that of the pairwise kernel, or of k.
    form
        "corrected" or "printed".

    Reference: Rahimi and Recht, Random Features for Large-Scale Kernel Machines, NIPS 2007, claim 1.

    >>> sizes = {"n_features": 1, "diameter": 1.0, "spread": 1.0, "pairwise": False}
    >>> round(uniform_failure(1024, 0.5, **sizes), 3), round(uniform_failure(1024, 0.5, form="printed", **sizes), 3)
    (0.024, 0.0)
    """
    check_count("n_components", n_components)
    check_count("n_features", n_features)
    check_number("delta", delta, 0, open_low=True)
    check_choice("form", form, Form)
    if form == "printed":
        size, rate = spread * diameter / delta, n_components * delta**2 / (4.0 * (n_features + 2))
    else:
        delta = delta / 4.0 if pairwise else delta
        # For sigma R < delta the square would be smaller than the term it bounds.
        size, rate = max(1.0, spread * diameter / delta) ** 2, n_components * delta**2 / (8.0 * (n_features + 2))
    return min(1.0, 2.0**8 * size * exp(-rate))


def features_for_error(delta: float, failure: float = 0.05) -> int:
    """Return the smallest even D for which ``pairwise_failure`` is at most ``failure``: 64 ln(2 / failure) / delta^2.

    With the paper's delta = T^(-1/4) it is 64 ln(2 / failure) sqrt(T): of order sqrt(T) for given pairs, and
    sqrt(T) ln T for all pairs of T rows at once, with ``failure`` divided by their number.

    >>> features_for_error(10_000 ** -0.25), features_for_error(160_000 ** -0.25)
    (23610, 94436)
    """
    check_number("delta", delta, 0, open_low=True)
    check_number("failure", failure, 0, 1, open_low=True)
    return 2 * ceil(32.0 * log(2.0 / failure) / delta**2)
