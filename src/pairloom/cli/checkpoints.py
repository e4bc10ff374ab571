"""Checkpoints of `fit`: the model, its position in the input, and a digest of the rows before it."""

import json
from pathlib import Path
from typing import Any

from pairloom.base.files import replacing
from pairloom.cli.model_file import saved_models
from pairloom.cli.outputs import RUN_RECORD
from pairloom.persist.checkpoint import Checkpointer

MAX_RECORDS = 4
"""Positions in the record: those of the checkpoints, one that is being replaced, and one that was not completed."""


def open_checkpoints(folder: Path, every: int, resume: bool) -> Checkpointer:
    """Open a folder of checkpoints; raise ValueError if it contains checkpoints and ``resume`` is False."""
    checkpoints = Checkpointer(folder, every)
    if checkpoints.positions() and not resume:
        raise ValueError(f"{folder} already has checkpoints; use --resume to continue, or choose another folder")
    return checkpoints


class FitCheckpoints:
    """The checkpoints of a run, and in the same folder ``rows.json``: its settings, and a record for each position.

    The record is written before the checkpoint, so that each checkpoint has one. It also has the digests of the model
    files that the run has written: the same command may replace these, and a model that was continued in place may be
    one of them.

    Parameters
    ----------
    folder, every : as in :class:`~pairloom.Checkpointer`.
    settings : options that must not change when a run is resumed.
    """

    def __init__(self, folder: Path, every: int, settings: dict[str, Any], resume: bool) -> None:
        self.checkpoints = open_checkpoints(folder, every, resume)
        self.path, self.settings = folder / RUN_RECORD, settings
        self.records: dict[int, dict[str, Any]] = {}
        self.models = saved_models(folder)
        if self.checkpoints.positions():
            self._read()

    def newest(self) -> tuple[Any, int, dict[str, Any]] | None:
        """Return the model of the newest checkpoint, its position, and its record."""
        found = self.checkpoints.newest()
        if found is None:
            return None
        model, position = found
        if position not in self.records:
            raise ValueError(f"{self.path} has no record of the checkpoint at row {position:,}")
        return model, position, self.records[position]

    def save(self, model: Any, position: int, record: dict[str, Any]) -> None:
        self.records = dict(sorted({**self.records, position: record}.items())[-MAX_RECORDS:])
        self._write()
        self.checkpoints.save(model, position)

    def saved_model(self, digest: str | None) -> None:
        """Record a model file before it replaces another one."""
        if digest is not None and digest not in self.models:
            self.models = [*self.models, digest][-MAX_RECORDS:]
            self._write()

    def _write(self) -> None:
        with replacing(self.path) as out:
            out.write(json.dumps({"settings": self.settings, "rows": self.records, "models": self.models}).encode())

    def _read(self) -> None:
        try:
            found = json.loads(self.path.read_text())
            settings, self.records = found["settings"], {int(row): record for row, record in found["rows"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{self.path} cannot be read ({error}); is this a folder of checkpoints?") from None
        if self.settings.get("from") in self.models:  # the run has already replaced the model that it continued
            self.settings["from"] = settings.get("from")
        for name, value in self.settings.items():
            if settings.get(name) != value:
                raise ValueError(
                    f"--resume requires the same options: {name} was {settings.get(name)!r}, now {value!r}"
                )
