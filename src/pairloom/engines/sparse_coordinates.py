"""Steps per coordinate (``AdaGrad``) on CSR rows: the entries of a gradient, and what a step does to the lazy form.

No step shrinks all columns: sigma stays 1 but for a ball.
"""

from pairloom.base.compiled import compiled
from pairloom.base.csr import FOLD
from pairloom.base.typing import Array
from pairloom.engines.coordinates import Adaptive, moved
from pairloom.engines.sparse_kernels import MU, NU, SHRUNK, SIGMA, SQUARE, A, B, collect, fold
from pairloom.steps.adagrad import SMALL


@compiled
def combine_differences(
    scratch: Array, touched: Array, v: Array, cols: Array, vals: Array,
    columns: Array, values: Array, counts: Array, partners: Array, q: Array,
) -> int:  # fmt: skip
    """``coordinates.differences``: v <- sum_k q_k (B_k - z); returns the number of its entries.

    ``scratch``, with room for all columns, is zero before and after.
    """
    n = 0
    for k in range(partners.shape[0]):
        if q[k] != 0:
            j = partners[k]
            add_difference(scratch, q[k], columns[j, : counts[j]], values[j, : counts[j]], cols, vals)
    for k in range(partners.shape[0]):
        if q[k] != 0:
            n = collect(scratch, touched, v, n, columns[partners[k], : counts[partners[k]]])
    return collect(scratch, touched, v, n, cols)


@compiled
def add_difference(a: Array, factor: float, cols: Array, vals: Array, less_cols: Array, less_vals: Array) -> None:
    """a <- a + factor (row - less), both ordered by column."""
    i, e = 0, 0
    while i < cols.shape[0] or e < less_cols.shape[0]:
        own = e == less_cols.shape[0] or (i < cols.shape[0] and cols[i] <= less_cols[e])
        less = i == cols.shape[0] or (e < less_cols.shape[0] and less_cols[e] <= cols[i])
        column = cols[i] if own else less_cols[e]
        x = 1.0 * vals[i] if own else 0.0
        x -= 1.0 * less_vals[e] if less else 0.0
        a[column] += factor * x
        i += own
        e += less


@compiled
def step_entries(
    w: Array, u: Array, f: Array, center: Array, touched: Array, v: Array, weight: float, k: int, adaptive: Adaptive
) -> None:
    """``coordinates.step_coordinates``; w_bar stays where it is."""
    squares, eta, alpha, l1, proximal = adaptive
    if not abs(f[SIGMA]) > FOLD or abs(f[A]) > SHRUNK * abs(f[SIGMA]):
        fold(w, u, f)
    sigma, back = f[SIGMA], f[A] / f[B]
    for e in range(touched.shape[0]):
        c, x = touched[e], weight * v[e]
        if x * x > SMALL:
            squares[k, c] += x * x
            old = sigma * w[c]
            new = moved(old, x, squares[k, c], eta, alpha, l1, proximal)
            by = new / sigma - w[c]
            w[c] = new / sigma
            f[SQUARE] += new * new - old * old
            if u.shape[0] > 0:
                u[c] -= back * by
            if center.shape[0] > 0:
                f[MU] += by * center[c]
                f[NU] -= back * by * center[c]
