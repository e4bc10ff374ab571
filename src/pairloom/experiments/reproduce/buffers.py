"""The buffer algorithms whose regret and gradients are compared: one feature space, one loss and step, many memories.

Each is a :class:`~pairloom.Learner` with the square loss, a constant step and no penalty, w_1 = 0, the last iterate. So
what differs is the memory alone. ``slots`` is the number of examples for each class: a row of either class meets so
many partners, or about so many where one buffer holds both classes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pairloom.base.typing import Array
from pairloom.experiments.reproduce.cells import Record
from pairloom.experiments.reproduce.problems import Split
from pairloom.features import Gaussian, RandomFourier
from pairloom.losses import Square
from pairloom.memory import Latest, Memory, Reservoir, RSx, Strata, WholeHistory
from pairloom.memory.base import Example, MemoryState
from pairloom.memory.history import HistoryState
from pairloom.memory.strata import Representative
from pairloom.models.learner import Learner
from pairloom.steps import L2, Constant


@dataclass(frozen=True)
class FreshDraws(WholeHistory):
    """A control that no stream can have: before every row, ``size`` new uniform draws from all of the past of a class.

    All rows are kept, and those that are drawn have a mass: how often they were. The draws are independent of the
    weights, so that the assumptions of the paper's bounds are met. For the reference engine only.
    """

    size: int = 4

    @property
    def draws(self) -> int:
        return 2 * self.size

    def observe(self, state: MemoryState, example: Example) -> None:
        super().observe(state, example)
        assert isinstance(state, HistoryState)
        slots, seen = state.slots, int(state.seen[0])
        slots.mass[:seen] = 0.0
        for label, draws in enumerate(np.split(example.draws, 2)):
            members = np.flatnonzero(slots.labels[:seen] == label)
            if len(members):
                np.add.at(slots.mass, members[(draws * len(members)).astype(int)], 1.0)


def _strata(representative: Representative) -> Callable[[int, int], Memory]:
    return lambda slots, rows: Strata(max_strata=slots, representative=representative)


FIFO, RESERVOIR, CENTROID = "FPOGD, FIFO", "FPOGD, reservoir", "FPOGD, centroid"
NEYMAN = "FPOGD, Neyman"
OAM_TYPE, FRESH, WHOLE = "OAM-type reservoir", "fresh uniform draws", "whole history"

MEMORIES: dict[str, Callable[[int, int], Memory]] = {
    FIFO: _strata("fifo"),
    RESERVOIR: _strata("reservoir"),
    CENTROID: _strata("centroid"),
    NEYMAN: lambda slots, rows: Strata(
        max_strata=max(1, slots // 2), representative="reservoir", allocation="neyman", slots=slots
    ),
    "Yang, previous": lambda slots, rows: Latest("previous"),
    "Yang, opposite": lambda slots, rows: Latest("opposite"),
    "Kar": lambda slots, rows: RSx(2 * slots),
    "Kar, by class": lambda slots, rows: RSx(slots, by="class"),
    OAM_TYPE: lambda slots, rows: Reservoir(slots),
    FRESH: lambda slots, rows: FreshDraws(rows, size=slots),
    WHOLE: lambda slots, rows: WholeHistory(rows),
}
"""From slots for each class and rows of the stream. FPOGD with FIFO is the paper's box, with reservoirs its randomized
update; eps is half the mean squared distance. Neyman: half as many strata, and the slots where n_j sigma_j is large.
Yang keeps one example, or one of each class. Kar is published with one buffer for both classes."""

CONTROLS = (FRESH, WHOLE)
"""No algorithms of bounded memory, but what these would do with fresh draws, or without any."""

RIVALS = tuple(name for name in MEMORIES if not name.startswith("FPOGD") and name not in CONTROLS)
"""The other algorithms of the paper's figures."""

BY_CLASS = tuple(name for name in MEMORIES if name not in ("Yang, previous", "Kar"))
"""Those whose gradient is a mean over partners, as L_t is. That of the others is a mean over rows of both classes: the
same direction, but a step shorter by the partners' share, so that bounds for a common step do not speak of them."""


@dataclass(frozen=True)
class Buffer:
    """How all of them learn.

    Parameters
    ----------
    n_components : D, of random Fourier features of the paper's width.
    slots : examples for each class.
    seed : of the features and of all draws.
    """

    n_components: int
    slots: int
    seed: int

    def learner(self, system: str, eta: float, rows: int) -> Learner:
        """An algorithm for a stream of at most so many rows."""
        return Learner(
            features=RandomFourier(self.n_components, Gaussian("paper")),
            loss=Square(),
            memory=MEMORIES[system](self.slots, rows),
            step=Constant(eta),
            penalty=L2(0.0),
            dtype="float64",
            seed=self.seed,
            engine="reference",
        )


def widest_feature(X: Array) -> int:
    """The column of largest variance, counted from 0; the first of equals.

    >>> widest_feature(np.array([[0.0, 1.0, 5.0], [0.0, 3.0, 6.0]]))
    1
    """
    return int(np.argmax(X.var(axis=0, dtype=float)))


def in_order_of(split: Split, feature: int) -> Split:
    """The rows to learn, sorted by one column; equal ones stay in the order of the stream."""
    order = np.argsort(split.X[:, feature], kind="stable")
    return Split(split.X[order], split.y[order], split.X_test, split.y_test)


def brief(record: Record) -> Record:
    """Numbers of six digits: more say nothing here, and there are many to be kept.

    >>> brief({"row": 1234567, "before": 12.3456789})
    {'row': 1234567, 'before': 12.3457}
    """
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in record.items()}
