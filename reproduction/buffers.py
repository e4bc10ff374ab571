"""The buffer algorithms of the experiments on regret and variance: they share features, loss and step.

Each is a :class:`~pairloom.Learner` with the square loss, a constant step, no penalty, w_1 = 0 and the last iterate:
only the memory differs. ``slots`` is the number of examples for each class. A row of either class has this number of
partners, or about this number if one buffer holds both classes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pairloom import Learner
from pairloom.features import Gaussian, RandomFourier
from pairloom.losses import Square
from pairloom.memory import (
    Example,
    HistoryState,
    Latest,
    Memory,
    Reservoir,
    RSx,
    Strata,
    WholeHistory,
)
from pairloom.steps import L2, Constant
from reproduction.cells import Array, Record
from reproduction.problems import Fold, Protocol, Split


@dataclass(frozen=True)
class FreshDraws(WholeHistory):
    """A control that needs all past rows: before each row, ``size`` new uniform draws from the past of each class.

    All rows are kept; the mass of a row is the number of times that it is drawn. The draws are independent of the
    weights, as the paper's bounds assume. Only the reference engine runs it.
    """

    size: int = 4

    @property
    def draws(self) -> int:
        return 2 * self.size

    def observe(self, state: HistoryState, example: Example) -> None:
        super().observe(state, example)
        slots, seen = state.slots, int(state.seen[0])
        slots.mass[:seen] = 0.0
        for label, draws in enumerate(np.split(example.draws, 2)):
            members = np.flatnonzero(slots.labels[:seen] == label)
            if len(members):
                np.add.at(slots.mass, members[(draws * len(members)).astype(int)], 1.0)


FIFO, RESERVOIR, CENTROID = "FPOGD, FIFO", "FPOGD, reservoir", "FPOGD, centroid"
NEYMAN, PRINTED = "FPOGD, Neyman", "FPOGD, as printed"
QUEUE = "newest rows"
OAM_TYPE, FRESH, WHOLE = "OAM-type reservoir", "fresh uniform draws", "whole history"

MEMORIES: dict[str, Callable[[int, int], Memory]] = {
    FIFO: lambda slots, rows: Strata(max_strata=slots, representative="fifo"),
    RESERVOIR: lambda slots, rows: Strata(max_strata=slots, representative="reservoir"),
    CENTROID: lambda slots, rows: Strata(max_strata=slots, representative="centroid"),
    NEYMAN: lambda slots, rows: Strata(
        max_strata=max(1, slots // 2), representative="reservoir", allocation="neyman", slots=slots
    ),
    PRINTED: lambda slots, rows: Strata(max_strata=2 * slots, by="joint", normalization="history"),
    QUEUE: lambda slots, rows: Latest("opposite", slots),
    "Yang, previous": lambda slots, rows: Latest("previous"),
    "Yang, opposite": lambda slots, rows: Latest("opposite"),
    "Kar": lambda slots, rows: RSx(2 * slots),
    "Kar, by class": lambda slots, rows: RSx(slots, by="class"),
    OAM_TYPE: lambda slots, rows: Reservoir(slots),
    FRESH: lambda slots, rows: FreshDraws(rows, size=slots),
    WHOLE: lambda slots, rows: WholeHistory(rows),
}
"""Functions of the slots for each class and the rows of the stream. FPOGD with FIFO has strata of each class and the
newest member of each; with reservoirs it has the paper's randomized update; eps is half of the mean squared distance.
As printed: one clustering of all rows, with twice as many strata. Neyman: half as many strata, and more slots where
n_j sigma_j is large. The newest rows are a queue for each class: as many slots as FPOGD, without strata. Yang keeps one
example, or one of each class. Kar has one buffer for both classes, of the same size as the two of the others."""

CONTROLS = (FRESH, WHOLE)
"""Controls with unbounded memory: they show the effect of fresh draws, and of no sampling."""

RIVALS = tuple(name for name in MEMORIES if not name.startswith("FPOGD") and name not in (QUEUE, *CONTROLS))
"""The buffers of the algorithms in the paper's figures, and those of Kar and Yang with a buffer for each class, which
are not in the paper but pair as FPOGD does."""

BY_CLASS = tuple(name for name in MEMORIES if name not in (PRINTED, "Yang, previous", "Kar"))
"""Algorithms whose gradient is a mean over partners, as L_t is. For the others it is a mean over rows of both classes:
the same direction, but a shorter step, by the share of the partners. Bounds for a common step do not apply to them."""


@dataclass(frozen=True)
class Buffer:
    """The parameters that all algorithms share.

    Parameters
    ----------
    n_components : D, the number of random Fourier features, with the paper's width
    slots : number of kept examples for each class
    seed : seed of the features and of all draws
    """

    n_components: int
    slots: int
    seed: int

    def learner(self, system: str, eta: float, rows: int) -> Learner:
        """Return an algorithm for a stream of at most ``rows`` rows."""
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


@dataclass(frozen=True)
class BufferConfig:
    """The keys that ``configs/regret.toml`` and ``configs/variance.toml`` share.

    Parameters
    ----------
    systems : names of ``MEMORIES``
    folds, rows : number of the protocol's folds to run, and maximum number of rows of a stream
    points : number of points of a curve
    eta : the constant step
    n_components, slots : see :class:`Buffer`
    """

    datasets: tuple[str, ...]
    systems: tuple[str, ...]
    folds: int
    rows: int
    points: int
    eta: float
    n_components: int
    slots: int

    def buffer(self, data: Fold) -> Buffer:
        """Return the parameters that the algorithms share on a fold."""
        return Buffer(self.n_components, self.slots, data.seed + data.fold)

    def n_rows(self, data: Fold) -> int:
        """Return the number of rows of the stream."""
        return min(self.rows, data.shape.n_rows)

    def all_folds(self, protocol: Protocol, datasets: tuple[str, ...] | None) -> list[Fold]:
        """Return the folds of all data sets; ``datasets`` replaces those of the configuration."""
        return [fold for name in datasets or self.datasets for fold in protocol.first_folds(name, self.folds)]


def widest_feature(X: Array, rank: int = 0) -> int:
    """Return the index of the column with the largest variance, or of rank ``rank`` by variance, from 0 on.

    Equal variances keep the order of the columns.

    >>> X = np.array([[0.0, 1.0, 5.0], [0.0, 3.0, 6.0]])
    >>> widest_feature(X), widest_feature(X, 1)
    (1, 2)
    """
    return int(np.argsort(-X.var(axis=0, dtype=float), kind="stable")[rank])


def in_order_of(split: Split, feature: int) -> Split:
    """Return the training rows sorted by one column; the sort is stable."""
    order = np.argsort(split.X[:, feature], kind="stable")
    return Split(split.X[order], split.y[order], split.X_test, split.y_test)


def brief(record: Record) -> Record:
    """Round numbers to six digits, to keep the results files small.

    >>> brief({"row": 1234567, "before": 12.3456789})
    {'row': 1234567, 'before': 12.3457}
    """
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in record.items()}
