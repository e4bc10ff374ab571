"""The table of systems: from the classes, in the terminal and in the docs."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pairloom import systems
from pairloom.cli import systems as table
from pairloom.cli.commands import app
from pairloom.cli.systems import COLUMNS, MEASURED, all_systems, measure

PAGE = Path(__file__).parent.parent / "docs" / "systems.md"


def cells(table):
    """The rows of a Markdown table, header first, without the separator."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()]
    return [rows[0], *rows[2:]]


def test_every_published_form_has_a_line():
    names = [line.name for line in all_systems()]
    assert len(names) == len(set(names))
    for name in systems.__all__:
        for suffix in getattr(systems, name).variants:
            assert name + suffix in names


def test_the_table_on_the_page_is_what_the_classes_say():
    table = re.search(r"^\| system \|.*?\n\n", PAGE.read_text(), re.MULTILINE | re.DOTALL)[0]
    head, *rows = cells(table)
    assert head == [*COLUMNS, *MEASURED]
    assert [tuple(row[: len(COLUMNS)]) for row in rows] == [line.cells for line in all_systems()]
    assert all(float(row[-2].replace(",", "")) > 0 for row in rows)
    assert all(int(row[-1].replace(",", "")) > 98_304 for row in rows)


def test_the_tables_of_tuned_systems_have_columns_of_their_own():
    tables = re.findall(r"^\| system \|(?:.*\n)+?(?=\n|\Z)", PAGE.read_text().partition("## Tuned")[2], re.MULTILINE)
    heads = [cells(table)[0] for table in tables]
    assert heads == [
        ["system", "tuned", "AUC", "", "system", "tuned", "AUC"],
        ["system", "data", "training rows", "test AUC", "seconds"],
    ]
    assert all(len(row) == len(cells(table)[0]) for table in tables for row in cells(table))


def test_measured_numbers_are_those_of_the_model():
    model = systems.SPAM()
    speed, nbytes = measure(model)
    assert speed > 0
    assert nbytes == model.nbytes_


@pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning")
def test_the_command_prints_the_table_as_markdown(monkeypatch):
    """In this process, where all systems are compiled, with a clock that stops after the first timed batch."""
    monkeypatch.setattr(table, "MAX_SECONDS", 0.0)
    done = CliRunner().invoke(app, ["systems", "--markdown"])
    assert done.exit_code == 0, done.output
    head, *rows = cells(done.stdout)
    assert head == [*COLUMNS, *MEASURED]
    assert [row[0] for row in rows] == [line.name for line in all_systems()]
    assert all(float(row[-2].replace(",", "")) > 0 for row in rows)
