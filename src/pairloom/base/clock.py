"""The clock: row numbers at which something other than learning happens.

All are functions of the row number alone, so that results do not depend on how a stream is chunked. A stream stops at
these rows only.
"""

import sys
from math import log2

NEVER = sys.maxsize


def next_multiple(t: int, of: int) -> int:
    """Return the first multiple of ``of`` after row t."""
    return of * (t // of + 1)


TIME_DECAY_ROWS = 256
"""Rows between two decays, for a half-life in time."""


def decay_rows(half_life: float) -> int:
    """Return the rows between two decays, for a half-life in rows: a power of two near a 16th of the half-life.

    >>> decay_rows(10), decay_rows(1_000), decay_rows(10_000), decay_rows(1e9)
    (1, 64, 512, 2048)
    """
    return 1 << min(11, round(log2(max(1.0, half_life / 16))))


def next_replay(t: int, last: int) -> int:
    """Return the first of the rows 1, 4, 16, ..., ``last`` after row t, at which data-dependent settings are fitted.

    >>> next_replay(0, 1024), next_replay(5, 1024), next_replay(1000, 1500)
    (1, 16, 1024)
    """
    replay = 1
    while replay <= t:
        replay *= 4
    return min(replay, last)


def last_replay(t: int, last: int) -> int:
    """Return the last of the rows 1, 4, 16, ..., ``last`` up to row t, where settings were last fitted; 0 before row 1.

    >>> last_replay(0, 1024), last_replay(768, 1024), last_replay(5000, 1024)
    (0, 256, 1024)
    """
    row = 0
    while row < last and next_replay(row, last) <= t:
        row = next_replay(row, last)
    return row


def next_calibration(t: int, since: int = 0, apart: int = 1) -> int:
    """Return the first row after row t at which the calibration is fitted again.

    The distance between two of these rows is an eighth of the stream so far, at most 2,048 rows and at least ``apart``.
    They include the powers of two, at which data-dependent settings are fitted. Rows up to row ``since`` do not count.

    >>> next_calibration(3), next_calibration(64), next_calibration(1_000_000), next_calibration(20_000, since=19_900)
    (4, 72, 1001472, 20008)
    """
    age = t + 1 - since
    apart = max(apart, min(2048, 1 << max(0, age.bit_length() - 4)))
    return apart * -(-(t + 1) // apart)


def next_race_calibration(t: int) -> int:
    """Return the first row after row t at which the calibration of a race is fitted again: one of its evaluations.

    >>> next_race_calibration(3), next_race_calibration(64), next_race_calibration(1_000), next_race_calibration(4096)
    (16, 128, 1024, 4608)
    """
    row = next_evaluation(t)
    while next_calibration(row - 1) != row:
        row = next_evaluation(row)
    return row


def next_solution(t: int, since: int = 0, apart: int = 1) -> int:
    """Return the first row after row t at which the minimisers of an exact path are computed.

    There is one such row in every doubling of the stream up to row 128, two up to row 4,096, then four, at least
    ``apart`` rows apart. Rows up to row ``since`` do not count.

    >>> next_solution(3), next_solution(100), next_solution(1000), next_solution(4096), next_solution(4096, since=4000)
    (4, 128, 1024, 5120, 4160)
    """
    age = max(1, t - since)
    return next_multiple(t, max(apart, 1 << (age.bit_length() - (1 if age < 128 else 2 if age < 4096 else 3))))


def is_solution(t: int, since: int = 0, apart: int = 1) -> bool:
    """Return whether row t is one of the rows of ``next_solution``."""
    return t > 0 and next_solution(t - 1, since, apart) == t


def next_evaluation(t: int) -> int:
    """Return the first row after row t at which a race evaluates its candidates: 16, 32, 64, and multiples of 128.

    >>> next_evaluation(3), next_evaluation(64), next_evaluation(1000)
    (16, 128, 1024)
    """
    return next((row for row in (16, 32, 64) if row > t), next_multiple(t, 128))


def mixes_at(t: int, since: int = 0) -> bool:
    """Return whether a race fits the weights of its mixture again at row t, a row of ``next_evaluation``.

    True at powers of two, and four times in every doubling where that is a multiple of 512. Log-odds are fitted again
    at these rows. Rows up to row ``since`` do not count, as if the stream had begun there.

    >>> [t for t in range(128, 6000, 128) if mixes_at(t)]
    [128, 256, 512, 1024, 1536, 2048, 2560, 3072, 3584, 4096, 5120]
    >>> [t for t in range(6016, 8000, 128) if mixes_at(t, since=6000)]
    [6016, 6144, 6400, 6656, 7168, 7680]
    """
    age = t - since
    if age < 1:
        return False
    return t % (1 << (age.bit_length() - 1) if age < 512 else max(512, 1 << (age.bit_length() - 3))) == 0


REFIT_ROWS = {8: 8, 32: 32, 128: 192, 512: 768, 1024: 2048}
"""Rows at which a race fits data-dependent settings again, each with the row at which the new candidates take over."""

CATCH_UP_ROWS = 32
"""Rows between two steps in which new candidates learn earlier rows."""


def last_refit(t: int) -> int:
    """Return the last row up to row t at which a race fitted data-dependent settings; 0 before the first.

    >>> last_refit(7), last_refit(8), last_refit(600)
    (0, 8, 512)
    """
    return max((row for row in REFIT_ROWS if row <= t), default=0)


def next_refit(t: int) -> int:
    """Return the first row after row t at which a race fits settings again, or new candidates catch up.

    >>> next_refit(0), next_refit(128), next_refit(160), next_refit(192), next_refit(5000) == NEVER
    (8, 160, 192, 512, True)
    """
    last = last_refit(t)
    if last and t < REFIT_ROWS[last]:
        return next_multiple(t, CATCH_UP_ROWS)
    return min((row for row in REFIT_ROWS if row > t), default=NEVER)


def n_renewals(pace: int) -> int:
    """Return how often each tree of a forest is renewed: from rows 64, 64 pace, 64 pace^2, ... before 16,384.

    >>> n_renewals(4), n_renewals(8), n_renewals(16)
    (4, 3, 2)
    """
    turns = 1
    while 64 * pace**turns < 16_384:
        turns += 1
    return turns


def next_renewal(planted: int, n_trees: int, pace: int = 4) -> int:
    """Return the row after which a forest that has grown ``planted`` trees grows the next one.

    From row n on, n = 64, 256, 1,024, 4,096 at pace 4, each tree is grown again once before row pace n; none later.
    Growing a tree takes longer with more rows, so the intervals between trees increase geometrically. Trees due
    within the same 32 rows are grown together.

    >>> [next_renewal(planted, 100) for planted in (0, 1, 99, 100, 399)], next_renewal(400, 100) == NEVER
    ([64, 64, 224, 256, 16128], True)
    >>> [next_renewal(planted, 100, 8) for planted in (0, 100, 200, 299)], next_renewal(300, 100, 8) == NEVER
    ([64, 512, 4096, 32064], True)
    """
    turn = planted // n_trees
    if turn >= n_renewals(pace):
        return NEVER
    row = int(64 * pace**turn * float(pace) ** (planted % n_trees / n_trees))
    return row - row % 32


def next_deepening(planted: int, n_trees: int, pace: int = 4) -> int:
    """Return ``next_renewal`` of a forest whose leaves are split further afterwards: one tree every 512 rows.

    >>> [next_deepening(planted, 100) for planted in (0, 399, 400, 401, 500)]
    [64, 16128, 16384, 16896, 67584]
    """
    turns = n_renewals(pace)
    late = planted - turns * n_trees
    return next_renewal(planted, n_trees, pace) if late < 0 else 64 * pace**turns + 512 * late


def next_boost(planted: int, n_trees: int) -> int:
    """Return the row after which a forest that has grown ``planted`` trees adds the next one, until it is full.

    Every 64 rows up to row 2,048, 128 up to 4,096, 256 up to 8,192, then 512: trees of more rows take
    longer to grow.

    >>> [next_boost(planted, 100) for planted in (0, 31, 32, 48, 64, 99)], next_boost(100, 100) == NEVER
    ([64, 2048, 2176, 4352, 8704, 26624], True)
    """
    if planted >= n_trees:
        return NEVER
    row, apart, left = 0, 64, planted + 1
    while apart < 512 and left > (32 * apart - row) // apart:
        left -= (32 * apart - row) // apart
        row, apart = 32 * apart, 2 * apart
    return row + apart * left


FIRST_GENERATION = 16
"""The first row at which a generation of boosted trees starts."""


def generation_end(start: int, ring: int) -> int:
    """Return the row at which a generation of boosted trees, started at row ``start``, takes over, and the next starts.

    The rows double up to row 256, then grow by a factor of sqrt(2), until the ring of newest rows is full: then half a
    ring of rows passes.

    >>> row, rows = 0, []
    >>> while row < 40_000:
    ...     rows.append(row := generation_end(row, 16_384))
    >>> rows
    [16, 32, 64, 128, 256, 362, 511, 722, 1021, 1443, 2040, 2884, 4078, 5767, 8155, 11532, 16308, 24500, 32692, 40884]
    """
    if start < FIRST_GENERATION:
        return FIRST_GENERATION
    end = 2 * start if start < 256 else int(start * 2**0.5)
    return end if end < 1.1 * ring else start + max(1, ring // 2)


def row_between(start: int, end: int, share: int, of: int) -> int:
    """Return the first row that is at least ``share`` / ``of`` of the way from row ``start`` to row ``end``.

    >>> row_between(100, 200, 1, 3)
    134
    """
    return start + -((start - end) * share // of)
