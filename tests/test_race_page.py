"""The table of candidates in docs/race.md is the portfolio; the readme's AUCs are the recorded ones."""

import pytest

from tests.tables import TABLES, standing


@pytest.mark.parametrize("page", TABLES)
def test_the_table_is_what_is_made(page):
    assert standing(page) == TABLES[page](), "python -m tests.tables updates it"
