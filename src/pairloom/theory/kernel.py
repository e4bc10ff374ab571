"""How far random Fourier features are from their kernel: probabilities of an error above delta.

D components are D / 2 frequencies q_i: k_hat(x, x') = (2 / D) sum_i cos(<q_i, x - x'>). The pairwise kernel of two
pairs is k(x1, x1') + k(x2, x2') - k(x1, x2') - k(x2, x1'), and its estimate that of k_hat.
"""

from math import ceil, exp, log

from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.theory.strata import Form


def pointwise_failure(n_components: int, delta: float) -> float:
    """P(|k_hat - k| > delta) for two given points is at most 2 exp(-D delta^2 / 4), by Hoeffding's inequality.

    >>> round(pointwise_failure(1024, 0.1), 3)
    0.155
    """
    check_count("n_components", n_components)
    check_number("delta", delta, 0)
    return min(1.0, 2.0 * exp(-n_components * delta**2 / 4.0))


def pairwise_failure(n_components: int, delta: float, *, form: Form = "corrected") -> float:
    """P(|k_hat - k| > delta) of the pairwise kernel, for two given pairs, is at most 2 exp(-D delta^2 / 64).

    By Hoeffding's inequality: each frequency adds a number in [-4, 4]. (The appendix takes each of the four terms by
    itself, within delta / 4, which gives a factor of 8 in place of 2.) "printed", 8 exp(-D^2 delta / 2), has the square
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
    r"""P(|k_hat - k| > delta for some points of a set): the probability that the theorem leaves out.

    .. math::

        2^8 \Bigl(\frac{\sigma R}{\delta}\Bigr)^2 \exp\Bigl(-\frac{D \delta^2}{8(d + 2)}\Bigr)
        \quad\text{printed: } 2^8 \frac{\sigma R}{\delta} \exp\Bigl(-\frac{D \delta^2}{4(d + 2)}\Bigr)

    The first is Rahimi and Recht's claim with D / 2 for the number of frequencies; of the pairwise kernel, with
    delta / 4 for delta, since four errors add up. What is printed has no square, counts D frequencies, and no 4.

    Parameters
    ----------
    n_components
        D.
    delta
        The error.
    n_features
        d, columns of x.
    diameter
        R, of a set that holds all rows.
    spread
        sigma, the root of E ||q||^2; sqrt(2 gamma d) of the Gaussian kernel exp(-gamma ||x - x'||^2).
    pairwise
        Whether it is the error of the pairwise kernel, or of k itself.
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
        # Where sigma R < delta the square would be less than what it stands for.
        size, rate = max(1.0, spread * diameter / delta) ** 2, n_components * delta**2 / (8.0 * (n_features + 2))
    return min(1.0, 2.0**8 * size * exp(-rate))


def features_for_error(delta: float, failure: float = 0.05) -> int:
    """The least even D for which ``pairwise_failure`` is at most ``failure``: 64 ln(2 / failure) / delta^2.

    With the paper's delta = T^(-1/4) it is 64 ln(2 / failure) sqrt(T): sqrt(T) times a constant for given pairs, and
    times ln T for all pairs of T rows at once, ``failure`` being divided by their number.

    >>> features_for_error(10_000 ** -0.25), features_for_error(160_000 ** -0.25)
    (23610, 94436)
    """
    check_number("delta", delta, 0, open_low=True)
    check_number("failure", failure, 0, 1, open_low=True)
    return 2 * ceil(32.0 * log(2.0 / failure) / delta**2)
