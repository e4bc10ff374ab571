"""Regret of online gradient descent with the gradients of a buffer: bounds, and the smoothness that they need."""

from dataclasses import dataclass

import numpy as np

from pairloom.base.checks import check_number
from pairloom.base.typing import Array
from pairloom.losses import Loss


def smoothness(loss: Loss, squared_distance: float = 2.0) -> float:
    r"""Return M, the Lipschitz constant of the gradient of a pair's loss in w.

    .. math::

        M = \max_m |\ell''(m)| \cdot \max \|z - z'\|^2

    The regret bounds need steps of at most 1 / M.

    Parameters
    ----------
    loss
        l; M is infinite where it has a kink.
    squared_distance
        The largest squared distance of a pair: 2 for unit features of a positive kernel, 2 - 2 k(x, x') (of random
        features, about: their products may be a little below 0); 4 for any unit vectors.

    >>> from pairloom.losses import Square
    >>> smoothness(Square()), 1 / smoothness(Square())  # eta = 1/2 of the paper's grid lies outside its theory
    (4.0, 0.25)
    """
    check_number("squared_distance", squared_distance, 0)
    return float(loss.smoothness * squared_distance)


def partner_smoothness(loss: Loss, norm: float, distance: float = 2.0**0.5) -> float:
    r"""Return the Lipschitz constant of the gradient at a fixed w, as a function of the partner's features.

    .. math::

        \nabla\ell = a\, \ell'(m)(z - x), \quad m = a \langle w, z - x \rangle: \quad
        M_x = \max |\ell''|\, \|w\|\, r + \max_{|m| \le \|w\| r} |\ell'(m)|

    This is the constant that Lemma 1 needs. The paper writes M for it too, but it differs: it grows with ||w||,
    2 + 4 r ||w|| for the square loss, and is infinite for the hinge loss.

    Parameters
    ----------
    loss
        l.
    norm
        ||w||.
    distance
        r, the largest distance of a pair: sqrt(2) for unit features of a positive kernel, 2 for any unit vectors.

    >>> from pairloom.losses import Square
    >>> partner_smoothness(Square(), norm=0.0), partner_smoothness(Square(), norm=3.0, distance=2.0)
    (2.0, 26.0)
    """
    check_number("norm", norm, 0)
    check_number("distance", distance, 0)
    if not np.isfinite(loss.smoothness):
        return np.inf
    # l is convex: |l'| is largest at an end.
    ends = np.abs(loss.derivative(np.array([-norm * distance, norm * distance])))
    return float(loss.smoothness * norm * distance + ends.max())


@dataclass(frozen=True)
class RegretBound:
    r"""A bound on the regret after T rows against the best weights w*, term by term.

    All bounds assume: l is convex, w_1 = 0, a constant step eta, no penalty, and gradients u_t that are unbiased
    given w_{t-1}: E u_t = grad L_t(w_{t-1}). They bound an expectation over the draws of the buffer. The last
    assumption fails for every buffer that w was trained on; it holds exactly only for fresh draws from the whole past.

    Parameters
    ----------
    distance : ||w*||^2 / (2 eta), from the distance of 0 and w*.
    variance : the term of the variance of the gradients.
    gradients : the term of the full gradients, or instead of the loss of w*.
    approximation : the term of the approximation of the kernel by random features.
    """

    distance: float
    variance: float
    gradients: float = 0.0
    approximation: float = 0.0

    @property
    def total(self) -> float:
        """The bound."""
        return self.distance + self.variance + self.gradients + self.approximation

    @classmethod
    def lemma(cls, eta: float, squared_norm: float, variances: Array, squared_gradients: Array) -> "RegretBound":
        r"""Return the bound of Lemma 2 on the loss before the step: sum_t L_t(w_{t-1}) - L_t(w*), for any step.

        .. math::

            \frac{\|w^*\|^2}{2\eta} + \frac{\eta}{2} \sum_t \bigl(V(u_t) + \|\nabla L_t(w_{t-1})\|^2\bigr)

        ``variances`` and ``squared_gradients``: of each row, such as ``errors`` and ``norms`` of
        :func:`pairloom.evaluation.gradient_variance`.

        >>> RegretBound.lemma(0.1, 4.0, np.full(10, 0.5), np.full(10, 1.5))
        RegretBound(distance=20.0, variance=0.25, gradients=0.75, approximation=0.0)
        """
        check_number("eta", eta, 0, open_low=True)
        noise, size = float(np.sum(variances)), float(np.sum(squared_gradients))
        return cls(squared_norm / (2.0 * eta), 0.5 * eta * noise, 0.5 * eta * size)

    @classmethod
    def theorem(
        cls, eta: float, squared_norm: float, variances: Array, smoothness: float, *, approximation: float = 0.0
    ) -> "RegretBound":
        r"""Return the theorem's bound on the loss *after* the step: sum_t L_t(w_t) - L_t(w*), for eta <= 1 / M.

        .. math::

            \frac{\|w^*\|^2}{2\eta} + \eta \sum_t V(u_t)

        The paper states it for L_t(w_{t-1}), which its proof does not bound; that statement is false, and so is the
        regret of order log T for V = 0: see ``smooth``. ``smoothness``: M, of :func:`~pairloom.theory.smoothness`.
        ``approximation``: of :func:`approximation_regret`.
        """
        _check_step(eta, smoothness, 1.0)
        return cls(squared_norm / (2.0 * eta), eta * float(np.sum(variances)), approximation=approximation)

    @classmethod
    def smooth(
        cls, eta: float, squared_norm: float, variances: Array, smoothness: float, best_loss: float
    ) -> "RegretBound":
        r"""Return a bound on the loss *before* the step that holds, for losses l >= 0 and eta < 1 / M.

        .. math::

            \frac{1}{1 - \eta M} \Bigl(\frac{\|w^*\|^2}{2\eta} + \frac{\eta}{2} \sum_t V(u_t)
                + \eta M \sum_t L_t(w^*)\Bigr)

        It follows from the lemma, since ||grad L||^2 <= 2 M L for a smooth L >= 0. Without variance the regret is
        bounded by a constant only if w* has no loss; otherwise eta ~ 1 / sqrt(T) is best, and the bound is of order
        sqrt(T).

        ``best_loss``: the sum of L_t(w*).

        Reference: Srebro, Sridharan and Tewari, Smoothness, Low Noise and Fast Rates, NIPS 2010.
        """
        _check_step(eta, smoothness, 1.0 - 1e-12)
        factor = 1.0 / (1.0 - eta * smoothness)
        return cls(
            factor * squared_norm / (2.0 * eta),
            factor * 0.5 * eta * float(np.sum(variances)),
            factor * eta * smoothness * best_loss,
        )


def _check_step(eta: float, smoothness: float, most: float) -> None:
    check_number("eta", eta, 0, open_low=True)
    if not eta * smoothness <= most:
        raise ValueError(
            f"this bound needs eta of at most 1 / M = {1.0 / smoothness:g}; got eta={eta:g}. RegretBound.lemma holds "
            "for any eta"
        )


def approximation_regret(n_rows: int, l1_norm: float, delta: float, *, curvature: float, slope: float = 0.0) -> float:
    r"""Return a bound on the regret of approximate kernels: sum_t L_t(w̄*) - L_t(w*), w̄* the best in feature space.

    .. math::

        T \Bigl(c\, \|w^*\|_1 \delta + \frac{M}{2} \|w^*\|_1^2 \delta^2\Bigr)

    w* = sum a_ij k(x_i, x_j; .) has the same coefficients in the approximate space, where each margin differs by at
    most ||w*||_1 delta, ||w*||_1 = sum |a_ij|.

    Parameters
    ----------
    n_rows
        T.
    l1_norm
        ||w*||_1.
    delta
        The largest error of the pairwise kernel; see :func:`~pairloom.theory.pairwise_failure`.
    curvature
        M, the largest l''(m).
    slope
        c, the largest |l'(m)| at the margins of w*. The paper assumes 0: that the gradient of every pair vanishes at
        w*, which means that no pair has any loss. With c > 0 and its delta = T^(-1/4) this is of order
        T^(3/4), not sqrt(T).

    >>> [round(approximation_regret(10_000, 1.0, 0.1, curvature=2.0, slope=slope)) for slope in (0.0, 2.0)]
    [100, 2100]
    """
    for name, value in (("l1_norm", l1_norm), ("delta", delta), ("curvature", curvature), ("slope", slope)):
        check_number(name, value, 0)
    return n_rows * (slope * l1_norm * delta + 0.5 * curvature * (l1_norm * delta) ** 2)
