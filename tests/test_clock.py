"""The clock of a race and of exact paths: the rows at which something happens, checked by counting."""

from itertools import pairwise

from pairloom.base.clock import (
    CATCH_UP_ROWS,
    NEVER,
    REFIT_ROWS,
    is_solution,
    last_refit,
    mixes_at,
    next_calibration,
    next_evaluation,
    next_race_calibration,
    next_refit,
    next_solution,
)


def rows_of(step, end, start=0):
    """All rows of a schedule, in order."""
    found = [step(start)]
    while found[-1] < end:
        found.append(step(found[-1]))
    return found


def solutions(end):
    """One row in every doubling up to row 128, two up to row 4,096, then four."""
    found = set()
    for power in range(end.bit_length()):
        parts = 1 if 2**power < 128 else 2 if 2**power < 4096 else 4
        found |= {2**power + k * 2**power // parts for k in range(parts)}
    return sorted(row for row in found if row <= end)


def test_solutions_are_one_in_every_doubling_then_two_then_four():
    assert rows_of(next_solution, 512) == [1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512]
    assert rows_of(next_solution, 16_384) == solutions(16_384)
    assert [t for t in range(-70, 16_385) if is_solution(t)] == solutions(16_384)


def test_the_next_row_is_the_first_after_the_one_asked_for():
    for step, end in ((next_solution, 3000), (next_evaluation, 1000), (next_refit, 2047)):
        for t, after in pairwise(rows_of(step, end)):
            assert all(step(between) == after for between in range(t, after))


def test_a_race_looks_at_scores_at_16_32_64_and_multiples_of_128():
    assert rows_of(next_evaluation, 640) == [16, 32, 64, 128, 256, 384, 512, 640]


def test_log_odds_of_a_race_are_fitted_where_scores_are_looked_at_and_others_would_be():
    looks, fits = rows_of(next_evaluation, 9000), set(rows_of(next_calibration, 9000))
    assert rows_of(next_race_calibration, 8000) == [row for row in looks if row in fits and row <= 8192]


def test_weights_change_at_powers_of_two_and_four_times_in_a_doubling_by_512_at_least():
    looks = rows_of(next_evaluation, 20_480)
    expected = [16, 32, 64, 128, 256, 512, 1024, 1536, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 10_240,
                12_288, 14_336, 16_384, 20_480]  # fmt: skip
    assert [t for t in looks if mixes_at(t)] == expected
    assert set(expected) <= set(looks)


def test_the_last_refit_is_the_largest_row_that_has_come():
    for t in range(5000):
        rows = [row for row in (8, 32, 128, 512, 1024) if row <= t]
        assert last_refit(t) == (rows[-1] if rows else 0), t


def test_what_was_made_catches_up_every_32_rows_until_it_takes_over():
    assert REFIT_ROWS == {8: 8, 32: 32, 128: 192, 512: 768, 1024: 2048}
    expected = [8, 32, 128, 160, 192, *range(512, 769, 32), *range(1024, 2049, 32), NEVER]
    assert rows_of(next_refit, 5000) == expected
    assert CATCH_UP_ROWS == 32


def test_each_take_over_comes_before_the_next_refit():
    rows = list(REFIT_ROWS)
    assert all(REFIT_ROWS[row] <= after for row, after in pairwise(rows))
    assert all((end - row) % CATCH_UP_ROWS == 0 for row, end in REFIT_ROWS.items() if end > row)
