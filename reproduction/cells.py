"""Cells: the units of work of an experiment. Each is run once and recorded once."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

Record = dict[str, Any]
"""A result of a cell: one line of a results file, without the columns of the cell itself."""

Settings = dict[str, Any]
"""Selected parameters of a system."""


@dataclass(frozen=True, order=True)
class Cell:
    """One unit of work.

    Parameters
    ----------
    experiment : the results file that it belongs to
    dataset, system : the data set and the system; may be empty
    axis, value : the quantity that a sweep varies, and its value in this cell
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
        """Title in a progress bar."""
        sweep = f"{self.axis} = {self.value:g}" if self.axis else ""
        return ", ".join(part for part in (self.experiment, self.dataset, self.system, sweep) if part)


@dataclass(frozen=True)
class Task:
    """A cell and the function that runs it: ``run(**arguments)`` returns the records, in any process.

    Parameters
    ----------
    cell, run, arguments : see above
    seconds : estimated CPU time
    after : the cell that selects the settings: its record is passed as ``chosen=``
    """

    cell: Cell
    run: Callable[..., list[Record]]
    arguments: dict[str, Any] = field(default_factory=dict)
    seconds: float = 1.0
    after: Cell | None = None

    @property
    def config(self) -> str:
        """A short hash of the arguments. A record with another hash does not count as done."""
        arguments = {name: asdict(one) if hasattr(one, "__dataclass_fields__") else one
                     for name, one in self.arguments.items()}  # fmt: skip
        text = json.dumps(arguments, sort_keys=True, default=repr)
        return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


Experiment = Callable[[bool, tuple[str, ...] | None], list[Task]]
"""``tasks(quick, datasets)`` of a module: all tasks, with those that they depend on.

``quick`` asks for a small run; ``datasets`` replaces the data sets of the configuration.
"""
