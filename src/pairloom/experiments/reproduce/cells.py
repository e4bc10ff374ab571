"""Cells: the units of work of an experiment, each run once, recorded once, and never repeated."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

Record = dict[str, Any]
"""What a cell measured: one line of a results file, without the cell's own columns."""

Settings = dict[str, Any]
"""Parameters of a system that were selected."""


@dataclass(frozen=True, order=True)
class Cell:
    """One unit of work.

    Parameters
    ----------
    experiment : which file of results it belongs to
    dataset, system : on what, and with what; may be empty
    axis, value : what a sweep varies, and its value here
    fold : number of the outer fold, or of the repetition
    """

    experiment: str
    dataset: str = ""
    system: str = ""
    axis: str = ""
    value: float = 0.0
    fold: int = 0

    @property
    def title(self) -> str:
        """For a progress bar."""
        sweep = f"{self.axis} = {self.value:g}" if self.axis else ""
        return ", ".join(part for part in (self.experiment, self.dataset, self.system, sweep) if part)


@dataclass(frozen=True)
class Task:
    """A cell, and how to run it: ``run(**arguments)`` in whatever process, which returns the records.

    ``after``: the cell whose first record's "settings" are passed as ``settings=``. ``seconds``: a guess, in CPU time.
    """

    cell: Cell
    run: Callable[..., list[Record]]
    arguments: dict[str, Any] = field(default_factory=dict)
    seconds: float = 1.0
    after: Cell | None = None

    @property
    def config(self) -> str:
        """A short hash of the arguments: a record of other arguments does not count as done."""
        arguments = {name: asdict(one) if hasattr(one, "__dataclass_fields__") else one
                     for name, one in self.arguments.items()}  # fmt: skip
        text = json.dumps(arguments, sort_keys=True, default=repr)
        return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


class Experiment(Protocol):
    """One file of this package: what is run for one part of the paper."""

    @property
    def name(self) -> str:
        """As in ``pairloom reproduce NAME``, and of its file of results."""

    def tasks(self, quick: bool, datasets: tuple[str, ...] | None) -> list[Task]:
        """All that it runs, with what must be run before; ``datasets`` in place of those of its configuration."""
