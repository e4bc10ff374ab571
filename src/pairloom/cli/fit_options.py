"""The options of `fit`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pairloom.cli.model_file import digest_of, same_file
from pairloom.cli.parameters import DEFAULT


@dataclass(frozen=True)
class FitOptions:
    """The options of the command."""

    files: Sequence[str]
    model: Path
    start: Path | None
    system: str | None
    settings: Sequence[str]
    label: str | None
    positive: str | None
    weight: str | None
    drop: Sequence[str]
    format: str
    width: int | None
    chunk: int
    checkpoint: Path | None
    every: int
    resume: bool
    half_life: float | None
    log: Path | None
    monitor: Path | None
    on_bad_row: str
    quarantine: Path | None
    json: bool
    quiet: bool

    @property
    def fixed(self) -> dict[str, Any]:
        """The options that determine the model, besides the rows; of a model that is continued, its digest."""
        names = ("settings", "label", "positive", "weight", "drop", "width", "chunk", "half_life", "on_bad_row")
        values = {name: list(v) if isinstance(v := asdict(self)[name], (list, tuple)) else v for name in names}
        if self.start is None:
            return {"system": self.system or DEFAULT, **values}
        return {"system": self.system, **values, "from": digest_of(self.start)}

    @property
    def in_place(self) -> bool:
        """Whether the file of the model that is continued is replaced."""
        return self.start is not None and same_file(self.start, self.model)
