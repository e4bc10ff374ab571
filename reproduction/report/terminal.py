"""The AUC table in the terminal."""

from collections.abc import Collection

from rich.table import Table

from reproduction import table
from reproduction.cells import Cell
from reproduction.report.measured import Measured
from reproduction.report.wording import percent
from reproduction.results import Results

ENTRY_WIDTH = len(" 98.76 / 98.76 |")


def aucs_in_terminal(results: Results, cells: Collection[Cell], width: int) -> list[Table]:
    """Return tables of this width: AUC x 100 of the systems of these cells, the mean of the iterates, then the last."""
    measured, own = Measured(results), [cell for cell in cells if cell.experiment == table.NAME]
    systems = [name for name in measured.systems if name in {cell.system for cell in own}]
    datasets = [name for name in measured.datasets if name in {measured.title(cell.dataset) for cell in own}]
    longest = max((len(name) for name in systems), default=0)
    tables = []
    size = max(1, (width - longest - 4) // ENTRY_WIDTH)
    for start in range(0, len(datasets), size):
        some = datasets[start : start + size]
        made = Table("system", title="AUC × 100: mean / last iterate")
        for name in some:
            made.add_column(name, justify="right")
        for system in systems:
            made.add_row(system, *(_entry(measured, name, system) for name in some))
        tables.append(made)
    return tables


def _entry(measured: Measured, dataset: str, system: str) -> str:
    mean, last = (measured.auc(dataset, system, output) for output in ("mean", "last"))
    shown = [percent(one.mean) for one in (mean, last) if one]
    return " / ".join(shown) or "–"
