"""How many random features are enough."""

from math import ceil, log, sqrt
from typing import Literal

from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.typing import Array

Decay = Literal["slow", "polynomial", "geometric"]


def features_needed(n_rows: int, decay: Decay = "polynomial", power: float = 1.0) -> int:
    r"""D for a stream of T rows, by how fast the eigenvalues of the kernel's operator fall.

    ============ ================= =========================
    decay        eigenvalues       D
    ============ ================= =========================
    slow         1 / i             5 T ln(2 T)
    polynomial   1 / i^(2 power)   T^(1 / (2 power)) ln T
    geometric    r^(-i), r > 1     (ln T)^2
    ============ ================= =========================

    The default, sqrt(T) ln T, is what the paper takes for the Gaussian kernel. All are of the order of d ln d, with d
    the :func:`degrees_of_freedom` at the penalty 1 / T. That many are enough if frequencies are drawn by their
    leverage; drawn from the kernel's own spectrum, as random Fourier features are, up to T ln T may be needed. ("r^i,
    r > 1" is the paper's misprint for r^(-i).)

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
    """sum_i mu_i / (mu_i + penalty): how many directions of the kernel's space rise above a penalty.

    >>> import numpy as np
    >>> round(degrees_of_freedom(np.array([1.0, 1.0, 1e-9]), 1e-3), 3)
    1.998
    """
    check_number("penalty", penalty, 0, open_low=True)
    return float((eigenvalues / (eigenvalues + penalty)).sum())
