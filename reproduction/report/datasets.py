"""The paper's table of data sets, corrected."""

from pairloom.data import DATASETS
from pairloom.theory import features_needed
from reproduction import paper
from reproduction.report.html import Column, Entry, Markup, element, joined, note, section, table
from reproduction.report.measured import Measured, sets_in_order
from reproduction.report.wording import count
from reproduction.results import Results


def datasets_section(results: Results) -> Markup:
    """The printed values, the values of the files, and the errors."""
    columns = [
        Column("data set"),
        Column("rows"),
        Column("columns"),
        Column("N₋ : N₊"),
        Column("N₋ / N₊"),
        Column("√T ln T"),
        Column("what is wrong, or not said"),
    ]
    rows = [_row(dataset, Measured(results).stand_in(dataset)) for dataset in sets_in_order(paper.TABLE_3)]
    wrong = sum(len(paper.wrong(dataset)) for dataset in paper.TABLE_3)
    after = note(
        "Each value is counted from the files; where the printed one is another, it is struck out below: "
        f"{wrong} of {3 * len(paper.TABLE_3)}. Labels: the first half of the sorted labels is negative, the second "
        "half positive. A ratio counts as right either way round. √T ln T is the paper's number of random features for "
        "all rows."
    )
    text = table(columns, rows, "Data sets: the paper's Table 3, corrected", after=after)
    return section("datasets", "Data sets", text)


def _row(dataset: str, stand_in: str) -> list[Entry]:
    source, row, wrong = DATASETS[dataset], paper.TABLE_3[dataset], paper.wrong(dataset)
    ratio = source.n_negative / source.n_positive
    remark = paper.REMARKS.get(dataset, "")
    if stand_in:
        remark = f"{remark} Its file was not at hand: {stand_in} was read in its place.".strip()
    return [
        Entry(dataset),
        Entry(_beside(count(source.n_rows), count(row.size), "size" in wrong), source.n_rows),
        Entry(_beside(count(source.n_features), count(row.n_features), "n_features" in wrong), source.n_features),
        Entry(f"{count(source.n_negative)} : {count(source.n_positive)}", source.n_negative),
        Entry(_beside(f"{ratio:.2f}", row.ratio, "ratio" in wrong), ratio),
        Entry(count(features_needed(source.n_rows)), features_needed(source.n_rows)),
        Entry(remark or "–", kind="text"),
    ]


def _beside(actual: str, printed: str, wrong: bool) -> Markup:
    return joined([element("b" if wrong else "span", actual), element("del", printed) if wrong else None])
