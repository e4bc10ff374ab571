"""How many rows after a sudden change a model is as good as one that never knew the old concept.

The goal. "A model trained on the new concept alone" is the same learner, without drift handling, after one pass over as
many *other* rows of the new concept as the stream has after its change. It scores all rows after the change and learns
none of them. So the goal is as good in the first window as in the last; and goal and model are compared on the same
rows, so that a window that is hard by chance is hard for both, and noise does not decide.

Recovery. A window is the newest 1,000 rows, more where positives are so rare that it would hold fewer than 50, all of
them after the change; each row was scored before it was learned. A model has recovered at the first row at which the
AUC of this window is within 0.01 of the goal's on the same rows, and that of the next window, which begins where this
one ends, is too. The rows needed are those from the change to that row, the window's own included: one window at least.
A model that never recovers needs the rest of the stream. Windows end every 100 rows.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from changes.learners import faced
from changes.streams import Sudden
from pairloom.metrics import WindowAUC

BLOCK = 100
"""Rows that are scored, then learned; a window may end at each of their ends."""
WITHIN = 0.01


def scores_along(model: Any, X: Any, y: np.ndarray, block: int = BLOCK) -> tuple[np.ndarray, float]:
    """The score that each row had before it was learned (0 in the first block), and processor seconds."""
    scores, start = np.zeros(len(y)), time.process_time()
    for at in range(0, len(y), block):
        rows = slice(at, at + block)
        if at:
            scores[rows] = model.score(X[rows])
        model.learn(X[rows], y[rows])
    return scores, time.process_time() - start


def window_aucs(scores: np.ndarray, y: np.ndarray, window: int, every: int = BLOCK) -> np.ndarray:
    """AUC of each window, the k-th of which begins at row k * every."""
    starts = range(0, len(y) - window + 1, every)
    return np.array([WindowAUC(window).update(y[at : at + window], scores[at : at + window]).value for at in starts])


def goal_of(stream: Sudden, make_model: Callable[[], Any]) -> np.ndarray:
    """Window AUC after the change of a model that learned the new concept alone, from other rows."""
    model, (X, y) = faced(make_model()), stream.more
    for at in range(0, len(y), BLOCK):
        model.learn(X[at : at + BLOCK], y[at : at + BLOCK])
    new = slice(stream.at, None)
    scores = np.concatenate([model.score(part) for part in np.array_split(stream.X[new], 20)])
    return window_aucs(scores, stream.y[new], stream.window)


@dataclass(frozen=True)
class Recovery:
    """What became of a model along a stream.

    ``rows`` it needed, ``never`` if that is but the rest of the stream; ``aucs``: of windows along the whole stream,
    each beginning 100 rows after the other; ``goal``: of those after the change; ``before``: AUC of the newest
    5 windows before the change, ``after``: in the last 10 of the stream; ``seconds`` of processor time.
    """

    rows: int
    never: bool
    aucs: np.ndarray = field(repr=False)
    goal: np.ndarray = field(repr=False)
    seconds: float
    alarms: list[int]
    before: float
    after: float
    goal_after: float


def recovery(stream: Sudden, make_model: Callable[[], Any], goal: np.ndarray | None = None) -> Recovery:
    """Stream rows past a model of ``make_model()``, and count the rows that it needs after the change.

    Parameters
    ----------
    stream
        Of ``changes.streams.sudden``.
    make_model
        Makes an estimator of pairloom's, or an object with ``score(X)`` and ``learn(X, y)``.
    goal
        Of ``goal_of``, with the same learner without drift handling; None: with ``make_model`` itself.

    >>> from pairloom.systems import FPOGD
    >>> from changes.streams import sudden
    >>> recovery(sudden("another ring", seed=0), lambda: FPOGD(random_state=0)).never
    False
    """
    goal = goal_of(stream, make_model) if goal is None else goal
    model = faced(make_model())
    scores, seconds = scores_along(model, stream.X, stream.y)
    aucs, apart = window_aucs(scores, stream.y, stream.window), stream.window // BLOCK
    new = aucs[stream.at // BLOCK :]
    found = first_back(new, goal, apart)
    rows = stream.rest if found is None else found * BLOCK + stream.window
    before = aucs[stream.at // BLOCK - apart :: -apart][:5]
    after, goal_after = (one[::-1][::apart][:10].mean() for one in (new, goal))
    return Recovery(rows, found is None, aucs, goal, seconds, list(model.alarms), before.mean(), after, goal_after)


def first_back(aucs: np.ndarray, goal: np.ndarray, apart: int) -> int | None:
    """The first window within 0.01 of the goal, ``apart`` places before another one that is; None: there is none."""
    near = aucs >= goal - WITHIN
    both = near[:-apart] & near[apart:]
    return int(np.argmax(both)) if both.any() else None
