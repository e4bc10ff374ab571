"""Results: one record for each data set, contestant and fold in a JSON file, and their summaries."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

FOLDS = 5


@dataclass(frozen=True)
class Record:
    """One fit: CPU ``seconds``, ``wall``-clock seconds, and the ``size`` of the pickled model in bytes.

    ``tuning`` is the CPU time of the grid, in the record of the fold that followed it (0 in the others). ``peak``:
    the growth of the process in bytes, at most, during ``fit``; ``precision``: average precision; ``scoring``: CPU
    microseconds per scored row; old records have none of the three. ``capped``: it learned only ``rows`` rows because
    more would have taken too long.
    """

    data: str
    contestant: str
    fold: int
    rows: int
    auc: float
    seconds: float
    wall: float
    size: int
    settings: dict[str, Any]
    tuning: float
    package: str
    machine: str
    peak: int | None = None
    capped: bool = False
    precision: float | None = None
    scoring: float | None = None

    @property
    def micros(self) -> float:
        """CPU microseconds per learned row."""
        return 1e6 * self.seconds / self.rows

    @property
    def key(self) -> tuple[str, str, int]:
        return self.data, self.contestant, self.fold


class Records:
    """The records of a file, which is read before and written after each change: several runs may add to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.all = self._read()

    def add(self, record: Record) -> None:
        self.all = {**self._read(), record.key: record}
        self._write()

    def forget(self, contestant: str, data: set[str]) -> None:
        """Drop the results of a contestant on these data sets."""
        self.all = {k: r for k, r in self._read().items() if r.contestant != contestant or r.data not in data}
        self._write()

    def settings(self, data: str, contestant: str) -> dict[str, Any] | None:
        """Return the settings of an earlier fold, if any."""
        return next((r.settings for r in self.all.values() if (r.data, r.contestant) == (data, contestant)), None)

    def _read(self) -> dict[tuple[str, str, int], Record]:
        found = [Record(**fields) for fields in json.loads(self.path.read_text())] if self.path.exists() else []
        return {record.key: record for record in found}

    def _write(self) -> None:
        lines = [json.dumps(asdict(self.all[key])) for key in sorted(self.all)]
        part = self.path.with_suffix(f".{os.getpid()}.part")
        part.write_text("[\n" + ",\n".join(lines) + "\n]\n")
        os.replace(part, self.path)  # a run that is killed leaves the old file or the new one


@dataclass(frozen=True)
class Summary:
    """A contestant on a data set, over its folds."""

    folds: int
    auc: float
    error: float
    seconds: float
    micros: float
    size: int
    peak: int | None
    tuning: float
    settings: dict[str, Any]
    rows: int
    capped: bool
    precision: float | None
    scoring: float | None


def summary(records: Records, data: str, contestant: str) -> Summary | None:
    """Return means over the available folds, the standard error of the AUC (NaN for one fold) and the highest peak.

    None if there is no fold.
    """
    own = [record for record in records.all.values() if (record.data, record.contestant) == (data, contestant)]
    if not own:
        return None
    aucs = [record.auc for record in own]
    peaks = [record.peak for record in own if record.peak is not None]
    precisions = [record.precision for record in own if record.precision is not None]
    scorings = [record.scoring for record in own if record.scoring is not None]
    return Summary(
        folds=len(own),
        auc=float(np.mean(aucs)),
        error=float(np.std(aucs, ddof=1) / np.sqrt(len(aucs))) if len(aucs) > 1 else float("nan"),
        seconds=float(np.mean([record.seconds for record in own])),
        micros=float(np.mean([record.micros for record in own])),
        size=int(np.mean([record.size for record in own])),
        peak=max(peaks) if peaks else None,
        tuning=sum(record.tuning for record in own),
        settings=own[0].settings,
        rows=own[0].rows,
        capped=any(record.capped for record in own),
        precision=float(np.mean(precisions)) if precisions else None,
        scoring=float(np.mean(scorings)) if scorings else None,
    )
