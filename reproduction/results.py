"""Results: one CSV file per experiment, sorted by cell, and one that lists the runs."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reproduction.cells import Cell, Record, Task

KEY = ("dataset", "system", "axis", "value", "fold")
"""The columns of a cell. The experiment is the name of the file."""

STAMP = ("seed", "config", "run", "finished")
"""The columns on the origin of a record; ``run`` is a line of runs.csv."""

TEXTS = frozenset({"dataset", "system", "axis", "settings", "note", "config", "run", "finished", "started"})
"""Columns of text, even if it looks like a number."""


class NotResultsError(ValueError):
    """A file in the folder was not written by this package."""


class Results:
    """The records in a folder. Files are replaced atomically: a run that is killed loses no finished cell.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     results, task = Results(Path(folder)), Task(Cell("table", "usps", "OGD"), list)
    ...     results.add(task, [{"auc": 0.9}], {"seed": 0})
    ...     Results(Path(folder)).read("table")[0]["auc"]
    0.9
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, dict[Cell, list[Record]]] = {}

    def read(self, experiment: str) -> list[Record]:
        """Return all records of an experiment, with numbers parsed, without empty fields; [] if it was not run."""
        return [record for records in self._cells(experiment).values() for record in records]

    def of(self, cell: Cell) -> list[Record]:
        """Return the records of one cell."""
        return self._cells(cell.experiment).get(cell, [])

    def has(self, task: Task) -> bool:
        """Return whether a task was run with the same configuration."""
        return any(record["config"] == task.config for record in self.of(task.cell))

    def add(self, task: Task, records: Iterable[Record], stamp: Record) -> None:
        """Record the results of a task; they replace earlier results of the same cell."""
        cells, cell = self._cells(task.cell.experiment), task.cell
        key = {name: getattr(cell, name) for name in KEY}
        cells[cell] = [{**key, **record, **stamp, "config": task.config} for record in records]
        self._write(cell.experiment, [record for one in sorted(cells) for record in cells[one]])

    def runs(self) -> list[Record]:
        """Return command, commit, versions, machine and time of each run that added results."""
        return self._lines("runs")

    def add_run(self, run: Record) -> None:
        """Record a run."""
        self._write("runs", [*(line for line in self.runs() if line["run"] != run["run"]), run])

    def _cells(self, experiment: str) -> dict[Cell, list[Record]]:
        if experiment not in self._known:
            found: dict[Cell, list[Record]] = {}
            for number, line in enumerate(self._lines(experiment), start=1):
                if "value" not in line or "fold" not in line or "config" not in line:
                    where = f"{self._path(experiment)}, record {number}"
                    raise NotResultsError(f"{where}: not a record of the reproduction; choose another folder")
                texts = {name: line.get(name, "") for name in ("dataset", "system", "axis")}
                cell = Cell(experiment, **texts, value=float(line["value"]), fold=line["fold"])
                found.setdefault(cell, []).append(line)
            self._known[experiment] = found
        return self._known[experiment]

    def _lines(self, name: str) -> list[Record]:
        path = self._path(name)
        if not path.exists():
            return []
        with path.open(newline="", encoding="utf-8") as file:
            return [{column: _value(column, text) for column, text in line.items() if text}
                    for line in csv.DictReader(file)]  # fmt: skip

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.csv"

    def _write(self, name: str, records: list[Record]) -> None:
        columns = dict.fromkeys(column for record in records for column in record)
        middle = [column for column in columns if column not in (*KEY, *STAMP)]
        order = [one for one in (*KEY, *middle, *STAMP) if one in columns]
        text = io.StringIO()
        writer = csv.DictWriter(text, order, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        replace_file(self._path(name), text.getvalue())


def replace_file(path: Path, text: str) -> None:
    """Write a file atomically, so that readers never see a partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(text, encoding="utf-8", newline="\n")
    temporary.replace(path)


def _value(column: str, text: str) -> Any:
    if column not in TEXTS:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
    return text
