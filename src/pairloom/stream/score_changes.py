"""Changes of the scores, found without labels: the newest scores on arrival compared with older ones."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from pairloom.base.batch import Scored
from pairloom.base.spec import Count
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.columns.windows import ColumnWindows
from pairloom.models.base import Model
from pairloom.stream.hooks import Hook
from pairloom.stream.state import StreamState


@node
class ScoreWindows:
    """The windows of one column, the scores; ``end``: the newest row of which they have seen the score."""

    windows: ColumnWindows = field(default_factory=lambda: ColumnWindows.empty(1))
    end: Count = 0


@dataclass(frozen=True)
class ScoreChanges(Hook):
    """Compare the scores of the newest rows on arrival with those of older rows, as if they were a column.

    See :class:`~pairloom.columns.windows.ColumnWindows`. With more than two classes the score is that of class
    ``positive`` or, if that is None, the highest score of each row.

    Cost: about 0.3 microseconds per row, 6 KB.
    """

    name: ClassVar[str] = "scores"
    on_arrival: ClassVar[bool] = True
    optional: ClassVar[bool] = True

    positive: int | None = None

    def init(self, model: Model) -> ScoreWindows:
        return ScoreWindows()

    def see(self, own: ScoreWindows, scored: Scored) -> None:
        new = min(scored.end - own.end, len(scored.labels))
        if new > 0:
            scores = (scored.scores if scored.first is None else scored.first)[-new:]
            own.windows.add(one_score(scores, self.positive)[:, None])
            own.end = scored.end

    def check(self, own: ScoreWindows, state: StreamState, model: Model) -> None:
        if own.windows.n_columns != 1 or not own.windows.t <= own.end <= state.t:
            raise ValueError(f"must be of the scores of {state.t} rows")


def one_score(scores: Array, positive: int | None) -> Array:
    """Return one score per row, from those for all targets: that of a class, or the highest."""
    if scores.shape[1] == 1:
        return scores[:, 0]
    return np.asarray(scores.max(axis=1) if positive is None else scores[:, positive])
