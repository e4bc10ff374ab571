"""The table of candidates in docs/race.md is the portfolio; the readme's AUCs are the recorded ones."""

import pytest

from tests.tables import TABLES, current


@pytest.mark.parametrize(("page", "made"), TABLES)
def test_the_table_is_the_generated_one(page, made):
    assert current(page, made) == made(), "python -m tests.tables updates it"
