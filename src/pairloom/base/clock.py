"""The clock: the numbers of the rows at which something happens besides learning.

All are functions of the row number alone, so that it does not matter how a stream was cut into calls. A stream is cut
at every such row, and nowhere else.
"""

import sys
from math import log2

NEVER = sys.maxsize


def next_multiple(t: int, of: int) -> int:
    """The first multiple of ``of`` after row t."""
    return of * (t // of + 1)


FADING = 256
"""Rows between two looks at the time, where rows fade by it."""


def fading_rows(half_life: float) -> int:
    """Rows between two rows at which all before fade, by a half-life in rows: a power of two near a 16th of it.

    >>> fading_rows(10), fading_rows(1_000), fading_rows(10_000), fading_rows(1e9)
    (1, 64, 512, 2048)
    """
    return 1 << min(11, round(log2(max(1.0, half_life / 16))))


def next_replay(t: int, last: int) -> int:
    """The first of the rows 1, 4, 16, ..., ``last`` after row t: rules on data are fixed anew.

    >>> next_replay(0, 1024), next_replay(5, 1024), next_replay(1000, 1500)
    (1, 16, 1024)
    """
    replay = 1
    while replay <= t:
        replay *= 4
    return min(replay, last)


def last_replay(t: int, last: int) -> int:
    """The newest of the rows 1, 4, 16, ..., ``last`` up to row t: the rules in use were fixed there; 0 before row 1.

    >>> last_replay(0, 1024), last_replay(768, 1024), last_replay(5000, 1024)
    (0, 256, 1024)
    """
    row = 0
    while row < last and next_replay(row, last) <= t:
        row = next_replay(row, last)
    return row


def next_calibration(t: int, since: int = 0, apart: int = 1) -> int:
    """The first row after row t at which the calibration is fitted anew.

    These rows are an eighth of the stream so far apart, at most 2,048. Powers of two, at which rules on data are fixed,
    are among them. Rows up to row ``since`` do not count; two such rows are ``apart`` rows apart, or more.

    >>> next_calibration(3), next_calibration(64), next_calibration(1_000_000), next_calibration(20_000, since=19_900)
    (4, 72, 1001472, 20008)
    """
    age = t + 1 - since
    apart = max(apart, min(2048, 1 << max(0, age.bit_length() - 4)))
    return apart * -(-(t + 1) // apart)


def next_race_calibration(t: int) -> int:
    """The first row after row t at which the calibration of a race is fitted anew: its scores are looked at then.

    >>> next_race_calibration(3), next_race_calibration(64), next_race_calibration(1_000), next_race_calibration(4096)
    (16, 128, 1024, 4608)
    """
    row = next_evaluation(t)
    while next_calibration(row - 1) != row:
        row = next_evaluation(row)
    return row


def next_solution(t: int, since: int = 0, apart: int = 1) -> int:
    """The first row after row t at which a path of exact minimisers is solved for.

    One in every doubling of the stream up to row 128, two up to row 4,096, then four; rows up to row ``since`` do not
    count. Two solutions are ``apart`` rows apart, or more.

    >>> next_solution(3), next_solution(100), next_solution(1000), next_solution(4096), next_solution(4096, since=4000)
    (4, 128, 1024, 5120, 4160)
    """
    age = max(1, t - since)
    return next_multiple(t, max(apart, 1 << (age.bit_length() - (1 if age < 128 else 2 if age < 4096 else 3))))


def is_solution(t: int, since: int = 0, apart: int = 1) -> bool:
    """Whether row t is one of those of ``next_solution``."""
    return t > 0 and next_solution(t - 1, since, apart) == t


def next_evaluation(t: int) -> int:
    """The first row after row t at which a race looks at scores: 16, 32, 64, and multiples of 128.

    >>> next_evaluation(3), next_evaluation(64), next_evaluation(1000)
    (16, 128, 1024)
    """
    return next((row for row in (16, 32, 64) if row > t), next_multiple(t, 128))


def mixes_at(t: int, since: int = 0) -> bool:
    """Whether a race weighs its candidates anew at row t, an evaluation.

    At powers of two, and four times in every doubling where that is a multiple of 512. Log-odds are fitted anew then.
    Rows up to row ``since`` do not count: after it, it is as often as in a stream that began there.

    >>> [t for t in range(128, 6000, 128) if mixes_at(t)]
    [128, 256, 512, 1024, 1536, 2048, 2560, 3072, 3584, 4096, 5120]
    >>> [t for t in range(6016, 8000, 128) if mixes_at(t, since=6000)]
    [6016, 6144, 6400, 6656, 7168, 7680]
    """
    age = t - since
    if age < 1:
        return False
    return t % (1 << (age.bit_length() - 1) if age < 512 else max(512, 1 << (age.bit_length() - 3))) == 0


REFITS = {8: 8, 32: 32, 128: 192, 512: 768, 1024: 2048}
"""Rows at which a race fixes rules on data anew, each with the row at which what was made then takes over."""

CATCH_UP = 32
"""Rows after which what was made takes in more of the rows before it."""


def refit_before(t: int) -> int:
    """The last row up to row t at which rules were fixed anew; 0 if there is none.

    >>> refit_before(7), refit_before(8), refit_before(600)
    (0, 8, 512)
    """
    return max((row for row in REFITS if row <= t), default=0)


def next_refit(t: int) -> int:
    """The first row after row t at which rules are fixed anew, or what was made then takes more rows in.

    >>> next_refit(0), next_refit(128), next_refit(160), next_refit(192), next_refit(5000) == NEVER
    (8, 160, 192, 512, True)
    """
    last = refit_before(t)
    if last and t < REFITS[last]:
        return next_multiple(t, CATCH_UP)
    return min((row for row in REFITS if row > t), default=NEVER)


def renewals(pace: int) -> int:
    """How often each tree of a forest is renewed: from rows 64, 64 pace, 64 pace^2, ... before 16,384 on.

    >>> renewals(4), renewals(8), renewals(16)
    (4, 3, 2)
    """
    turns = 1
    while 64 * pace**turns < 16_384:
        turns += 1
    return turns


def next_renewal(planted: int, n_trees: int, pace: int = 4) -> int:
    """The row after which a forest that has grown so many trees grows the next one.

    From row n on, n = 64, 256, 1,024, 4,096 at pace 4, each tree is grown anew once before row pace n; none after that.
    Trees are as far apart as they are long to grow: by a factor, not by a number of rows. Those of 32 rows are grown
    together.

    >>> [next_renewal(planted, 100) for planted in (0, 1, 99, 100, 399)], next_renewal(400, 100) == NEVER
    ([64, 64, 224, 256, 16128], True)
    >>> [next_renewal(planted, 100, 8) for planted in (0, 100, 200, 299)], next_renewal(300, 100, 8) == NEVER
    ([64, 512, 4096, 32064], True)
    """
    turn = planted // n_trees
    if turn >= renewals(pace):
        return NEVER
    row = int(64 * pace**turn * float(pace) ** (planted % n_trees / n_trees))
    return row - row % 32


def next_deepening(planted: int, n_trees: int, pace: int = 4) -> int:
    """``next_renewal`` of a forest whose leaves are split further after that: one tree every 512 rows.

    >>> [next_deepening(planted, 100) for planted in (0, 399, 400, 401, 500)]
    [64, 16128, 16384, 16896, 67584]
    """
    turns = renewals(pace)
    late = planted - turns * n_trees
    return next_renewal(planted, n_trees, pace) if late < 0 else 64 * pace**turns + 512 * late


def next_boost(planted: int, n_trees: int) -> int:
    """The row after which a forest that has grown so many trees adds one, until it is full.

    Every 64 rows up to row 2,048, 128 up to 4,096, 256 up to 8,192, then 512: a tree of more rows takes longer to grow.

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
