"""Rows after a sudden change until a model is as good as one that was trained on the new concept only.

The goal. "A model trained on the new concept alone" is the same learner, without drift handling, after one pass over as
many *other* rows of the new concept as the stream has after its change. It scores all rows after the change and learns
none of them, so that it is as good in the first window as in the last. Goal and model are compared on the same rows: a
window that is hard by chance is hard for both.

Recovery. A window is the newest 1,000 rows, or more if it would contain fewer than 50 positives, all of them after the
change; each row was scored before it was learned. A model has recovered at the first row at which the AUC of this
window is within 0.01 of the goal on the same rows, and so is that of the next window, which begins where this one ends.
The rows needed are those from the change to that row, including the window itself, so at least one window.
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
"""Rows that are scored, then learned; windows end where blocks end."""
WITHIN = 0.01


def scores_along(model: Any, X: Any, y: np.ndarray, block: int = BLOCK) -> tuple[np.ndarray, float]:
    """Return the score of each row before it was learned (0 in the first block), and CPU seconds."""
    scores, start = np.zeros(len(y)), time.process_time()
    for at in range(0, len(y), block):
        rows = slice(at, at + block)
        if at:
            scores[rows] = model.score(X[rows])
        model.learn(X[rows], y[rows])
    return scores, time.process_time() - start


def window_aucs(scores: np.ndarray, y: np.ndarray, window: int, every: int = BLOCK) -> np.ndarray:
    """Return the AUC of each window; window k begins at row k * every."""
    starts = range(0, len(y) - window + 1, every)
    return np.array([WindowAUC(window).update(y[at : at + window], scores[at : at + window]).value for at in starts])


def goal_of(stream: Sudden, make_model: Callable[[], Any]) -> np.ndarray:
    """Return the window AUC after the change of a model that learned only the new concept, from other rows."""
    model, (X, y) = faced(make_model()), stream.more
    for at in range(0, len(y), BLOCK):
        model.learn(X[at : at + BLOCK], y[at : at + BLOCK])
    new = slice(stream.at, None)
    scores = np.concatenate([model.score(part) for part in np.array_split(stream.X[new], 20)])
    return window_aucs(scores, stream.y[new], stream.window)


@dataclass(frozen=True)
class Recovery:
    """The results of a model on a stream.

    ``rows``: until it recovered; ``never``: it did not, and ``rows`` is the rest of the stream; ``aucs``: of windows
    along the whole stream, which begin 100 rows apart; ``goal``: of those after the change; ``before``: AUC of the
    newest 5 windows before the change, ``after``: of the last 10 of the stream; ``seconds`` of CPU time.
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
    """Train a model of ``make_model()`` on a stream, and count the rows until it recovers from the change.

    Parameters
    ----------
    stream
        Of ``changes.streams.sudden``.
    make_model
        Makes a pairloom estimator, or an object with ``score(X)`` and ``learn(X, y)``.
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
    """Return the first window within 0.01 of the goal such that the window ``apart`` places later is too, or None."""
    near = aucs >= goal - WITHIN
    both = near[:-apart] & near[apart:]
    return int(np.argmax(both)) if both.any() else None
