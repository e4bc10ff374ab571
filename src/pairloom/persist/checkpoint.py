"""Checkpoints: a run that was killed resumes from the newest."""

import os
import re
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pairloom.base.checks import check_count
from pairloom.base.saving import Savable
from pairloom.persist.format import ModelFileError, write_file
from pairloom.persist.model import pack, read_model

FILE_NAME = re.compile(r"checkpoint-(\d{15,})\.pairloom")
TEMPORARY_NAME = re.compile(FILE_NAME.pattern + r"\.[0-9a-f]+\.tmp")


class Checkpointer:
    """Save a model every n rows with its position in the stream, and find the newest file after a crash.

    Parameters
    ----------
    path : folder for the checkpoints of one run; created if it does not exist.
    every : rows between two checkpoints.
    keep : number of checkpoints to keep, the newest.
    parts : as for :func:`pairloom.load`.

    A checkpoint is written to a temporary file, flushed to disk and renamed; an old one is removed afterwards. The
    newest complete checkpoint therefore exists at any time, even after a crash or on a full disk.

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
        """Return the positions of the checkpoints in the folder, in order."""
        found = (FILE_NAME.fullmatch(entry.name) for entry in self.path.iterdir())
        return sorted(int(name[1]) for name in found if name)

    def save(self, model: Savable, position: int) -> Path:
        """Save the model after ``position`` rows of the stream; return the path of the file.

        ValueError if the folder has a checkpoint of a later row: of another run, or to resume from.
        """
        if type(position) is not int or position < 0:
            raise ValueError(f"position must be an integer >= 0; got {position!r}")
        later = [other for other in self.positions() if other > position and other not in self._broken]
        if later:
            raise ValueError(
                f"{self.path} has a checkpoint of row {later[-1]:,}, but this would be one of row {position:,}: resume "
                "from it with newest(), or use an empty folder"
            )
        path = self._file(position)
        write_file(path, *pack(model, position))
        self._last = position
        self._broken.discard(position)
        self._remove_old(position)
        return path

    def after(self, model: Savable, position: int) -> Path | None:
        """Save if a checkpoint is due; return its path, or None."""
        return self.save(model, position) if self.due(position) else None

    def due(self, position: int) -> bool:
        """Return whether ``position`` has passed a multiple of ``every`` since the last checkpoint."""
        return position // self.every > self._last // self.every

    def newest(self) -> tuple[Any, int] | None:
        """Return the newest checkpoint that loads, and its position; None if there are no checkpoints.

        Damaged checkpoints are skipped with a warning; if none can be loaded, the error for the newest is raised.
        """
        errors: list[ModelFileError] = []
        for position in reversed(self.positions()):
            try:
                model, stored = read_model(self._file(position), self.parts)
                if stored != position:
                    raise ModelFileError(f"{self._file(position)} is of row {stored}: the file was renamed")
            except ModelFileError as error:
                errors.append(error)
                self._broken.add(position)
                continue
            for skipped in errors:
                warnings.warn(f"a checkpoint was skipped: {skipped}", stacklevel=2)
            self._last = position
            return model, position
        if errors:
            raise errors[0]
        return None

    def _file(self, position: int) -> Path:
        return self.path / f"checkpoint-{position:015d}.pairloom"

    def _remove_old(self, position: int) -> None:
        """Remove checkpoints beyond ``keep``, and temporary files that a crash has left."""
        old = [other for other in self.positions() if other <= position][: -self.keep]
        temporary = [entry for entry in self.path.iterdir() if TEMPORARY_NAME.fullmatch(entry.name)]
        for entry in [*map(self._file, old), *temporary]:
            with suppress(OSError):
                entry.unlink()
