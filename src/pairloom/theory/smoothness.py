"""M: how fast the gradient of a pair's loss changes, with the weights, and with the partner."""

import numpy as np

from pairloom.base.checks import check_number
from pairloom.losses import Loss


def smoothness(loss: Loss, squared_distance: float = 2.0) -> float:
    r"""M of w: the Lipschitz constant of the gradient of a pair's loss in w.

    .. math::

        M = \max_m |\ell''(m)| \cdot \max \|z - z'\|^2

    The regret bounds ask for steps of at most 1 / M.

    Parameters
    ----------
    loss
        l; M is infinite where it has a kink.
    squared_distance
        The largest squared distance of a pair: 2 for unit features of a positive kernel, 2 - 2 k(x, x') (of random
        features, about: their products may be a little below 0); 4 for any unit vectors.

    >>> from pairloom import Square
    >>> smoothness(Square()), 1 / smoothness(Square())  # eta = 1/2 of the paper's grid lies outside its theory
    (4.0, 0.25)
    """
    check_number("squared_distance", squared_distance, 0)
    return float(loss.smoothness * squared_distance)


def partner_smoothness(loss: Loss, norm: float, distance: float = 2.0**0.5) -> float:
    r"""M of a partner: the Lipschitz constant of the gradient at a fixed w as a function of the partner's features.

    .. math::

        \nabla\ell = a\, \ell'(m)(z - x), \quad m = a \langle w, z - x \rangle: \quad
        M_x = \max |\ell''|\, \|w\|\, r + \max_{|m| \le \|w\| r} |\ell'(m)|

    This is the constant that Lemma 1 needs. The paper writes M for it too, but it is another one: it grows with ||w||,
    2 + 4 r ||w|| for the square loss, and is infinite for the hinge loss.

    Parameters
    ----------
    loss
        l.
    norm
        ||w||.
    distance
        r, the largest distance of a pair: sqrt(2) for unit features of a positive kernel, 2 for any unit vectors.

    >>> from pairloom import Square
    >>> partner_smoothness(Square(), norm=0.0), partner_smoothness(Square(), norm=3.0, distance=2.0)
    (2.0, 26.0)
    """
    check_number("norm", norm, 0)
    check_number("distance", distance, 0)
    if not np.isfinite(loss.smoothness):
        return np.inf
    # l is convex, so that l' is largest, in either direction, at an end.
    ends = np.abs(loss.derivative(np.array([-norm * distance, norm * distance])))
    return float(loss.smoothness * norm * distance + ends.max())
