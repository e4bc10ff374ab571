"""Inner products of rows and points, four by four."""

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array

ROWS = 4
"""Rows whose products are computed together."""


@compiled
def products(
    Z: Array, rows: Array, e: int, last: int, points: Array, chosen: Array, count: int, out: Array
) -> None:  # fmt: skip
    """Write <Z[rows[e + r]], points[j]> to out[r, j], for r < 4 and the first ``count`` of the ``chosen`` j.

    Rows after rows[last] are replaced by that row. Every product is a sum of the same terms in the same order, whatever
    is computed next to it, as long as a compiled loop calls this function in one place only: where it is called twice,
    it is compiled twice, and sums may be ordered differently.
    """
    zero, end = Z.dtype.type(0), count - 1
    # No views of rows, whose references would be counted.
    i0, i1, i2, i3 = rows[e], rows[min(e + 1, last)], rows[min(e + 2, last)], rows[min(e + 3, last)]
    for k in range(0, count, 4):
        j0, j1, j2, j3 = chosen[k], chosen[min(k + 1, end)], chosen[min(k + 2, end)], chosen[min(k + 3, end)]
        s00, s01, s02, s03 = zero, zero, zero, zero
        s10, s11, s12, s13 = zero, zero, zero, zero
        s20, s21, s22, s23 = zero, zero, zero, zero
        s30, s31, s32, s33 = zero, zero, zero, zero
        for c in range(Z.shape[1]):
            x0, x1, x2, x3 = Z[i0, c], Z[i1, c], Z[i2, c], Z[i3, c]
            y0, y1, y2, y3 = points[j0, c], points[j1, c], points[j2, c], points[j3, c]
            s00 += x0 * y0
            s01 += x0 * y1
            s02 += x0 * y2
            s03 += x0 * y3
            s10 += x1 * y0
            s11 += x1 * y1
            s12 += x1 * y2
            s13 += x1 * y3
            s20 += x2 * y0
            s21 += x2 * y1
            s22 += x2 * y2
            s23 += x2 * y3
            s30 += x3 * y0
            s31 += x3 * y1
            s32 += x3 * y2
            s33 += x3 * y3
        out[0, j0], out[0, j1], out[0, j2], out[0, j3] = s00, s01, s02, s03
        out[1, j0], out[1, j1], out[1, j2], out[1, j3] = s10, s11, s12, s13
        out[2, j0], out[2, j1], out[2, j2], out[2, j3] = s20, s21, s22, s23
        out[3, j0], out[3, j1], out[3, j2], out[3, j3] = s30, s31, s32, s33
