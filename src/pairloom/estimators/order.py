"""The order of rows: labels that come in blocks, and shuffling."""

import warnings
from typing import Any

import numpy as np
from scipy.special import gammaln

from pairloom.base.randomness import fresh_seed, next_seed
from pairloom.base.typing import Array

RARE_ORDER = 1e-4
"""Share of the orders of the same labels that have as few blocks, below which there is a warning."""

MAX_SHARE_OF_BLOCKS = 0.1
"""There is no warning with more than this share of the blocks of a random order: streams may have long blocks."""


class OrderWarning(UserWarning):
    """Labels come in blocks that a stream would not have."""


def random_order(random_state: Any, n: int) -> Array:
    """Return a random order of n rows, which depends on the seed."""
    seed = next_seed(random_state)
    return np.random.default_rng((fresh_seed() if seed is None else seed, 0x50FF1E)).permutation(n)


def warn_of_order(labels: Array, stacklevel: int) -> None:
    """Warn if the rows of a class come in far fewer blocks than in a random order."""
    classes, codes = np.unique(labels, return_inverse=True)
    for k, name in enumerate(classes.tolist() if len(classes) > 1 else ()):
        own = codes == k
        blocks = int(own[0]) + int((own[1:] & ~own[:-1]).sum())
        expected = own.sum() * (len(own) - own.sum() + 1) / len(own)
        few = blocks <= max(1.0, MAX_SHARE_OF_BLOCKS * expected)
        if few and share_of_orders(blocks, int(own.sum()), len(own)) * len(classes) < RARE_ORDER:
            warnings.warn(
                f"the {own.sum():,} rows of class {name!r} come in {blocks:,} block{'s' if blocks > 1 else ''}, where "
                f"a random order has about {expected:,.0f}: fit learns rows in their order, in one pass, and a model "
                "remembers the newest rows best. If the order has no meaning, set shuffle=True or shuffle the rows; if "
                "this is a stream in its own order, ignore this warning",
                OrderWarning, stacklevel=stacklevel,
            )  # fmt: skip
            return


def share_of_orders(blocks: int, own: int, n: int) -> float:
    """Return the share of all orders of n labels in which ``own`` equal ones form at most this number of blocks.

    The number of blocks has a hypergeometric distribution.

    >>> round(share_of_orders(1, 2, 4), 6), round(share_of_orders(2, 2, 4), 6)  # AABB, BAAB and BBAA, of six
    (0.5, 1.0)
    """
    r = np.arange(1, blocks + 1)
    rest = n - own
    ways = _log_choose(own - 1, r - 1) + _log_choose(rest + 1, r) - _log_choose(n, own)
    return float(np.exp(ways[r <= rest + 1]).sum())


def _log_choose(n: Any, k: Any) -> Any:
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
