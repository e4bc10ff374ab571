"""Cosines and sines of all angles of a row in one vectorised pass."""

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array

COS = (-1 / 2, 1 / 24, -1 / 720, 1 / 40320, -1 / 3628800, 1 / 479001600, -1 / 87178291200)
SIN = (-1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800, 1 / 6227020800, -1 / 1307674368000)
"""Coefficients of the Taylor series: on [-pi/4, pi/4] the first omitted term is below 1e-15."""

LONG, SHORT = (1.5703125, 4.83826794896619e-4), (1.57079632673412561417, 6.07710050650619224932e-11)
"""pi / 2 as a sum, for float32 and float64: products of the first term with quadrant numbers are exact."""

FAR = (8192.0, 1048576.0)
"""Rows with angles beyond this, in float32 and float64, are left to the mathematical library."""


@compiled
def cosines_and_sines(angles: Array, offset: Array, block: int, Z: Array) -> None:
    """Fill Z (n, 2 m) with the cosines of a block of ``angles`` - ``offset`` (n, m), its sines, then the next block.

    They are divided by sqrt(m), so that rows of Z have norm 1. ``offset`` may be empty.

    With n the nearest multiple of pi / 2, r = angle - n pi / 2 is computed in two parts, and cos and sin of r by Taylor
    series; n mod 4 says which of them is which, and their signs. The loop has no branches or calls.
    """
    kind = angles.dtype.type
    single = kind(1e-10) + kind(1) == kind(1)
    first, second = kind(LONG[0] if single else SHORT[0]), kind(LONG[1] if single else SHORT[1])
    far, half, four, m = kind(FAR[0] if single else FAR[1]), kind(0.5), kind(4), angles.shape[1]
    share = kind(1 / np.sqrt(m))
    for i in range(angles.shape[0]):
        square = kind(0)
        if offset.shape[0] > 0:
            for j in range(m):
                angles[i, j] -= offset[j]
        for j in range(m):
            square += angles[i, j] * angles[i, j]
        for start in range(0, m, block):
            cosines, sines = Z[i, 2 * start : 2 * start + block], Z[i, 2 * start + block : 2 * (start + block)]
            row = angles[i, start : start + block]
            if not square < far * far:
                for j in range(block):
                    cosines[j], sines[j] = share * np.cos(row[j]), share * np.sin(row[j])
                continue
            for j in range(block):
                turns = row[j] * kind(2 / np.pi)
                n = np.int32(turns + (half if turns > 0 else -half))
                # The bounds change nothing, but without them sums might be reordered, and the two parts become one.
                r = min(max(row[j] - kind(n) * first, -four), four) - kind(n) * second
                t = r * r
                c, s = kind(0), kind(0)
                if not single:
                    c = ((kind(COS[6]) * t + kind(COS[5])) * t + kind(COS[4])) * t
                    s = ((kind(SIN[6]) * t + kind(SIN[5])) * t + kind(SIN[4])) * t
                c = (((c + kind(COS[3])) * t + kind(COS[2])) * t + kind(COS[1])) * t + kind(COS[0])
                s = (((s + kind(SIN[3])) * t + kind(SIN[2])) * t + kind(SIN[1])) * t + kind(SIN[0])
                c = share + share * (c * t)
                r *= share
                s = r + r * (s * t)
                cosine, sine = (s, c) if n & 1 else (c, s)
                cosines[j] = -cosine if (n + 1) & 2 else cosine
                sines[j] = -sine if n & 2 else sine
