"""Bounds of the regret of online gradient descent with the gradients of a buffer."""

from dataclasses import dataclass

import numpy as np

from pairloom.base.checks import check_number
from pairloom.base.typing import Array


@dataclass(frozen=True)
class RegretBound:
    r"""A bound of the regret after T rows against the best weights w*, term by term.

    What all of them assume: l is convex, w_1 = 0, a constant step eta, no penalty, and gradients u_t that are unbiased
    given w_{t-1}: E u_t = grad L_t(w_{t-1}). They bound an expectation over the draws of the buffer. The last
    assumption fails for every buffer that w was trained on; exactly it holds for fresh draws from all of the past only.

    Parameters
    ----------
    distance : ||w*||^2 / (2 eta), the way from 0 to w*.
    variance : of the gradients.
    gradients : of the full gradients, or of the loss of w* in their place.
    approximation : of the kernel by random features.
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
        r"""Lemma 2, of the loss before the step: sum_t L_t(w_{t-1}) - L_t(w*), for any step and any convex loss.

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
        r"""The theorem, of the loss *after* the step: sum_t L_t(w_t) - L_t(w*), for steps eta <= 1 / M.

        .. math::

            \frac{\|w^*\|^2}{2\eta} + \eta \sum_t V(u_t)

        The paper states it for L_t(w_{t-1}), which its proof does not bound; there it is false, and so is the regret of
        order log T where V = 0: see ``smooth``. ``smoothness``: M, of :func:`~pairloom.theory.smoothness`.
        ``approximation``: of :func:`approximation_regret`.
        """
        _check_step(eta, smoothness, 1.0)
        return cls(squared_norm / (2.0 * eta), eta * float(np.sum(variances)), approximation=approximation)

    @classmethod
    def smooth(
        cls, eta: float, squared_norm: float, variances: Array, smoothness: float, best_loss: float
    ) -> "RegretBound":
        r"""What holds of the loss *before* the step in the theorem's place: for losses l >= 0 and eta < 1 / M.

        .. math::

            \frac{1}{1 - \eta M} \Bigl(\frac{\|w^*\|^2}{2\eta} + \frac{\eta}{2} \sum_t V(u_t)
                + \eta M \sum_t L_t(w^*)\Bigr)

        From the lemma, since ||grad L||^2 <= 2 M L of a smooth L >= 0. Without variance the regret is bounded by a
        constant only where w* has no loss; else eta ~ 1 / sqrt(T) is best, and the bound of order sqrt(T).

        ``best_loss``: the sum of L_t(w*).

        Reference: Srebro, Sridharan and Tewari, Smoothness, Low Noise and Fast Rates, NIPS 2010.
        """
        _check_step(eta, smoothness, 1.0 - 1e-12)
        times = 1.0 / (1.0 - eta * smoothness)
        return cls(
            times * squared_norm / (2.0 * eta),
            times * 0.5 * eta * float(np.sum(variances)),
            times * eta * smoothness * best_loss,
        )


def _check_step(eta: float, smoothness: float, most: float) -> None:
    check_number("eta", eta, 0, open_low=True)
    if not eta * smoothness <= most:
        raise ValueError(
            f"this bound is for steps of at most 1 / M = {1.0 / smoothness:g}; got eta={eta:g}. RegretBound.lemma "
            "takes any step"
        )


def approximation_regret(n_rows: int, l1_norm: float, delta: float, *, curvature: float, slope: float = 0.0) -> float:
    r"""What T rows lose because kernels are approximated: sum_t L_t(w̄*) - L_t(w*), w̄* the best in the features' space.

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
        c, the largest |l'(m)| at the margins of w*. The paper has 0 here: it assumes that every pair's gradient
        vanishes at w*, which means that no pair has any loss. With c > 0 and its delta = T^(-1/4) this is of order
        T^(3/4), not sqrt(T).

    >>> [round(approximation_regret(10_000, 1.0, 0.1, curvature=2.0, slope=slope)) for slope in (0.0, 2.0)]
    [100, 2100]
    """
    for name, value in (("l1_norm", l1_norm), ("delta", delta), ("curvature", curvature), ("slope", slope)):
        check_number(name, value, 0)
    return n_rows * (slope * l1_norm * delta + 0.5 * curvature * (l1_norm * delta) ** 2)
