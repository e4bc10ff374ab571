"""How well all scores of a stream rank, in bounded memory, with a certificate."""

from dataclasses import KW_ONLY, field
from fractions import Fraction
from typing import Any, Self

import numpy as np

from pairloom.base.checks import check_number
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.metrics.auc import pairs_in_order
from pairloom.metrics.digest import DIGEST_BYTES, REST, Digest, keys_of
from pairloom.metrics.inputs import checked

LEAST_BYTES = 2 * DIGEST_BYTES
"""What two digests take that have room for one row each."""

UNIT = Fraction(1, 2**52)

EXACT = 2.0**52
"""Pairs of whole weights that weigh less than this together are added up without rounding: ties are halves."""


@node
class StreamingAUC:
    r"""Area under the curve of all rows so far, the share of pairs in order by weight, with bounds that hold for sure.

    .. math:: \sum_{i \in P, j \in N} w_i w_j \left([s_i > s_j] + \tfrac12 [s_i = s_j]\right)
        / \sum_{i \in P, j \in N} w_i w_j

    Each class has a :class:`~pairloom.metrics.digest.Digest`, in which light neighbours become one interval of scores.
    A pair whose intervals are apart is in order or not; if they overlap, it counts 0 for the lower bound, 1 for
    the upper one and 1/2 for the value. So bounds are ends: each row of the positives at the lower end of its interval
    and each of the negatives at the upper one, and the other way round. Equal scores that are still rows of their own
    are a tie, as ever.

    Exact while no two intervals overlap: so for up to ``max_bytes`` / 42 different scores of each class, however many
    rows. The bounds are then equal, or the doubles below and above the area. Beyond, hi - lo is about 80 /
    ``max_bytes``, as measured on 200,000 rows of many kinds; up to three times that where scores drift, and eight times
    that where 10^6 scores close in on a point through 40 powers of two. There is no randomness. Any cuts into calls
    give the same bits; any order of rows or merges, and any rising function of the scores, gives bounds that hold the
    same area.

    Rounding: with whole weights all sums are exact as long as the pairs weigh less than 2^52 together. Otherwise each
    addition is off by less than 2^-53 of its result; the bounds are widened by more than all of these together, by
    about 10^-11, and never beyond 0 and 1.

    Parameters
    ----------
    max_bytes
        Most bytes of the arrays of the state: 168 for each row of the room of the two digests. At least 168.
    pos_label
        The label of positives, all others being negative. Without it True and 1 are positive, False, 0 and -1
        negative, and any other label is refused.

    The digests, of positives and negatives, are the state.

    Cost: a few microseconds for each row of a large batch; O(m log m) for each value asked for, m = ``max_bytes`` / 17.

    Reference: Shrivastava, Buragohain, Agrawal and Suri, Medians and beyond: new aggregation techniques for sensor
    networks, SenSys 2004.

    >>> auc = StreamingAUC().update([1, 0, 0, 1], [0.9, 0.9, 0.2, 0.5])
    >>> auc.value, auc.bounds, auc.counts
    (0.625, (0.625, 0.625), (2, 2))
    >>> rng = np.random.default_rng(0)
    >>> small = StreamingAUC(10_000).update(np.arange(10_000) % 2, rng.normal(size=10_000) + np.arange(10_000) % 2)
    >>> low, high = small.bounds
    >>> round(small.value, 3), round(low, 3), round(high, 3)
    (0.758, 0.753, 0.762)
    """

    max_bytes: int = 1_000_000
    _: KW_ONLY
    pos_label: Any = None
    digests: list[Digest] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        check_number("max_bytes", self.max_bytes, LEAST_BYTES)
        if not self.digests:
            room = int(self.max_bytes) // LEAST_BYTES
            self.digests = [Digest(room), Digest(room)]

    def update(self, y_true: Any, score: Any, sample_weight: Any = None) -> Self:
        """Take in rows, one or many; an error changes nothing. Returns the metric itself."""
        positive, scores, weights = checked(y_true, score, sample_weight, self.pos_label)
        keys = keys_of(scores)
        for digest, side in zip(self.digests, (positive, ~positive), strict=True):
            digest.add(keys[side], weights[side])
        return self

    def merge(self, other: "StreamingAUC") -> Self:
        """Take in the rows that another one has seen, which stays as it was. Returns the metric itself."""
        for name in ("max_bytes", "pos_label"):
            mine, its = getattr(self, name), getattr(other, name)
            if mine != its:
                raise ValueError(f"only metrics of one {name} can be merged: here it is {mine!r}, there {its!r}")
        for digest, its in zip(self.digests, other.digests, strict=True):
            digest.merge(its)
        return self

    @property
    def value(self) -> float:
        """The middle of the bounds: pairs in doubt count half. NaN with one class."""
        if min(self.counts) == 0:
            return np.nan
        found, total = self._in_order()
        lo, hi = found / total
        return 0.5 * float(lo + hi)

    @property
    def bounds(self) -> tuple[float, float]:
        """(lo, hi) that hold the exact area; NaN with one class."""
        if min(self.counts) == 0:
            return np.nan, np.nan
        found, total = self._in_order()
        lo, hi = (Fraction(weight) / Fraction(total) for weight in sorted(found.tolist()))
        slack = self._slack(total)
        return _below(lo * (1 - slack)), min(1.0, -_below(-hi * (1 + slack)))

    @property
    def counts(self) -> tuple[int, int]:
        """Positives and negatives so far, by number of rows."""
        positive, negative = self.digests
        return positive.rows, negative.rows

    def _slack(self, total: float) -> Fraction:
        """How much sums of the weights may be off by rounding, relative to the area; 0 if all of them are exact."""
        if total < EXACT and all(digest.whole for digest in self.digests):
            return Fraction(0)
        # Weights, twice above and twice below the line; running sums, the product and both totals. Twice that is safe.
        additions = sum(4 * digest.sums + 2 * (len(digest.start) + digest.waiting + 4) for digest in self.digests)
        return UNIT * additions

    def _in_order(self) -> tuple[Array, float]:
        """Weight of the pairs in order at both ends, and of all pairs.

        First with each positive at the low end of its node and each negative at the high end; then the other way round.
        """
        (low, level, weight), (other_low, other_level, other_weight) = (digest.nodes() for digest in self.digests)
        high, other_high = low | REST[level], other_low | REST[other_level]
        ends = np.stack([np.append(low, other_high), np.append(high, other_low)], axis=1)
        # Places in the order, not keys: 64 bits are more than a double has.
        places = np.unique(ends, return_inverse=True)[1].reshape(ends.shape)
        return pairs_in_order(places, np.arange(len(ends)) < len(low), np.append(weight, other_weight))


def _below(x: Fraction) -> float:
    """The largest double that is not above x.

    >>> _below(Fraction(5, 8)), _below(Fraction(2, 3)), -_below(-Fraction(2, 3))
    (0.625, 0.6666666666666666, 0.6666666666666667)
    """
    near = float(x)
    return near if near <= x else float(np.nextafter(near, -np.inf))
