"""How long learning took, and with which settings."""

from pairloom.base.html import Markup
from pairloom.experiments.reproduce.report.html import details, note
from pairloom.experiments.reproduce.report.measured import Measured, group_of, in_order, sets_in_order, text_of
from pairloom.experiments.reproduce.report.tables import Column, Entry, table
from pairloom.experiments.reproduce.report.wording import count, duration, number, percent
from pairloom.experiments.reproduce.results import Results


def time_table(measured: Measured) -> Markup:
    """Microseconds of learning for each row."""
    columns = [Column("system"), Column("group"), *(Column(dataset) for dataset in measured.datasets)]
    rows = []
    for system in measured.systems:
        times = [measured.micros(dataset, system) for dataset in measured.datasets]
        shown = [Entry("–", kind="absent") if time is None else Entry(number(time), time) for time in times]
        rows.append([Entry(system), Entry(group_of(system), kind="group"), *shown])
    after = note(
        "Processor time of learning divided by the rows learned, over all folds, in one thread; the selection of "
        "settings is not in it. A batch learner sees its rows many times."
    )
    return table(columns, rows, "Time of learning, µs for each row", "every", after)


def settings_table(results: Results) -> Markup | None:
    """What the inner folds selected."""
    records = results.read("selection")
    if not records:
        return None
    sets = {name: rank for rank, name in enumerate(sets_in_order(one.get("dataset", "") for one in records))}
    systems = {name: rank for rank, name in enumerate(in_order(one.get("system", "") for one in records))}
    columns = [Column(title) for title in ("data set", "system", "settings", "of", "inner AUC", "rows", "time")]
    rows = []
    for one in sorted(records, key=lambda one: (sets[one.get("dataset", "")], systems[one.get("system", "")])):
        rows.append([
            Entry(one.get("dataset", "")), Entry(one.get("system", "")),
            Entry(text_of(str(one.get("settings", ""))), kind="text settings"),
            _number(one.get("n_settings"), count), _number(one.get("auc"), percent), _number(one.get("rows"), count),
            _number(one.get("seconds"), duration),
        ])  # fmt: skip
    caption = "Selected settings: the best mean AUC of three inner folds"
    return details(f"The {len(rows)} selected settings", table(columns, rows, caption))


def _number(value: float | None, text: object) -> Entry:
    return Entry("–") if value is None or not callable(text) else Entry(text(value), float(value))
