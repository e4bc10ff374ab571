"""Compiled loops over CSR rows: dense points that are written at the end of a call, and scores."""

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array


@compiled
def write_points(points: Array, center: Array, columns: Array, values: Array, counts: Array, stale: Array) -> None:
    """The dense points of the slots that are out of date, less m."""
    for j in np.flatnonzero(stale):
        if center.shape[0] > 0:
            for c in range(points.shape[1]):
                points[j, c] = -center[c]
        else:
            points[j, :] = 0.0
        for e in range(counts[j]):
            points[j, columns[j, e]] += values[j, e]
    stale[:] = False


@compiled
def score_rows(data: Array, indices: Array, indptr: Array, w: Array, scores: Array) -> None:
    """<w, z> for each row."""
    for i in range(scores.shape[0]):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += float(w[indices[e]]) * float(data[e])
        scores[i] = total
