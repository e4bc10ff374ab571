"""Checkpoints of a run over files and pipes: the model, how far it is, and a digest of the rows behind it."""

import json
from pathlib import Path
from typing import Any

from pairloom.base.files import replacing
from pairloom.cli.outputs import RECORD
from pairloom.persist import Checkpointer

KEPT = 4
"""Positions whose digests are kept: one more than there may be checkpoints, and one that was never finished."""


class Run:
    """The folder of a run.

    Beside its checkpoints there is ``rows.json``: the settings of the run, and for the newest positions a digest of all
    rows up to there. It is written before the checkpoint, so that no checkpoint is without.

    Parameters
    ----------
    folder, every : as in :class:`~pairloom.Checkpointer`.
    settings : what must not change when a run goes on.
    """

    def __init__(self, folder: Path, every: int, settings: dict[str, Any], resume: bool) -> None:
        self.checkpoints = Checkpointer(folder, every)
        self.settings = settings
        self.rows: dict[int, dict[str, Any]] = {}
        if not self.checkpoints.positions():
            return
        if not resume:
            raise ValueError(f"{folder} has checkpoints: --resume goes on from them; or name another folder")
        self._read()

    def newest(self) -> tuple[Any, int, dict[str, Any]] | None:
        """The model of the newest checkpoint, its position, and what was written down of the rows up to it."""
        found = self.checkpoints.newest()
        if found is None:
            return None
        model, position = found
        if position not in self.rows:
            raise ValueError(f"{self.checkpoints.path / RECORD} does not know the checkpoint of row {position:,}")
        return model, position, self.rows[position]

    def due(self, before: int, position: int) -> bool:
        """Whether a checkpoint is due between two positions."""
        return position // self.checkpoints.every > before // self.checkpoints.every

    def save(self, model: Any, position: int, told: dict[str, Any]) -> None:
        """A checkpoint."""
        newest = sorted({**self.rows, position: told}.items())[-KEPT:]
        self.rows = dict(newest)
        with replacing(self.checkpoints.path / RECORD) as out:
            out.write(json.dumps({"settings": self.settings, "rows": self.rows}).encode())
        self.checkpoints.save(model, position)

    def _read(self) -> None:
        path = self.checkpoints.path / RECORD
        try:
            found = json.loads(path.read_text())
            settings, self.rows = found["settings"], {int(row): told for row, told in found["rows"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} cannot be read ({error}): these are no checkpoints of pairloom fit") from None
        for name, value in self.settings.items():
            if settings.get(name) != value:
                raise ValueError(
                    f"--resume goes on as the run began: {name} was {settings.get(name)!r}, and is {value!r}"
                )
