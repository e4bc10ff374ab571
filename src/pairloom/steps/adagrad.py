"""A step of its own for each coordinate."""

from dataclasses import dataclass

import numpy as np

from pairloom.base.typing import Array
from pairloom.steps.averaging import constant
from pairloom.steps.schedules import Schedule

SMALL = 1e-37
"""The square of a coordinate below this is taken for 0: in float32 it would have lost its digits."""


@dataclass(frozen=True)
class AdaGrad(Schedule):
    """eta over the root of a coordinate's squared gradients so far: rare columns take long steps, common ones short.

    With v the gradient of the row's weighted pair loss, without the penalty, times the row's weight (at most 1e6), for
    each coordinate with v_c != 0 (|v_c| > 3e-19):

        G_c <- G_c + v_c^2,    eta_c = eta / sqrt(G_c),
        w_c <- soft(keep(eta_c) w_c - rate(eta_c) v_c, threshold(eta_c))

    with keep, rate and threshold of the penalty (keep is at least 0), then its ball, by the plain Euclidean projection.
    All other coordinates stay exactly as they are: a penalty acts on a coordinate when it is visited, so that a step on
    CSR rows costs the entries of the gradient, with l1 too. Averages are of all coordinates, at every row.

    A gradient moves no coordinate by more than eta, at whatever scale the rows are: no step is cut because it is
    unstable, and no heavy row is split. A row whose loss or gradient is not finite, or so large that its square leaves
    the range of float32, is skipped and counted. v is a sum of differences p_j a_j l'(m_j) (z - B_j), never a
    difference of sums: v_c / sqrt(G_c) would show a rounding error that stands in place of 0 as a full step. With a
    penalty that shrinks, a step is not continuous where v_c = 0: features that agree in float32 and differ in float64
    are not shrunk in the one and are in the other.

    A coordinate that is nothing but rounding takes steps as long as any other: prefer maps whose features are all of
    one size (``RandomFourier``, ``Forest``) to those with ever smaller ones (``Nystroem`` in float32).

    G is state: one number for each weight, of the model's dtype (float64 on CSR rows). In float32 a square below
    6e-8 G_c no longer counts, after 10^7 rows or more. A step costs 10 D flops besides the gradient. Where features
    grow, phi shrinks, and G is scaled with it: to the sum of squares that these gradients would have had.

    Reference: Duchi, Hazan and Singer, Adaptive Subgradient Methods for Online Learning and Stochastic Optimization,
    JMLR 2011, with the composite mirror descent update of a diagonal matrix, and lazy regularisation.

    >>> AdaGrad(0.5).lengths(np.array([0.25, 4.0]))
    array([1.  , 0.25])
    """

    name = "adagrad"
    per_coordinate = True

    @property
    def is_compiled(self) -> bool:
        """Whether compiled engines take it: not what a subclass says otherwise."""
        return type(self).lengths is AdaGrad.lengths

    def at(self, t: Array) -> Array:
        """The most that a coordinate moves."""
        return constant(t, self.eta)

    def lengths(self, squares: Array) -> Array:
        return np.asarray(self.eta / np.sqrt(squares))
