"""The table of candidates in docs/race.md is the portfolio."""

from pathlib import Path

from pairloom.race import Exact, Portfolio

PAGE = Path(__file__).parent.parent / "docs" / "race.md"


def lines():
    portfolio = Portfolio()
    for candidate in [*portfolio.scouts(20), *portfolio.finalists("wide", 1.0)]:
        head = candidate.head
        learner = "exact" if isinstance(head, Exact) else f"gradient, {head.representative}"
        yield (
            f"| {candidate.name} | {candidate.features.n_outputs(20):,} | {learner} | "
            f"{candidate.microseconds(20):.1f} | {candidate.nbytes(20, 2) / 1e6:.1f} |"
        )


def test_the_table_is_the_portfolio():
    table = PAGE.read_text().split("|---|---:|---|---:|---:|\n")[1].split("\n\n")[0]
    assert table.splitlines() == list(lines())
