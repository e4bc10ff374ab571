"""Checkpoints: where a run goes on after it was killed."""

import os
import re
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pairloom.base.checks import check_count
from pairloom.persist.format import ModelFileError, write_file
from pairloom.persist.model import Saved, packed, read_model

NAME = re.compile(r"checkpoint-(\d{15,})\.pairloom")
TEMPORARY = re.compile(NAME.pattern + r"\.[0-9a-f]+\.tmp")


class Checkpointer:
    """Saves a model every so many rows, with its position in the stream, and finds the newest file after a kill.

    Parameters
    ----------
    path : a folder for the checkpoints of one run; it is made if it is not there.
    every : rows between two checkpoints.
    keep : how many are kept, the newest.
    parts : as for :func:`pairloom.load`.

    A checkpoint is written beside the others, flushed to the disk and renamed, and only then an old one is removed: at
    every moment, that of a kill or a full disk too, the newest that was complete is there.

    >>> import tempfile
    >>> from pairloom.systems import FPOGD
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoints = Checkpointer(folder, every=2)
    ...     model, position = checkpoints.newest() or (FPOGD(n_components=8, random_state=0), 0)
    ...     for i in range(position, 4):
    ...         model = model.learn_one(X[i], y[i])
    ...         saved = checkpoints.after(model, i + 1)
    ...     found, position = checkpoints.newest()
    >>> position, found.n_seen_
    (4, 4)
    """

    def __init__(
        self, path: str | os.PathLike[str], every: int = 10_000, keep: int = 2, parts: Iterable[type] = ()
    ) -> None:
        check_count("every", every)
        check_count("keep", keep)
        self.path = Path(path)
        self.every = every
        self.keep = keep
        self.parts = tuple(parts)
        self._broken: set[int] = set()
        self.path.mkdir(parents=True, exist_ok=True)
        self._last = max(self.positions(), default=0)

    def __repr__(self) -> str:
        return f"Checkpointer({str(self.path)!r}, every={self.every}, keep={self.keep})"

    def positions(self) -> list[int]:
        """Of the checkpoints in the folder, in order."""
        found = (NAME.fullmatch(entry.name) for entry in self.path.iterdir())
        return sorted(int(name[1]) for name in found if name)

    def save(self, model: Saved, position: int) -> Path:
        """Save the model as it is after ``position`` rows of the stream; its file.

        ValueError if the folder has a checkpoint of a later row: it is of another run, or should have been resumed.
        """
        if type(position) is not int or position < 0:
            raise ValueError(f"position must be a whole number of rows; got {position!r}")
        later = [other for other in self.positions() if other > position and other not in self._broken]
        if later:
            raise ValueError(
                f"{self.path} has a checkpoint of row {later[-1]:,}, and this would be one of row {position:,}: go on "
                "from it, by newest(), or take an empty folder"
            )
        path = self._file(position)
        write_file(path, *packed(model, position))
        self._last = position
        self._broken.discard(position)
        self._tidy(position)
        return path

    def after(self, model: Saved, position: int) -> Path | None:
        """Save if ``position`` has passed a multiple of ``every`` since the last checkpoint; its file, or None."""
        return self.save(model, position) if position // self.every > self._last // self.every else None

    def newest(self) -> tuple[Any, int] | None:
        """The newest checkpoint that loads, and its position; None if the folder has none.

        One that is damaged is passed over, with a warning; if none loads, the error of the newest is raised.
        """
        errors: list[ModelFileError] = []
        for position in reversed(self.positions()):
            try:
                model, stored = read_model(self._file(position), self.parts)
                if stored != position:
                    raise ModelFileError(f"{self._file(position)} is a checkpoint of row {stored}: it was renamed")
            except ModelFileError as error:
                errors.append(error)
                self._broken.add(position)
                continue
            for passed in errors:
                warnings.warn(f"a checkpoint was passed over: {passed}", stacklevel=2)
            self._last = position
            return model, position
        if errors:
            raise errors[0]
        return None

    def _file(self, position: int) -> Path:
        return self.path / f"checkpoint-{position:015d}.pairloom"

    def _tidy(self, position: int) -> None:
        """Remove checkpoints beyond ``keep``, and what a kill has left half written."""
        old = [other for other in self.positions() if other <= position][: -self.keep]
        half = [entry for entry in self.path.iterdir() if TEMPORARY.fullmatch(entry.name)]
        for entry in [*map(self._file, old), *half]:
            with suppress(OSError):
                entry.unlink()
