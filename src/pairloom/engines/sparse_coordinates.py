"""Steps per coordinate (``AdaGrad``) on CSR rows: the entries of a gradient, and what a step does to the lazy form.

No step shrinks all columns: sigma stays 1 but for a ball.
"""

from pairloom.base.compiled import compiled
from pairloom.base.csr import FOLD
from pairloom.base.typing import Array
from pairloom.engines.arguments import Partners
from pairloom.engines.coordinates import Adaptive, moved
from pairloom.engines.sparse_kernels import (
    MU,
    NU,
    SHRUNK,
    SIGMA,
    SQUARE,
    A,
    B,
    Entries,
    Lists,
    Room,
    collect,
    fold,
)
from pairloom.steps.adagrad import SMALL


@compiled
def combine_differences(room: Room, z: Entries, points: Lists, partners: Partners) -> int:
    """``coordinates.differences``: v <- sum_k q_k (B_k - z); returns the number of its entries."""
    columns, values, counts = points.columns, points.values, points.counts
    scratch, touched, v, row = room.scratch, room.touched, room.v, room.row
    cols, vals, slot, q = z.cols, z.vals, partners.slot, partners.q
    n = 0
    for e in range(cols.shape[0]):
        row[cols[e]] = vals[e]
    for k in range(slot.shape[0]):
        if q[k] != 0:
            j = slot[k]
            add_difference(scratch, q[k], columns[j, : counts[j]], values[j, : counts[j]], cols, row, room.seen)
    for e in range(cols.shape[0]):
        row[cols[e]] = 0.0
    for k in range(slot.shape[0]):
        if q[k] != 0:
            n = collect(scratch, touched, v, n, columns[slot[k], : counts[slot[k]]])
    return collect(scratch, touched, v, n, cols)


@compiled
def add_difference(
    a: Array, factor: float, cols: Array, vals: Array, row_cols: Array, row: Array, seen: Array
) -> None:  # fmt: skip
    """a <- a + factor (point - row); the last of ``seen`` counts points, the others name the last one with a column."""
    stamp = seen[seen.shape[0] - 1] + 1
    seen[seen.shape[0] - 1] = stamp
    for e in range(cols.shape[0]):
        c = cols[e]
        a[c] += factor * (vals[e] - row[c])
        seen[c] = stamp
    for e in range(row_cols.shape[0]):
        c = row_cols[e]
        if seen[c] != stamp:
            a[c] -= factor * row[c]


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
