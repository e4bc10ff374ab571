"""The AUC table in the terminal."""

from collections.abc import Collection

from rich.table import Table

from reproduction import table
from reproduction.cells import Cell
from reproduction.report.measured import Measured
from reproduction.report.wording import percent
from reproduction.results import Results


def aucs_in_terminal(results: Results, cells: Collection[Cell]) -> Table:
    """Return AUC x 100 of the systems of these cells: the mean of the iterates, then the last iterate."""
    measured, own = Measured(results), [cell for cell in cells if cell.experiment == table.NAME]
    datasets = [name for name in measured.datasets if name in {cell.dataset for cell in own}]
    made = Table("system", title="AUC × 100: mean / last iterate" if own else None)
    for name in datasets:
        made.add_column(name, justify="right")
    for system in (name for name in measured.systems if name in {cell.system for cell in own}):
        made.add_row(system, *(_entry(measured, name, system) for name in datasets))
    return made


def _entry(measured: Measured, dataset: str, system: str) -> str:
    mean, last = (measured.auc(dataset, system, output) for output in ("mean", "last"))
    shown = [percent(one.mean) for one in (mean, last) if one]
    return " / ".join(shown) or "–"
